"""Asking: what is fixed when a request is opened, and when the same question needs no second one."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from approvals import selectors
from approvals.errors import ApprovalNotNeeded, PolicyDenied, ProposalNotReadable
from approvals.models import MAX_PROPOSAL_BYTES
from factory.kernel.errors import InvalidInput, TooLarge, TransitionRefused, Unprocessable
from factory.kernel.hashing import digest
from factory.kernel.tenancy import reading
from tests.approvals.test_decisions import decide, give_role
from tests.support.approvals import supersede
from tests.support.evidence import audits, counts, journal, outbox, violations
from tests.support.proposals import DIFF, OTHER_DIFF

pytestmark = pytest.mark.slow


@pytest.mark.requirement("APR-01", "APR-17", "APR-29", "EVT-25")
def test_everything_is_fixed_when_it_is_asked(asker):
    view = asker.ask(environment_id=asker.world.environment)
    assert (view.state, view.version, view.policy_revision) == ("Pending", 1, "r1")
    assert view.proposal_hash == digest(DIFF)
    assert view.approver_roles == ("Reviewer", "WorkspaceAdmin")
    assert "Reviewer or WorkspaceAdmin" in view.approver_rule
    assert view.expires_at - view.requested_at == timedelta(hours=72)
    assert (view.valid_for, view.valid_until) == (timedelta(hours=24), None)
    assert (view.environment, view.project) == ("staging", "main")
    assert journal(asker.house, view.id) == [("None", "Pending", "ApprovalRequested")]
    topic, told = outbox(asker.house, asker.run_id)[-1]
    assert topic == "run-control.approvals.v1.approval-requested"
    assert told == {
        "approvalId": str(view.id),
        "runId": str(asker.run_id),
        "stepId": str(asker.step_id),
        "tenantId": asker.world.tenant,
        "actionClass": "shared-write",
        "proposalHash": view.proposal_hash,
        "approverRule": view.approver_rule,
        "expiresAt": view.expires_at.isoformat().replace("+00:00", "Z"),
        "subject": None,
    }
    with reading(asker.house):
        assert selectors.proposal(view.id).content == DIFF
    assert violations(asker.world.tenant) == []


@pytest.mark.requirement("APR-32")
def test_a_publication_has_no_run_and_names_its_release(asker):
    view = asker.ask_publication()
    assert (view.run_id, view.step_id, view.attempt_id) == (None, None, None)
    _, told = outbox(asker.house, asker.release_id)[-1]
    assert (told["runId"], told["stepId"]) == (None, None)
    assert told["subject"] == f"publication:{asker.release_id}"
    assert view.approver_roles == ("Reviewer",)


def test_the_same_question_is_the_same_request(asker):
    view = asker.ask()
    before = counts(asker.house)
    assert asker.ask() == view
    assert asker.ask(proposal=dict(reversed(DIFF.items())), summary="in other words") == view
    assert counts(asker.house) == before


@pytest.mark.requirement("APR-06")
def test_another_proposal_makes_the_pending_one_stale(asker, stage):
    first = asker.ask()
    second = asker.ask(proposal=OTHER_DIFF)
    assert second.id != first.id
    assert asker.view(first.id).state == "Stale"
    assert not asker.view(first.id).sent_back
    assert [told["state"] for topic, told in outbox(asker.house, asker.run_id) if "decided" in topic] == [
        "Stale"
    ]
    assert stage.moved == []
    with reading(asker.house):
        previous = selectors.previous_of(second)
    assert previous is not None
    assert previous.id == first.id
    assert violations(asker.world.tenant) == []


@pytest.mark.parametrize("answer", ["reject", "request_changes"])
def test_the_same_question_after_its_answer_is_that_answer(asker, answer):
    view = decide(asker.world.reviewer, asker.ask(), answer, reason="no")
    assert asker.ask() == view


def test_an_unused_approval_serves_a_later_attempt_of_the_step(asker):
    view = decide(asker.world.reviewer, asker.ask())
    later = replace(asker, attempt_id=uuid4())
    assert later.ask().id == view.id
    with reading(asker.house):
        found = selectors.unused_approved(asker.step_id, view.proposal_hash)
    assert found is not None
    assert found.id == view.id


def test_a_used_approval_serves_nobody_else(asker):
    view = decide(asker.world.reviewer, asker.ask())
    asker.take(view)
    assert asker.ask().id == view.id, "the attempt that used it is told so"
    later = replace(asker, attempt_id=uuid4())
    assert later.ask().id != view.id
    with reading(asker.house):
        assert selectors.unused_approved(asker.step_id, view.proposal_hash) is None


@pytest.mark.requirement("APR-15")
def test_each_step_asks_for_itself(asker):
    view = decide(asker.world.reviewer, asker.ask())
    assert asker.again().ask().id != view.id


def test_a_rejected_release_can_be_asked_about_again(asker):
    view = decide(asker.world.reviewer, asker.ask_publication(), "reject")
    assert asker.ask_publication().id != view.id


@pytest.mark.requirement("APR-16")
@pytest.mark.parametrize("action_class", ["read", "sandbox"])
def test_an_autonomous_action_has_nothing_to_ask(asker, action_class):
    with pytest.raises(ApprovalNotNeeded):
        asker.ask(action_class=action_class)


@pytest.mark.requirement("APR-28")
def test_an_unknown_class_is_refused(asker):
    with pytest.raises(InvalidInput):
        asker.ask(action_class="harmless")


def test_what_the_policy_denies_cannot_be_asked(asker):
    rules = [{"actionClass": "production", "effect": "deny"}]
    policy = replace(asker.policy, document={**asker.policy.document, "rules": rules})
    before = counts(asker.house)
    with pytest.raises(PolicyDenied):
        asker.ask(action_class="production", policy=policy)
    assert counts(asker.house) == (before[0], before[1], before[2] + 1)


@pytest.mark.parametrize("summary", ["", "  ", "x" * 501])
def test_the_summary_is_one_sentence(asker, summary):
    with pytest.raises(InvalidInput):
        asker.ask(summary=summary)


def test_a_proposal_has_a_mebibyte(asker):
    most = MAX_PROPOSAL_BYTES - len('{"kind":"text","text":""}')
    assert asker.ask(proposal={"kind": "text", "text": "y" * most}).state == "Pending"
    with pytest.raises(TooLarge):
        asker.again().ask(proposal={"kind": "text", "text": "y" * (most + 1)})


@pytest.mark.parametrize("proposal", [{"x": float("nan")}, {"x": 2**60}, {"x": "\ud800"}])
def test_what_json_cannot_carry_is_refused(asker, proposal):
    with pytest.raises(InvalidInput):
        asker.ask(proposal=proposal)


@pytest.mark.parametrize(
    ("proposal", "pointer"),
    [
        ({"kind": "interpretive-dance", "text": "yes"}, "/proposal/kind"),
        ({"text": "yes"}, "/proposal/kind"),
        ({"kind": ["text"], "text": "yes"}, "/proposal/kind"),
        ({"kind": "unified-diff", "diff": "no diff at all"}, "/proposal/diff"),
        ({"kind": "unified-diff", "files": ["report.md"]}, "/proposal/diff"),
        ({"kind": "tool-call", "tool": "deploy"}, "/proposal/arguments"),
        ({"kind": "tool-call", "tool": " ", "arguments": {}}, "/proposal/tool"),
        ({"kind": "manifest", "manifest": {}}, "/proposal/manifest"),
        ({"kind": "spend-estimate", "amount": 12}, "/proposal/amount"),
        ({"kind": "text", "text": "\n"}, "/proposal/text"),
    ],
)
def test_what_nobody_could_be_shown_is_not_asked(asker, proposal, pointer):
    before = counts(asker.house)
    with pytest.raises(ProposalNotReadable) as refused:
        asker.ask(proposal=proposal)
    assert [fault.pointer for fault in refused.value.errors] == [pointer]
    assert counts(asker.house) == before


@pytest.mark.parametrize(
    "proposal",
    [
        {"kind": "tool-call", "tool": "deploy", "arguments": {}},
        {"kind": "manifest", "manifest": {"asset": "a"}},
        {"kind": "text", "text": "Hello"},
    ],
)
def test_each_kind_can_be_asked_about(asker, proposal):
    assert asker.ask(proposal=proposal).is_pending


def test_the_environment_is_one_of_the_project(asker):
    with pytest.raises(Unprocessable):
        asker.ask(environment_id=uuid4())


def test_a_gate_that_nobody_can_open_is_said_at_once(asker):
    world = asker.world
    for who in (world.reviewer, world.reviewer2):
        give_role(asker, who, "Observer")
    author = world.workspace_admin.actor.person
    assert not asker.ask().nobody_eligible
    view = asker.again().ask_publication(author_person=author)
    assert view.nobody_eligible
    (entry,) = audits(asker.house, "ApprovalWithoutApprover")
    assert (entry.outcome, entry.subject) == ("noted", f"approval:{view.id}")


@pytest.mark.requirement("APR-07")
def test_cancelling_a_run_cancels_what_it_asked(asker):
    waiting, other = asker.ask(), asker.again().ask()
    decided = decide(asker.world.reviewer, asker.again().ask())
    assert {view.id for view in asker.cancel()} == {waiting.id, other.id}
    assert asker.view(decided.id).state == "Approved"
    states = [told["state"] for topic, told in outbox(asker.house, asker.run_id) if "decided" in topic]
    assert sorted(states) == ["Approved", "Cancelled", "Cancelled"]
    assert asker.cancel() == []
    assert violations(asker.world.tenant) == []


def test_withdrawing_a_release_cancels_its_request(asker):
    view = asker.ask_publication()
    asker.cancel(subject=asker.release_id, cause="SubjectWithdrawn")
    assert journal(asker.house, view.id)[-1] == ("Pending", "Cancelled", "SubjectWithdrawn")


@pytest.mark.requirement("APR-08")
def test_what_is_closed_is_not_superseded(asker):
    view = decide(asker.world.reviewer, asker.ask())
    with pytest.raises(TransitionRefused):
        supersede(asker.house, approval_id=view.id)
