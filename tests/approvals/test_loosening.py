"""What a new policy revision lets through that the one before did not is said in words."""

from typing import Any

from approvals.commands import publish_policy_revision
from approvals.policy import document as documents
from approvals.policy.loosening import loosened
from approvals.selectors import policy_named
from factory.kernel.tenancy import reading
from tests.support.approvals import asking

DEFAULT = documents.platform_default()
STRICT: dict[str, Any] = {
    **DEFAULT,
    "rules": [
        {"actionClass": "sandbox", "effect": "deny"},
        {"actionClass": "external", "environment": "live-*", "effect": "deny"},
        {
            "actionClass": "production",
            "effect": "require-approval",
            "roles": ["WorkspaceAdmin"],
            "quorum": 2,
            "expiryHours": 4,
            "validHours": 1,
        },
    ],
    "spend": {"thresholdUsd": 100, "onLimit": "fail"},
}


def changed(**members: Any) -> dict[str, Any]:
    return {**STRICT, **members}


def test_what_is_as_strict_or_stricter_says_nothing() -> None:
    assert loosened(STRICT, STRICT, ["staging"]) == []
    more = [*STRICT["rules"], {"actionClass": "external", "effect": "deny"}]
    stricter = changed(rules=more, spend={"thresholdUsd": 5}, defaults={"maxCostUsd": 1, "maxMinutes": 1})
    assert loosened(STRICT, stricter, ["staging"]) == []


def test_every_way_to_be_looser_is_told() -> None:
    without_threshold = loosened(STRICT, changed(spend={"onLimit": "ask"}))
    assert without_threshold == [
        "Nobody decides on a run's money any more; before, a person did above 100 USD.",
        "A run that has used all it may cost asks for more; before, it failed.",
    ]
    strict = changed(spend={"thresholdUsd": 100, "unknownUsage": "fail", "unknownHoldDays": 30})
    ignored = changed(spend={"thresholdUsd": 100, "unknownUsage": "ignore", "unknownHoldDays": 7})
    assert loosened(strict, ignored) == [
        "A run with usage of unknown cost goes on, as if it had cost nothing; before, it failed.",
        "Money held for usage of unknown cost is free again after 7 days; before, after 30 days.",
    ]
    assert loosened(STRICT, ignored) == [
        "A run with usage of unknown cost goes on, as if it had cost nothing; before, it asked a person "
        "whether it may go on.",
        "Money held for usage of unknown cost is free again after 7 days; before, only a person ended "
        "such a hold.",
    ]
    assert loosened(ignored, STRICT) == []
    assert loosened(STRICT, changed(spend={"thresholdUsd": 100, "unknownUsage": "ask"})) == []
    higher = changed(spend={"thresholdUsd": 200}, defaults={"maxCostUsd": 50, "maxMinutes": 60})
    assert loosened(STRICT, higher) == [
        "A person decides on a run's money only above 200 USD; before, above 100 USD.",
        "A run that names no limits gets 50 USD (maxCostUsd), before 5.",
    ]
    assert loosened(STRICT, changed(modelProfiles=["big"])) == [
        "Runs may ask for big as well (model profiles).",
        "Runs may not ask for code-agent any more (model profiles): they are refused.",
    ]
    _, external, production = STRICT["rules"]
    assert loosened(STRICT, changed(rules=[external, production]), ["staging"]) == [
        "sandbox everywhere: happens without asking; before, it was refused."
    ]
    assert loosened(STRICT, changed(rules=[*STRICT["rules"][:1], production]), ["live-eu", "staging"]) == [
        "external in live-eu, any other live-*: a person decides first; before, it was refused."
    ]
    of_one = {"actionClass": "external", "environment": "live-eu", "effect": "deny"}
    assert loosened(STRICT, changed(rules=[STRICT["rules"][0], of_one, production]), ["live-eu"]) == [
        "external in any other live-*: a person decides first; before, it was refused."
    ], "That the one there is stays closed says nothing about the next"
    for narrower in ("live-z*", "live-?", "*-zz*", "zz*", "live-a*"):
        both = [{"actionClass": "external", "effect": "deny", "environment": p} for p in ("live-*", narrower)]
        before, after = ([STRICT["rules"][0], *rules, production] for rules in (both, both[1:]))
        told = loosened(changed(rules=before), changed(rules=after), [])
        assert told == ["external in live-*: a person decides first; before, it was refused."], narrower
    assert loosened(STRICT, changed(rules=[*STRICT["rules"][:1], production]), ["staging"]) == [
        "external in live-*: a person decides first; before, it was refused."
    ]
    wide = {"actionClass": "production", "effect": "require-approval", "onExpiry": "re-request"}
    assert loosened(STRICT, changed(rules=[*STRICT["rules"][:2], wide]), ["staging"]) == [
        "production everywhere: decided by Reviewer or WorkspaceAdmin, before by WorkspaceAdmin.",
        "production everywhere: one person decides, before a quorum of 2.",
        "production everywhere: a request waits 3 days, before 4 h.",
        "production everywhere: an approval is valid for 24 h, before 1 h.",
        "production everywhere: what nobody answers is asked once more, before it failed.",
    ]


def test_the_answer_to_a_publication_carries_what_is_looser(tenant_id: str) -> None:
    w = asking(tenant_id).world
    bare = {name: value for name, value in DEFAULT.items() if name != "spend"}
    word = publish_policy_revision(w.tenant_admin, document=bare)
    with reading(w.system()):
        [warning] = policy_named(word).warnings
    assert warning.startswith("Against r1: Nobody decides on a run's money any more")
