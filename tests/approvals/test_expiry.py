"""Expiry: silence is never a yes, and it does not need anybody's click."""

import time
from dataclasses import replace
from uuid import uuid4

import pytest

from approvals.commands import expire_approval
from approvals.errors import ApprovalExpired, ApprovalNotFound, NotDueYet
from approvals.reconcilers import ApprovalExpiryReconciler
from factory.kernel.errors import Forbidden, Gone, TransitionRefused, VersionMismatch
from tests.approvals.test_decisions import decide
from tests.support.approvals import let_expire
from tests.support.evidence import counts, journal, outbox, violations
from tests.support.world import second_world

pytestmark = pytest.mark.slow


@pytest.mark.requirement("APR-05", "APR-25")
def test_the_reconciler_expires_what_nobody_answered(asker, stage, soon, settings):
    view = asker.ask()
    settings.FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS = 72
    undue = asker.again().ask()
    time.sleep(soon)
    counted = ApprovalExpiryReconciler().run_once(asker.world.tenant)
    assert (counted.found, counted.repaired) == (1, 1)
    assert [asker.view(v.id).state for v in (view, undue)] == ["Expired", "Pending"]
    assert [m.state for m in stage.moved] == ["Expired"]
    told = outbox(asker.house, asker.run_id)[-1][1]
    assert (told["state"], told["decidedBy"], told["reason"]) == ("Expired", None, None)
    assert ApprovalExpiryReconciler().run_once(asker.world.tenant).found == 0
    assert violations(asker.world.tenant) == []


@pytest.mark.requirement("APR-24", "JOB-08")
def test_undue_requests_before_them_do_not_hide_the_due_ones(asker, soon, settings, monkeypatch):
    """More than a batch that wait were asked first, and behind them the time of more than a batch is over."""
    settings.FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS = 72
    monkeypatch.setattr(ApprovalExpiryReconciler, "batch", 5)
    undue = [asker.again().ask() for _ in range(12)]
    settings.FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS = soon / 3600
    due = [asker.again().ask() for _ in range(12)]
    time.sleep(soon)
    counted = ApprovalExpiryReconciler().run_once(asker.world.tenant)
    assert (counted.found, counted.repaired) == (12, 12), "it does not even look at the others"
    assert {asker.view(v.id).state for v in due} == {"Expired"}
    assert {asker.view(v.id).state for v in undue} == {"Pending"}
    assert violations(asker.world.tenant) == []


@pytest.mark.slow
def test_due_ones_that_cannot_be_moved_delay_nothing(asker, stage, soon, monkeypatch):
    """More of them than a batch, and all before it: the round goes on behind them."""
    monkeypatch.setattr(ApprovalExpiryReconciler, "batch", 5)
    stuck = replace(asker.again(), run_id=uuid4())
    first = [replace(stuck, step_id=uuid4()).ask() for _ in range(12)]
    last, moved = asker.ask(), stage.decided

    def decided(ctx, view):
        if view.run_id == stuck.run_id:
            raise RuntimeError("the run could not move")
        moved(ctx, view)

    monkeypatch.setattr(stage, "decided", decided)
    time.sleep(soon)
    counted = ApprovalExpiryReconciler().run_once(asker.world.tenant)
    assert (counted.repaired, counted.failed) == (1, 12)
    assert asker.view(last.id).state == "Expired"
    assert {asker.view(view.id).state for view in first} == {"Pending"}


def test_refuses_before_its_time(asker):
    view = asker.ask()
    until = f"{view.expires_at:%d %b %Y %H:%M:%S} UTC"
    with pytest.raises(NotDueYet, match=f"It can be answered until {until}"):
        expire_approval(asker.house, approval_id=view.id, version=view.version)
    assert asker.view(view.id) == view


def test_refuses_another_version_and_what_is_closed(asker):
    view = asker.ask()
    decided = decide(asker.world.reviewer, view)
    let_expire(view.id)
    with pytest.raises(VersionMismatch):
        expire_approval(asker.house, approval_id=view.id, version=view.version)
    current = asker.view(decided.id).version
    with pytest.raises(TransitionRefused):
        expire_approval(asker.house, approval_id=view.id, version=current)
    assert asker.view(view.id).state == "Approved"


def test_another_tenants_request_does_not_exist(asker, tenant_id, soon):
    view = asker.ask()
    time.sleep(soon)
    with pytest.raises(ApprovalNotFound):
        expire_approval(second_world(tenant_id).system(), approval_id=view.id, version=view.version)


def test_only_the_house_expires(asker, soon):
    view = asker.ask()
    time.sleep(soon)
    with pytest.raises(Forbidden):
        expire_approval(asker.world.platform_admin, approval_id=view.id, version=view.version)


def test_it_expires_with_its_subject_or_not_at_all(asker, stage, soon):
    view = asker.ask()
    time.sleep(soon)
    before = counts(asker.house)
    stage.fault = RuntimeError("the run could not move")
    counted = ApprovalExpiryReconciler().run_once(asker.world.tenant)
    assert (counted.repaired, counted.failed) == (0, 1)
    assert counts(asker.house) == before
    stage.fault = None
    assert ApprovalExpiryReconciler().run_once(asker.world.tenant).repaired == 1
    assert journal(asker.house, view.id)[-1] == ("Pending", "Expired", "ExpiresAtPassed")


@pytest.mark.requirement("APR-23", "POL-12")
@pytest.mark.parametrize(("asked", "given"), [(24, 24), (72, 72), (100, 72)])
def test_the_policy_may_only_shorten_the_expiry(asker, asked, given):
    rule = {**asker.policy.document["rules"][0], "expiryHours": asked}
    policy = replace(asker.policy, document={**asker.policy.document, "rules": [rule]})
    view = asker.ask(policy=policy)
    assert (view.expires_at - view.requested_at).total_seconds() == given * 3600


@pytest.mark.requirement("APR-24", "POL-11", "ARC-08")
def test_the_same_is_asked_once_more_where_the_policy_says_so(asker, stage):
    view = asker.ask(policy=asker.ruled(onExpiry="re-request", quorum=2))
    decide(asker.world.reviewer, view)
    let_expire(view.id)
    assert ApprovalExpiryReconciler().run_once(asker.world.tenant).repaired == 1
    assert stage.moved == [], "it goes on waiting"
    [(old, new)] = stage.asked_again
    assert (old.state, old.id) == ("Expired", view.id)
    assert (new.state, new.renews, new.proposal_hash) == ("Pending", view.id, view.proposal_hash)
    assert (new.quorum, new.votes, new.version) == (2, 0, 1), "votes are of one request"
    before = asker.view(view.id)
    assert new.expires_at - new.requested_at == before.expires_at - before.requested_at
    assert journal(asker.house, new.id) == [("None", "Pending", "AskedAgain")]
    let_expire(new.id, hours=0)
    assert ApprovalExpiryReconciler().run_once(asker.world.tenant).repaired == 1
    assert [m.state for m in stage.moved] == ["Expired"], "once"
    assert asker.view(new.id).state == "Expired"
    assert ApprovalExpiryReconciler().run_once(asker.world.tenant).found == 0
    assert violations(asker.world.tenant) == []


@pytest.mark.requirement("APR-24")
def test_a_late_decision_asks_once_more_as_well(asker, stage):
    view = asker.ask(policy=asker.ruled(onExpiry="re-request"))
    let_expire(view.id)
    with pytest.raises(ApprovalExpired):
        decide(asker.world.reviewer, view)
    [(_, new)] = stage.asked_again
    assert decide(asker.world.reviewer, new).state == "Approved"
    assert violations(asker.world.tenant) == []


def test_what_needs_no_answer_any_more_is_not_asked_again(asker, stage, soon):
    view = asker.ask(policy=asker.ruled(onExpiry="re-request"))
    stage.outdated = Gone("The release was taken back.")
    time.sleep(soon)
    ApprovalExpiryReconciler().run_once(asker.world.tenant)
    assert (asker.view(view.id).state, stage.asked_again) == ("Expired", [])
    assert [m.state for m in stage.moved] == ["Expired"]
