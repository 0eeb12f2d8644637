"""Decisions: what each answer does, and every refusal in the order in which they are checked."""

import time
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from approvals.commands import decide_approval, expire_approval
from approvals.errors import (
    AlreadyDecided,
    ApprovalExpired,
    ApprovalNotFound,
    ApprovalOver,
    NotEligible,
    ProposalMoved,
    ReasonMissing,
    SeparationOfDuties,
)
from approvals.selectors import ApprovalView
from factory.kernel.context import Context
from factory.kernel.errors import Gone, InsufficientScope, InvalidInput
from projects.commands import change_member
from tests.support.approvals import Asking, let_expire, supersede
from tests.support.evidence import audits, counts, journal, outbox, violations
from tests.support.world import context_of, ctx, second_world


def decide(by: Context, view: ApprovalView, decision: str = "approve", **other: Any) -> ApprovalView:
    words = {"version": view.version, "proposal_hash": view.proposal_hash, "reason": "", **other}
    return decide_approval(by, approval_id=view.id, decision=decision, **words)


def refused(asker: Asking, code: str) -> Any:
    """The one refusal in the audit log, and proof that it is one of that code."""
    (entry,) = [e for e in audits(asker.house, "DecideApproval") if e.outcome == "refused"]
    assert entry.detail["code"] == code
    return entry


@pytest.mark.requirement("APR-03", "APR-20")
def test_approves_exactly_one_proposal(asker, stage):
    view = asker.ask()
    decided = decide(asker.world.reviewer, view, reason="looks right")
    assert (decided.state, decided.decision, decided.decided_by) == (
        "Approved",
        "approve",
        asker.world.reviewer.actor.subject,
    )
    assert decided.decided_person == asker.world.reviewer.actor.person
    assert decided.version == view.version + 1
    assert decided.valid_until == decided.valid_for + journal_time(asker, decided)
    assert journal(asker.house, view.id) == [
        ("None", "Pending", "ApprovalRequested"),
        ("Pending", "Approved", "Approve"),
        ("Approved", "Approved", "ValidityStarted"),
    ]
    topic, told = outbox(asker.house, asker.run_id)[-1]
    assert topic == "run-control.approvals.v1.approval-decided"
    assert told == {
        "approvalId": str(view.id),
        "runId": str(asker.run_id),
        "tenantId": asker.world.tenant,
        "state": "Approved",
        "decidedBy": decided.decided_by,
        "reason": "looks right",
        "subject": None,
        "onBehalfOf": None,
        "breakGlass": False,
        "waiverId": None,
    }
    assert [m.state for m in stage.moved] == ["Approved"]
    assert violations(asker.world.tenant) == []


def journal_time(asker: Asking, view: ApprovalView) -> Any:
    assert view.valid_until is not None
    return view.valid_until - view.valid_for


@pytest.mark.requirement("APR-04")
def test_rejects(asker, stage):
    decided = decide(asker.world.workspace_admin, asker.ask(), "reject", reason="not on a Friday")
    assert (decided.state, decided.reason, decided.valid_until) == ("Rejected", "not on a Friday", None)
    assert [m.state for m in stage.moved] == ["Rejected"]


def test_sends_a_proposal_back_with_the_reviewers_words(asker, stage):
    view = asker.ask()
    decided = decide(asker.world.reviewer, view, "request_changes", reason="leave out the secrets")
    assert (decided.state, decided.sent_back) == ("Stale", True)
    assert [(m.state, m.reason) for m in stage.moved] == [("Stale", "leave out the secrets")]
    assert outbox(asker.house, asker.run_id)[-1][1]["decidedBy"] == decided.decided_by


@pytest.mark.requirement("EVT-28")
def test_every_end_of_a_request_is_told_once(asker):
    reviewer = asker.world.reviewer
    ended = {"Approved": asker.ask(), "Rejected": asker.again().ask(), "Stale": asker.again().ask()}
    decide(reviewer, ended["Approved"])
    decide(reviewer, ended["Rejected"], "reject")
    supersede(asker.house, approval_id=ended["Stale"].id)
    late = ended["Expired"] = asker.again().ask()
    let_expire(late.id)
    expire_approval(asker.house, approval_id=late.id, version=late.version)
    ended["Cancelled"] = asker.again().ask()
    asker.cancel()
    told = [data for topic, data in outbox(asker.house, asker.run_id) if topic.endswith("approval-decided")]
    assert [(data["approvalId"], data["state"]) for data in told] == [
        (str(view.id), state) for state, view in ended.items()
    ]


@pytest.mark.parametrize("reason", ["", "   ", "\u200b\u2060"], ids=["none", "spaces", "nothing visible"])
def test_requesting_changes_needs_a_reason(asker, reason):
    with pytest.raises(ReasonMissing):
        decide(asker.world.reviewer, asker.ask(), "request_changes", reason=reason)
    refused(asker, "reason-missing")


@pytest.mark.requirement("APR-14")
@pytest.mark.parametrize("word", ["Approve", "yes", "", "approved", "APPROVE"])
def test_an_unknown_word_is_no_answer(asker, word):
    view = asker.ask()
    with pytest.raises(InvalidInput):
        decide(asker.world.reviewer, view, word)
    assert asker.view(view.id).state == "Pending"


def test_the_subject_moves_in_the_same_transaction(asker, stage):
    view = asker.ask()
    before = counts(asker.house)
    stage.fault = RuntimeError("the run could not move")
    with pytest.raises(RuntimeError):
        decide(asker.world.reviewer, view)
    assert asker.view(view.id) == view
    assert counts(asker.house) == before


# ---------------------------------------------------------------- refusals, in their order


def test_refuses_without_the_scope(asker):
    view = asker.ask()
    with pytest.raises(InsufficientScope):
        decide(ctx(asker.world.reviewer, {"factory.approvals.read"}), view)
    refused(asker, "insufficient-scope")


@pytest.mark.requirement("APR-11", "IDN-16")
def test_another_tenants_request_does_not_exist(asker, tenant_id):
    view = asker.ask()
    stranger = second_world(tenant_id)
    with pytest.raises(ApprovalNotFound):
        decide(stranger.reviewer, view)
    with pytest.raises(ApprovalNotFound):
        decide(asker.world.reviewer, replace(view, id=uuid4()))
    assert asker.view(view.id) == view


def test_another_projects_request_does_not_exist(asker):
    view = asker.ask()
    elsewhere = replace(asker.world.reviewer, project_id=uuid4())
    with pytest.raises(ApprovalNotFound):
        decide(elsewhere, view)
    with pytest.raises(ApprovalNotFound):
        decide(replace(asker.world.tenant_admin, project_id=None), view)
    assert asker.view(view.id) == view


ROLES = ["requester", "reviewer", "operator", "workspace_admin", "platform_admin", "observer"]
MAY = {"reviewer", "workspace_admin"}


@pytest.mark.requirement("APR-21", "IDN-08")
@pytest.mark.parametrize("asked", [False, True], ids=["another-asked", "asked-it"])
@pytest.mark.parametrize("role", ROLES)
def test_who_may_decide(asker, role, asked):
    by: Context = getattr(asker.world, role)
    own = {"requested_by": by.actor.subject, "requester_person": by.actor.person} if asked else {}
    other = {"requested_by": "somebody", "requester_person": "somebody"}
    view = asker.ask(**(own or other))
    before = counts(asker.house)
    if role in MAY and not asked:
        assert decide(by, view).state == "Approved"
        return
    expected = SeparationOfDuties if role in MAY else NotEligible
    with pytest.raises(expected):
        decide(by, view)
    assert asker.view(view.id) == view
    assert counts(asker.house) == (before[0], before[1], before[2] + 1)
    entry = refused(asker, expected.code)
    assert (entry.subject, entry.actor) == (f"approval:{view.id}", by.actor.subject)


@pytest.mark.requirement("POL-10", "IDN-17")
@pytest.mark.parametrize("channel", ["api", "admin", "cli", "handler", "job"])
def test_the_requester_never_decides_on_any_channel(asker, channel):
    by = asker.world.reviewer
    view = asker.ask(requested_by=by.actor.subject, requester_person=by.actor.person)
    with pytest.raises(SeparationOfDuties):
        decide(replace(by, channel=channel), view)
    refused(asker, "separation-of-duties")


def test_who_owns_the_service_account_that_asked_has_asked(asker):
    owner, robot = asker.world.requester, asker.world.service
    view = asker.ask(requested_by=robot.actor.subject, requester_person=owner.actor.person)
    reviewer = give_role(asker, owner, "Reviewer")
    with pytest.raises(SeparationOfDuties):
        decide(reviewer, view)


def test_a_service_account_of_the_requester_is_the_requester(asker):
    view = asker.ask()
    robot = replace(
        asker.world.service, actor=replace(asker.world.service.actor, roles=frozenset({"Reviewer"}))
    )
    with pytest.raises((SeparationOfDuties, NotEligible)):
        decide(robot, view)
    assert asker.view(view.id).state == "Pending"


def test_no_part_of_the_house_decides(asker):
    view = asker.ask()
    with pytest.raises(NotEligible):
        decide(asker.house, view)
    assert asker.view(view.id).state == "Pending"


def give_role(asker: Asking, who: Context, *roles: str, version: int = 1) -> Context:
    (key,) = [
        k for k in asker.world.memberships if getattr(asker.world, k).actor.subject == who.actor.subject
    ]
    change_member(
        asker.house,
        membership_id=asker.world.memberships[key],
        version=version,
        roles=roles,
        grants=(),
    )
    return context_of(who.actor.subject, asker.world.tenant, asker.world.project)


@pytest.mark.requirement("POL-05")
def test_a_dismissed_reviewer_loses_power_at_once(asker):
    view, token = asker.ask(), asker.world.reviewer
    give_role(asker, token, "Observer")
    with pytest.raises(NotEligible):
        decide(token, view)


@pytest.mark.requirement("POL-10")
def test_who_gains_the_role_later_may_decide_then_but_never_on_their_own(asker):
    view = asker.ask()
    promoted = give_role(asker, asker.world.operator, "Reviewer")
    requester = give_role(asker, asker.world.requester, "Requester", "Reviewer")
    with pytest.raises(SeparationOfDuties):
        decide(requester, view)
    assert decide(promoted, view).state == "Approved"


def test_roles_that_a_token_asserts_only_narrow(asker):
    view = asker.ask()
    observer = asker.world.observer
    lifted = replace(observer, actor=replace(observer.actor, roles=frozenset({"Reviewer"})))
    narrowed = replace(
        asker.world.reviewer, actor=replace(asker.world.reviewer.actor, roles=frozenset({"Observer"}))
    )
    for by in (lifted, narrowed):
        with pytest.raises(NotEligible):
            decide(by, view)


@pytest.mark.requirement("APR-32")
def test_a_publication_is_decided_by_a_reviewer_who_did_not_write_it(asker):
    view = asker.ask_publication(author_person=asker.world.reviewer.actor.person)
    with pytest.raises(NotEligible):
        decide(asker.world.tenant_admin, view)
    with pytest.raises(SeparationOfDuties):
        decide(asker.world.reviewer, view)
    assert decide(asker.world.reviewer2, view).state == "Approved"
    _, told = outbox(asker.house, asker.release_id)[-1]
    assert (told["runId"], told["subject"]) == (None, f"publication:{asker.release_id}")
    assert violations(asker.world.tenant) == []


@pytest.mark.requirement("APR-10", "APR-08", "FLR-04")
@pytest.mark.parametrize("first", ["approve", "reject", "request_changes"])
def test_there_is_one_decision(asker, first):
    view = asker.ask()
    decided = decide(asker.world.reviewer, view, first, reason="because")
    before = counts(asker.house)
    for version in (view.version, decided.version):
        with pytest.raises(AlreadyDecided) as refusal:
            decide(asker.world.reviewer2, replace(view, version=version), "approve")
        assert refusal.value.extra["decision"]["decidedBy"] == decided.decided_by
        assert refusal.value.extra["decision"]["decision"] == first
    assert asker.view(view.id) == asker.view(decided.id)
    assert counts(asker.house) == (before[0], before[1], before[2] + 2)


@pytest.mark.requirement("APR-13")
def test_what_is_over_cannot_be_decided(asker):
    stale = asker.ask()
    supersede(asker.house, approval_id=stale.id)
    other = asker.again()
    cancelled = other.ask()
    other.cancel()
    for view in (stale, cancelled):
        with pytest.raises(ApprovalOver):
            decide(asker.world.reviewer, view)


@pytest.mark.requirement("APR-05", "APR-25")
def test_a_late_decision_finds_it_expired_and_that_is_kept(asker, stage, soon):
    view = asker.ask()
    time.sleep(soon)
    with pytest.raises(ApprovalExpired):
        decide(asker.world.reviewer, view)
    expired = asker.view(view.id)
    assert (expired.state, expired.decided_by, expired.decision) == ("Expired", "", "")
    assert [m.state for m in stage.moved] == ["Expired"]
    refused(asker, "approval-expired")
    with pytest.raises(ApprovalOver):
        decide(asker.world.reviewer, view)
    assert journal(asker.house, view.id)[-1] == ("Pending", "Expired", "ExpiresAtPassed")
    assert violations(asker.world.tenant) == []


@pytest.mark.requirement("APR-12")
def test_what_was_on_the_screen_is_what_is_decided(asker):
    view = asker.ask()
    for seen in (
        replace(view, version=view.version - 1),
        replace(view, version=view.version + 1),
        replace(view, proposal_hash="sha256:" + "0" * 64),
        replace(view, proposal_hash=""),
    ):
        with pytest.raises(ProposalMoved) as refusal:
            decide(asker.world.reviewer, seen)
        assert refusal.value.extra["currentVersion"] == view.version
    assert asker.view(view.id) == view


def test_a_subject_that_needs_no_answer_any_more_takes_none(asker, stage):
    view = asker.ask()
    stage.outdated = Gone("The release is revoked.")
    with pytest.raises(Gone):
        decide(asker.world.reviewer, view)
    assert asker.view(view.id) == view
    assert refused(asker, "gone").reason == "The release is revoked."


def test_the_first_refusal_that_holds_answers(asker, stage, soon):
    """Everything is wrong at once; repairing one thing at a time shows the next refusal."""
    view = asker.ask()
    time.sleep(soon)
    stage.outdated = Gone("The release is revoked.")
    wrong = replace(view, version=99, proposal_hash="x")
    world = asker.world
    with pytest.raises(InsufficientScope):
        decide(ctx(world.requester, ()), replace(wrong, id=uuid4()))
    with pytest.raises(ApprovalNotFound):
        decide(world.requester, replace(wrong, id=uuid4()))
    with pytest.raises(NotEligible):
        decide(world.requester, wrong)
    both = give_role(asker, world.requester, "Reviewer")
    with pytest.raises(SeparationOfDuties):
        decide(both, wrong)
    with pytest.raises(ApprovalExpired):
        decide(world.reviewer, wrong)
    with pytest.raises(ApprovalOver):
        decide(world.reviewer, wrong)
    assert violations(world.tenant) == []
