"""A run that has used more than it may cost: by its policy it fails, or a person is asked for more."""

import time
from copy import deepcopy
from decimal import Decimal
from functools import partial
from uuid import UUID

import pytest

from approvals.commands import publish_policy_revision
from approvals.errors import AnswerNotPossible, ApprovalOver, NotEligible
from approvals.reconcilers import ApprovalExpiryReconciler
from approvals.selectors import current_policy
from factory.kernel.tenancy import reading
from runs.commands import cancel_run
from tests.support.api import Api
from tests.support.evidence import journal, violations
from tests.support.hands import Hand
from tests.support.races import race, refusals
from tests.support.receipts import costing
from tests.support.running import House
from usage.selectors import ReservationView, reservation_of

pytestmark = pytest.mark.slow


@pytest.fixture
def house(tenant_id) -> House:
    return asking(House(tenant_id))


def asking(house: House) -> House:
    """The policy asks at the limit from now on."""
    with reading(house.system):
        document = deepcopy(current_policy(house.system).document)
    document["spend"] = {"onLimit": "ask"}
    publish_policy_revision(house.world.tenant_admin, document=document)
    return house


def reserved(house: House, run_id: UUID) -> ReservationView:
    with reading(house.system):
        found = reservation_of(run_id)
    assert found is not None
    return found


def passed(house: House, worker: Hand, cost: str = "6") -> UUID:
    """A run whose first step has used more than the five dollars that it may cost."""
    run_id = house.run("diamond")
    worker.report(worker.take(), output=1, receipts=[costing(cost)])
    return run_id


def finish(worker: Hand) -> None:
    while works := worker.poll():
        for work in works:
            worker.acquire(work)
            worker.report(work, output=1)


def limits_told(house: House, run_id: UUID) -> tuple[float, float]:
    """As pinned, and as they hold."""
    told = Api.as_(house.world.requester).get(f"/factory/runs/{run_id}").json()
    assert told["limits"]["maxMinutes"] == told["effectiveLimits"]["maxMinutes"]
    return told["limits"]["maxCostUsd"], told["effectiveLimits"]["maxCostUsd"]


def test_a_run_asks_for_more_and_goes_on(house):
    worker = house.hand()
    run_id = passed(house, worker)
    [view] = house.pending(run_id)
    assert (view.subject_type, view.action_class, view.step_id) == ("spend", "spend", None)
    assert "up to 10.00 USD in all" in view.summary
    assert (house.state(run_id), house.step_states(run_id)) == ("WaitingForApproval", {"a": "Succeeded"})
    assert worker.poll() == []
    with pytest.raises(NotEligible):
        house.decide(view.id, by=house.world.requester)
    with pytest.raises(AnswerNotPossible):
        house.decide(view.id, "request_changes", reason="cheaper")
    assert limits_told(house, run_id) == (5, 5)
    house.decide(view.id)
    assert house.state(run_id) == "Running"
    assert limits_told(house, run_id) == (5, 10)
    assert (reserved(house, run_id).amount, reserved(house, run_id).extended) == (5, 5)
    finish(worker)
    assert house.state(run_id) == "Completed"
    done = reserved(house, run_id)
    assert (done.state, done.spent) == ("Settled", 6)
    causes = [cause for _, _, cause in journal(house.system, run_id)]
    assert causes[-3:] == ["ApprovalRequested", "ApprovalGranted", "LastStepSucceeded"]
    assert violations(house.tenant) == []


def test_who_holds_a_lease_goes_on_and_nobody_is_asked_twice(house):
    run_id, worker = house.run("diamond"), house.hand()
    worker.report(worker.take(), output=1)
    b, c = worker.poll()
    worker.acquire(b)
    worker.acquire(c)
    worker.report(b, output=1, receipts=[costing("6")])
    [view] = house.pending(run_id)
    assert worker.acquire(c).cancel_requested is False
    worker.report(c, output=1, receipts=[costing("6")])
    assert [each.id for each in house.pending(run_id)] == [view.id]
    house.decide(view.id)
    [again] = house.pending(run_id)
    assert "up to 15.00 USD in all" in again.summary, "twelve were used while ten were asked for"
    assert (house.state(run_id), worker.poll()) == ("WaitingForApproval", [])
    house.decide(again.id)
    finish(worker)
    assert (house.state(run_id), reserved(house, run_id).extended) == ("Completed", 10)
    assert violations(house.tenant) == []


def test_nobody_is_asked_when_no_work_remains(house):
    run_id, worker = house.run("single"), house.hand()
    worker.report(worker.take(), output=1, receipts=[costing("6")])
    assert (house.state(run_id), house.pending(run_id)) == ("Completed", [])


@pytest.mark.parametrize("first", ["the money", "the proposal"])
def test_money_and_a_proposal_wait_for_their_own_answers(house, first):
    run_id, worker = house.run("mixed"), house.hand()
    gate, side = sorted(worker.poll(), key=lambda work: work.snapshot["stepKey"])
    worker.acquire(gate)
    worker.acquire(side)
    worker.ask(gate, park=True)
    worker.report(side, output=1, receipts=[costing("6")])
    by_subject = {view.subject_type: view.id for view in house.pending(run_id)}
    order = ["spend", "run"] if first == "the money" else ["run", "spend"]
    house.decide(by_subject[order[0]])
    assert (house.state(run_id), worker.poll()) == ("WaitingForApproval", [])
    house.decide(by_subject[order[1]])
    assert house.state(run_id) == "Running"
    finish(worker)
    assert house.state(run_id) == "Completed"
    assert violations(house.tenant) == []


def test_a_retry_asks_as_well(house):
    run_id, worker = house.run("single"), house.hand()
    worker.fail(worker.take(), receipts=[costing("6")])
    [view] = house.pending(run_id)
    house.decide(view.id)
    house.make_due(run_id)
    finish(worker)
    assert house.state(run_id) == "Completed"


@pytest.mark.parametrize("answer", ["no", "silence"])
def test_without_a_yes_the_run_fails_of_class_budget(house, answer, settings):
    if answer == "silence":
        settings.FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS = 0.5 / 3600
    worker = house.hand()
    run_id = passed(house, worker)
    [view] = house.pending(run_id)
    if answer == "no":
        house.decide(view.id, "reject", reason="too dear")
    else:
        time.sleep(0.6)
        ApprovalExpiryReconciler().run_once(house.tenant)
    row = house.row(run_id)
    assert (row.state, row.failure_class) == ("Failed", "budget")
    assert ("too dear" if answer == "no" else "in time") in row.reason
    assert journal(house.system, run_id)[-1] == ("WaitingForApproval", "Failed", "BudgetExhausted")
    assert (reserved(house, run_id).state, reserved(house, run_id).extended) == ("Settled", 0)
    assert violations(house.tenant) == []


def test_more_that_is_approved_and_not_there_fails_the_run(tenant_id):
    house = asking(House(tenant_id, budget="8"))
    run_id = passed(house, house.hand())
    [view] = house.pending(run_id)
    house.decide(view.id)
    row = house.row(run_id)
    assert (row.state, row.failure_class) == ("Failed", "budget")
    assert "is not there" in row.reason
    assert reserved(house, run_id).extended == 0
    assert violations(house.tenant) == []


def test_cancelling_closes_the_question(house):
    run_id = passed(house, house.hand())
    [view] = house.pending(run_id)
    cancel_run(house.world.requester, run_id=run_id, reason="too dear")
    assert (house.state(run_id), house.pending(run_id)) == ("Cancelled", [])
    with pytest.raises(ApprovalOver):
        house.decide(view.id)
    assert (reserved(house, run_id).state, reserved(house, run_id).spent) == ("Settled", Decimal(6))
    assert violations(house.tenant) == []


@pytest.mark.slow
def test_an_answer_meets_a_cancellation(house):
    worker = house.hand()
    for _ in range(8):
        run_id = passed(house, worker)
        [view] = house.pending(run_id)
        cancel = partial(cancel_run, house.world.operator, run_id=run_id, reason="stop")
        outcomes = race(partial(house.decide, view.id), cancel)
        assert refusals(outcomes) in ([], ["ApprovalOver"])
        assert house.state(run_id) == "Cancelled"
        extended = 0 if refusals(outcomes) else 5
        assert (reserved(house, run_id).extended, reserved(house, run_id).spent) == (extended, 6)
    assert violations(house.tenant) == []
