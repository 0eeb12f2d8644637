"""The policy: what a document may say, and that no document goes below the platform floor."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.admin.detail.answers import terms
from approvals.errors import PolicyInvalid
from approvals.policy import document as documents
from approvals.policy import floor
from approvals.policy.evaluation import FLOOR_RULE, evaluate
from approvals.policy.messages import THEN, format_rule
from approvals.policy.patterns import matches, overlap
from approvals.states import GATED, ActionClass, Effect, OnExpiry

DEFAULT = documents.platform_default()


def with_rules(*rules: dict[str, Any]) -> dict[str, Any]:
    return {**DEFAULT, "rules": list(rules)}


def rule(action_class: str, effect: str, **other: Any) -> dict[str, Any]:
    return {"actionClass": action_class, "effect": effect, **other}


# ---------------------------------------------------------------- what any accepted document answers

slugs = st.text("abc-1", min_size=1, max_size=6)
patterns = st.text("abc-1*?", min_size=1, max_size=6)
hours = st.integers(1, 200)


@st.composite
def rules(draw: Any) -> dict[str, Any]:
    """A rule of which most are acceptable: the others test that checking lets none through."""
    found = {
        "actionClass": draw(st.sampled_from(ActionClass)).value,
        "effect": draw(st.sampled_from(Effect)).value,
    }
    if draw(st.booleans()):
        found["environment"] = draw(patterns)
    if found["effect"] == "require-approval" and draw(st.booleans()):
        found["roles"] = draw(
            st.sampled_from([["Reviewer"], ["WorkspaceAdmin"], ["WorkspaceAdmin", "Reviewer"]])
        )
    if found["effect"] == "require-approval" and draw(st.booleans()):
        found["expiryHours"], found["validHours"] = draw(hours), draw(hours)
    return found


def accepted(document: Any) -> bool:
    try:
        documents.check(document)
    except PolicyInvalid:
        return False
    return True


documents_ = st.lists(rules(), max_size=6).map(lambda r: with_rules(*r)).filter(accepted)
questions = st.tuples(st.sampled_from(ActionClass), st.none() | slugs)


@pytest.mark.requirement("POL-06", "APR-15")
@given(documents_, questions)
def test_no_accepted_document_goes_below_the_floor(document, question):
    action_class, environment = question
    verdict = evaluate(document, action_class, environment)
    if action_class in GATED:
        assert verdict.effect is not Effect.ALLOW
    if verdict.effect is Effect.REQUIRE_APPROVAL:
        assert verdict.roles, "a gate that nobody can open is refused at publication"
        assert set(verdict.roles) <= set(floor.roles(action_class))
        assert action_class in GATED
    else:
        assert verdict.roles == ()
    assert timedelta(0) < verdict.expires_in <= floor.LONGEST_EXPIRY
    assert verdict.valid_for > timedelta(0)


@given(documents_, rules(), questions)
def test_another_rule_never_makes_it_weaker(document, more, question):
    stricter = with_rules(*document["rules"], more)
    if not accepted(stricter):
        return
    before, after = evaluate(document, *question), evaluate(stricter, *question)
    assert after.effect.strictness >= before.effect.strictness
    assert after.expires_in <= before.expires_in
    if before.effect is after.effect is Effect.REQUIRE_APPROVAL:
        assert set(after.roles) <= set(before.roles)


@given(documents_, questions)
def test_the_order_of_rules_does_not_matter(document, question):
    mirrored = with_rules(*reversed(document["rules"]))
    one, other = evaluate(document, *question), evaluate(mirrored, *question)
    assert (one.effect, one.roles, one.expires_in, one.valid_for) == (
        other.effect,
        other.roles,
        other.expires_in,
        other.valid_for,
    )


@given(patterns, patterns, slugs)
def test_patterns_that_share_a_slug_overlap(one, other, slug):
    if matches(one, slug) and matches(other, slug):
        assert overlap(one, other)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("*", "prod", True), ("prod-*", "*-eu", True), ("prod-*", "staging", False), ("a?", "ab", True),
     ("a?", "a", False), ("*", "*", True), ("a*", "b*", False)],
)  # fmt: skip
def test_overlap(one, other, expected):
    assert overlap(one, other) is overlap(other, one) is expected


# ---------------------------------------------------------------- single answers


@pytest.mark.requirement("POL-04")
def test_answers_with_effect_roles_and_times():
    document = with_rules(
        rule("production", "require-approval", environment="prod-*", roles=["WorkspaceAdmin"], expiryHours=4)
    )
    verdict = evaluate(document, ActionClass.PRODUCTION, "prod-eu")
    assert (verdict.effect, verdict.roles) == (Effect.REQUIRE_APPROVAL, ("WorkspaceAdmin",))
    assert (verdict.expires_in, verdict.valid_for) == (timedelta(hours=4), timedelta(hours=24))
    assert verdict.rule == "rule 1: production in prod-*"
    elsewhere = evaluate(document, ActionClass.PRODUCTION, "staging")
    assert (elsewhere.roles, elsewhere.rule) == (("Reviewer", "WorkspaceAdmin"), FLOOR_RULE)
    assert elsewhere.expires_in == timedelta(hours=72)


@pytest.mark.requirement("APR-15", "APR-16")
@pytest.mark.parametrize("action_class", list(ActionClass))
def test_where_no_rule_matches_the_floor_answers(action_class):
    verdict = evaluate(with_rules(), action_class, None)
    assert verdict.effect is (Effect.REQUIRE_APPROVAL if action_class.gated else Effect.ALLOW)
    if action_class is ActionClass.PUBLICATION:
        assert verdict.roles == ("Reviewer",)


def test_the_strictest_rule_wins():
    document = with_rules(
        rule("external", "require-approval", roles=["Reviewer", "WorkspaceAdmin"], validHours=48),
        rule("external", "require-approval", roles=["Reviewer"], environment="s*", validHours=2),
        rule("external", "deny", environment="secret"),
    )
    assert evaluate(document, ActionClass.EXTERNAL, "staging").roles == ("Reviewer",)
    assert evaluate(document, ActionClass.EXTERNAL, "staging").valid_for == timedelta(hours=2)
    assert evaluate(document, ActionClass.EXTERNAL, "other").valid_for == timedelta(hours=48)
    assert evaluate(document, ActionClass.EXTERNAL, "secret").effect is Effect.DENY


@pytest.mark.requirement("POL-09")
def test_classes_have_an_order():
    assert [c.value for c in sorted(ActionClass, key=lambda c: c.rank)] == [
        "read", "sandbox", "shared-write", "external", "production", "publication", "spend",
    ]  # fmt: skip
    assert {c.value for c in GATED} == {"shared-write", "external", "production", "publication", "spend"}


# ---------------------------------------------------------------- what a document may not say

FAULTS = [
    ([], ""),
    ({}, "/defaults"),
    ({}, "/modelProfiles"),
    ({**DEFAULT, "rule": []}, "/rule"),
    (with_rules({"effect": "deny"}), "/rules/0/actionClass"),
    ({**DEFAULT, "defaults": {"maxCostUsd": 0, "maxMinutes": 60}}, "/defaults/maxCostUsd"),
    ({**DEFAULT, "modelProfiles": ["a", "a"]}, "/modelProfiles"),
    (with_rules(rule("harmless", "allow")), "/rules/0/actionClass"),
    (with_rules(rule("spend", "allow")), "/rules/0/effect"),
    (with_rules(rule("read", "maybe")), "/rules/0/effect"),
    (with_rules(rule("read", "allow"), rule("production", "allow")), "/rules/1/effect"),
    (with_rules(rule("shared-write", "allow", environment="sandbox")), "/rules/0/effect"),
    (with_rules(rule("external", "allow")), "/rules/0/effect"),
    (with_rules(rule("publication", "allow")), "/rules/0/effect"),
    (with_rules(rule("sandbox", "require-approval")), "/rules/0/effect"),
    (with_rules(rule("external", "require-approval", roles=["Operator"])), "/rules/0/roles/0"),
    (with_rules(rule("external", "require-approval", roles=["PlatformAdmin"])), "/rules/0/roles/0"),
    (with_rules(rule("external", "require-approval", roles=[])), "/rules/0/roles"),
    (with_rules(rule("publication", "require-approval", roles=["WorkspaceAdmin"])), "/rules/0/roles/0"),
    (with_rules(rule("external", "deny", onExpiry="re-request")), "/rules/0/onExpiry"),
    (with_rules(rule("external", "require-approval", onExpiry="allow")), "/rules/0/onExpiry"),
    (with_rules(rule("external", "require-approval", expiryHours=0)), "/rules/0/expiryHours"),
    (with_rules(rule("external", "require-approval", environment="Prod")), "/rules/0/environment"),
    (with_rules(rule("external", "deny", roles=["Reviewer"])), "/rules/0/roles"),
    (with_rules(rule("read", "allow", validHours=3)), "/rules/0/validHours"),
    (
        with_rules(
            rule("external", "require-approval", roles=["Reviewer"], environment="prod-*"),
            rule("external", "require-approval", roles=["WorkspaceAdmin"], environment="*-eu"),
        ),
        "/rules/1/roles",
    ),
]  # fmt: skip


@pytest.mark.requirement("POL-06")
@pytest.mark.parametrize(("document", "pointer"), FAULTS)
def test_refuses_with_a_pointer(document, pointer):
    with pytest.raises(PolicyInvalid) as refusal:
        documents.check(document)
    assert pointer in [fault.pointer for fault in refusal.value.errors]


def test_rules_that_never_meet_may_name_different_people():
    documents.check(
        with_rules(
            rule("external", "require-approval", roles=["Reviewer"], environment="staging"),
            rule("external", "require-approval", roles=["WorkspaceAdmin"], environment="prod-*"),
        )
    )


@pytest.mark.requirement("POL-12", "APR-23")
def test_a_longer_expiry_is_kept_yet_cut():
    document = with_rules(rule("external", "require-approval", expiryHours=100))
    documents.check(document)
    assert evaluate(document, ActionClass.EXTERNAL, None).expires_in == timedelta(hours=72)
    assert documents.clamped(document) == ["Rule 1 asks for an expiry of 100 h; requests expire after 72 h."]


def test_the_house_can_shorten_every_expiry():
    verdict = evaluate(DEFAULT, ActionClass.EXTERNAL, None, longest_expiry=timedelta(hours=8))
    assert verdict.expires_in == timedelta(hours=8)


def test_the_platforms_own_document_is_acceptable():
    documents.check(DEFAULT)
    assert "code-agent" in DEFAULT["modelProfiles"]


def test_records_name_rules_as_they_are_and_people_read_them_in_words() -> None:
    frozen = "rule 1: sandbox in *; rule 2: shared-write in *-eu; rule 4: production in prod-*"
    assert format_rule(frozen) == (
        "rule 1: sandbox everywhere; rule 2: shared-write in *-eu; rule 4: production in prod-*"
    )
    assert format_rule("decided by Reviewer (rule 3: production in *)").endswith(
        "(rule 3: production everywhere)"
    )
    assert format_rule("Nothing in * of theirs.") == "Nothing in * of theirs."


def test_what_follows_silence_is_told_in_the_same_words_everywhere() -> None:
    for end in OnExpiry:
        asks = with_rules(rule("production", "require-approval", onExpiry=str(end)))
        assert f", {THEN[end]};" in terms(evaluate(asks, ActionClass.PRODUCTION, "prod"))
