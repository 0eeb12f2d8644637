"""The money of a run past the policy's threshold: a person decides before any of it is set aside."""

import time
from copy import deepcopy
from functools import partial

import pytest

from approvals.commands import publish_policy_revision
from approvals.errors import AnswerNotPossible, ApprovalOver, SeparationOfDuties
from approvals.reconcilers import ApprovalExpiryReconciler
from approvals.selectors import current_policy, proposal
from factory.kernel.tenancy import reading
from runs.commands import cancel_run, start_run
from runs.selectors import run_view
from tests.support.evidence import journal, violations
from tests.support.races import race, refusals
from tests.support.running import House
from usage.selectors import reservation_of

pytestmark = pytest.mark.slow


@pytest.fixture
def house(tenant_id) -> House:
    return House(tenant_id)


def threshold(house: House, usd: float, **rule: object) -> None:
    """From now on, what may cost more than so much is asked about."""
    with reading(house.system):
        document = deepcopy(current_policy(house.system).document)
    document["spend"] = {"thresholdUsd": usd}
    for one in document["rules"]:
        if one["actionClass"] == "spend":
            one.update(rule)
    publish_policy_revision(house.world.tenant_admin, document=document)


def asked(house: House, **limits: object):
    run_id = house.run("single", limits={"maxCostUsd": 12, "maxMinutes": 30} | limits)
    [view] = house.pending(run_id)
    return run_id, view


def reserved(house: House, run_id):
    with reading(house.system):
        return reservation_of(run_id)


@pytest.mark.requirement("APR-15", "APR-32", "USG-04")
def test_a_run_waits_accepted_for_its_money(house):
    threshold(house, 10)
    run_id, view = asked(house)
    assert (view.subject_type, view.action_class, view.run_id, view.step_id) == (
        "spend",
        "spend",
        run_id,
        None,
    )
    assert house.state(run_id) == "Accepted"
    assert reserved(house, run_id) is None
    assert house.hand().poll() == []
    with reading(house.system):
        told = proposal(view.id).content
        waits = run_view(house.world.reviewer, run_id).waiting
    assert (told["kind"], told["amount"]) == ("spend-estimate", {"amount": "12.000000", "currency": "USD"})
    assert "approve what it may cost" in waits
    start_run(house.system, run_id=run_id)
    assert [v.id for v in house.pending(run_id)] == [view.id], "asked once"
    with pytest.raises(SeparationOfDuties):
        _as_reviewing_requester(house, view)
    done = house.decide(view.id)
    assert (done.state, done.use(done.closed_at)) == ("Approved", "used")
    assert reserved(house, run_id).amount == 12
    worker = house.hand()
    worker.report(worker.take())
    assert house.state(run_id) == "Completed"
    start_run(house.system, run_id=run_id)
    assert violations(house.tenant) == []


def _as_reviewing_requester(house: House, view):
    from projects.commands import change_member
    from tests.support.world import context_of

    me = house.world.requester.actor.subject
    roles = ("Requester", "Reviewer")
    change_member(
        house.system,
        membership_id=house.world.memberships["requester"],
        version=1,
        roles=roles,
        grants=(),
    )
    return house.decide(view.id, by=context_of(me, house.tenant, house.world.project))


def test_below_the_threshold_nobody_is_asked(house):
    threshold(house, 12)
    run_id = house.run("single", limits={"maxCostUsd": 12, "maxMinutes": 30})
    assert house.pending(run_id) == []
    assert reserved(house, run_id).amount == 12


@pytest.mark.requirement("FLR-07")
def test_rejected_money_fails_the_run(house):
    threshold(house, 10)
    run_id, view = asked(house)
    house.decide(view.id, "reject", reason="too dear")
    row = house.row(run_id)
    assert (row.state, row.failure_class) == ("Failed", "policy-denied")
    assert "too dear" in row.reason
    assert journal(house.system, run_id)[-1] == ("Accepted", "Failed", "SpendRejected")
    assert reserved(house, run_id) is None
    assert violations(house.tenant) == []


@pytest.mark.requirement("APR-25")
def test_silence_is_no_money(house, settings):
    threshold(house, 10)
    settings.FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS = 0.3 / 3600
    run_id, _ = asked(house)
    time.sleep(0.4)
    ApprovalExpiryReconciler().run_once(house.tenant)
    assert journal(house.system, run_id)[-1] == ("Accepted", "Failed", "SpendExpired")
    assert violations(house.tenant) == []


def test_money_is_not_sent_back(house):
    threshold(house, 10)
    _, view = asked(house)
    with pytest.raises(AnswerNotPossible):
        house.decide(view.id, "request_changes", reason="cheaper")


def test_approved_and_not_there_is_denied(house):
    threshold(house, 10)
    run_id, view = asked(house, maxCostUsd=5000)
    house.decide(view.id)
    row = house.row(run_id)
    assert (row.state, row.failure_class) == ("Failed", "budget")
    assert violations(house.tenant) == []


def test_a_policy_that_denies_spending_fails_the_run_at_once(house):
    with reading(house.system):
        document = deepcopy(current_policy(house.system).document)
    document["spend"] = {"thresholdUsd": 10}
    document["rules"] = [r for r in document["rules"] if r["actionClass"] != "spend"]
    document["rules"].append({"actionClass": "spend", "effect": "deny"})
    publish_policy_revision(house.world.tenant_admin, document=document)
    run_id = house.run("single", limits={"maxCostUsd": 12, "maxMinutes": 30})
    assert house.state(run_id) == "Failed"
    assert violations(house.tenant) == []


def test_cancelling_an_accepted_run_cancels_its_request(house):
    threshold(house, 10)
    run_id, view = asked(house)
    cancel_run(house.world.requester, run_id=run_id, reason="changed my mind")
    assert house.state(run_id) == "Cancelled"
    with pytest.raises(ApprovalOver):
        house.decide(view.id)
    assert violations(house.tenant) == []


@pytest.mark.slow
def test_whoever_locks_the_run_first_wins(house):
    threshold(house, 10)
    for _ in range(12):
        run_id, view = asked(house)
        cancel = partial(cancel_run, house.world.operator, run_id=run_id, reason="stop")
        outcomes = race(partial(house.decide, view.id), cancel)
        assert refusals(outcomes) in ([], ["ApprovalOver"])
        assert house.state(run_id) == "Cancelled"
    assert violations(house.tenant) == []


def test_a_node_narrows_who_decides_about_its_step(house):
    run_id = house.run("narrow")
    worker = house.hand()
    answer = worker.ask(worker.take(), park=True)
    [view] = house.pending(run_id)
    assert (view.id, view.approver_roles, view.quorum) == (answer.approval_id, ("WorkspaceAdmin",), 2)
    assert house.decide(view.id, by=house.world.workspace_admin).is_pending
    assert house.state(run_id) == "WaitingForApproval"
    assert worker.poll() == [], "one of two is not enough to go on"
    house.decide(view.id, by=house.world.tenant_admin)
    assert house.state(run_id) == "Running"
    [work] = worker.poll()
    worker.acquire(work)
    assert worker.authorize(work, view.id).approval_id == view.id
    assert violations(house.tenant) == []


@pytest.mark.requirement("APR-24")
def test_a_parked_attempt_waits_for_the_fresh_request(house, settings):
    with reading(house.system):
        document = deepcopy(current_policy(house.system).document)
    document["rules"][0] |= {"onExpiry": "re-request"}
    publish_policy_revision(house.world.tenant_admin, document=document)
    settings.FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS = 0.5 / 3600
    run_id = house.run("gated")
    worker = house.hand()
    first = worker.ask(worker.take(), park=True)
    time.sleep(0.6)
    settings.FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS = 72
    ApprovalExpiryReconciler().run_once(house.tenant)
    [again] = house.pending(run_id)
    assert again.renews == first.approval_id
    assert house.state(run_id) == "WaitingForApproval"
    house._owner(
        "UPDATE approvals_approvalrequest SET expires_at = clock_timestamp() + interval '1 hour' "
        "WHERE id = %s",
        [again.id],
        unpinned=True,
    )
    house.decide(again.id)
    [work] = worker.poll()
    assert work.decision is not None
    assert work.decision.approval_id == again.id
    worker.acquire(work)
    assert worker.authorize(work, again.id).approval_id == again.id
    assert violations(house.tenant) == []
