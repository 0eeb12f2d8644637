"""A run that has used something of unknown cost: by its policy it asks a person, fails, or goes on."""

import time
from copy import deepcopy
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from approvals.commands import publish_policy_revision
from approvals.errors import ApprovalOver
from approvals.reconcilers import ApprovalExpiryReconciler
from approvals.selectors import current_policy, explain, proposal
from approvals.selectors.explaining import about_money
from factory.kernel.tenancy import reading
from runs.commands import cancel_run
from tests.support.evidence import journal, violations
from tests.support.hands import Hand
from tests.support.races import race, refusals
from tests.support.receipts import costing, price_models, thinking
from tests.support.running import House
from usage.commands import settle_hold
from usage.selectors import reservation_of

pytestmark = pytest.mark.slow


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


def says(house: House, **spend: Any) -> None:
    """The policy says so about money from now on."""
    with reading(house.system):
        document = deepcopy(current_policy(house.system).document)
    document["spend"] = {"thresholdUsd": 100} | spend
    publish_policy_revision(house.world.tenant_admin, document=document)


def passed(house: House, worker: Hand, *calls: dict[str, Any], workflow: str = "diamond") -> UUID:
    """A run whose first step has made calls of which nobody knows the cost."""
    run_id = house.run(workflow)
    worker.report(worker.take(), output=1, receipts=calls or (thinking(), thinking()))
    return run_id


def finish(worker: Hand, *calls: dict[str, Any]) -> None:
    while works := worker.poll():
        for work in works:
            worker.acquire(work)
            worker.report(work, output=1, receipts=calls)


def test_a_run_asks_once_and_says_which_calls_have_no_price(house: House) -> None:
    worker = house.hand()
    run_id = passed(house, worker)
    [view] = house.pending(run_id)
    assert (view.subject_type, view.action_class) == ("spend", "spend")
    assert view.summary.endswith("though nobody knows what 2 calls of gateway.example/big-1 cost")
    with reading(house.system):
        content = proposal(view.id).content
    assert content["unknownUsage"] == [
        {
            "provider": "gateway.example",
            "name": "big-1",
            "calls": 2,
            "used": "24,800 inputTokens, 1,700 outputTokens",
        }
    ]
    assert (house.state(run_id), worker.poll()) == ("WaitingForApproval", [])
    house.decide(view.id)
    assert house.state(run_id) == "Running"
    finish(worker, thinking())
    assert house.state(run_id) == "Completed"
    causes = [cause for _, _, cause in journal(house.system, run_id)]
    assert causes[-3:] == ["ApprovalRequested", "ApprovalGranted", "LastStepSucceeded"]
    assert violations(house.tenant) == []


def test_a_yes_is_for_this_provider_and_model_alone(house: House) -> None:
    worker = house.hand()
    run_id = passed(house, worker)
    house.decide(house.pending(run_id)[0].id)
    b, c = worker.poll()
    worker.acquire(b)
    worker.acquire(c)
    worker.report(b, output=1, receipts=[thinking()])
    assert house.pending(run_id) == [], "it was said that it may go on with this one"
    worker.report(c, output=1, receipts=[thinking("small-2")])
    [view] = house.pending(run_id)
    assert "1 call of gateway.example/small-2 cost" in view.summary
    assert "big-1" not in view.summary
    house.decide(view.id)
    finish(worker)
    assert house.state(run_id) == "Completed"
    assert violations(house.tenant) == []


@pytest.mark.parametrize("fault", [{"latency": 3}, {"kind": "gift"}, {"quantities": {"inputTokens": "many"}}])
def test_a_call_whose_receipt_is_refused_is_asked_about_too(house: House, fault: dict[str, Any]) -> None:
    worker, faulty = house.hand(), thinking() | fault
    run_id = house.run("diamond")
    work = worker.take()
    for _ in range(2):  # the answer may have been lost
        worker.receipts(work, faulty)
    worker.report(work, output=1, receipts=[faulty])
    [view] = house.pending(run_id)
    assert view.summary.endswith("though nobody knows what 1 call of gateway.example/big-1 cost")
    assert house.state(run_id) == "WaitingForApproval"
    house.decide(view.id)
    finish(worker, thinking(), "no receipt at all")
    [again] = house.pending(run_id)
    assert "1 call of not said/not said" in again.summary
    assert violations(house.tenant) == []


def test_a_call_whose_receipt_is_refused_holds_money_until_a_person_settles_it(house: House) -> None:
    run_id = passed(house, house.hand(), costing("1"), thinking() | {"latency": 3}, workflow="single")
    with reading(house.system):
        reservation = reservation_of(run_id)
    assert (house.state(run_id), reservation.held > 0) == ("Completed", True)
    settle_hold(
        house.world.finance,
        reservation_id=reservation.id,
        reason="The bill came",
        evidence="INV-7",
        cost=Decimal("0.25"),
    )
    with reading(house.system):
        settled = reservation_of(run_id)
    assert (str(settled.spent), settled.held) == ("1.250000", 0)
    assert violations(house.tenant) == []


def test_nothing_is_dispatched_from_the_receipt_on(house: House) -> None:
    run_id, worker = house.run("mixed"), house.hand(slots=1)
    [work] = worker.poll()
    worker.acquire(work)
    worker.receipts(work, thinking())
    other = house.hand("w2")
    assert other.poll() == []
    assert house.state(run_id) == "Running", "who holds a lease goes on"


def test_nobody_is_asked_when_no_work_remains(house: House) -> None:
    run_id = passed(house, house.hand(), workflow="single")
    assert (house.state(run_id), house.pending(run_id)) == ("Completed", [])


def test_what_remains_that_is_done_meanwhile_withdraws_the_request(house: House) -> None:
    run_id, worker = house.run("mixed"), house.hand()
    gate, side = sorted(worker.poll(), key=lambda work: work.snapshot["stepKey"])
    worker.acquire(gate)
    worker.acquire(side)
    worker.report(side, output=1, receipts=[thinking()])
    [view] = house.pending(run_id)
    worker.fail(gate, "permanent")
    assert (house.state(run_id), house.pending(run_id)) == ("Failed", [])
    with pytest.raises(ApprovalOver):
        house.decide(view.id)
    assert violations(house.tenant) == []


@pytest.mark.parametrize("answer", ["reject", "silence"])
def test_without_a_yes_the_run_fails_of_class_budget(house: House, answer: str, settings: Any) -> None:
    if answer == "silence":
        settings.FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS = 0.3 / 3600
    run_id = passed(house, house.hand())
    [view] = house.pending(run_id)
    if answer == "reject":
        house.decide(view.id, "reject", reason="find out first")
    else:
        time.sleep(0.4)
        ApprovalExpiryReconciler().run_once(house.tenant)
    row = house.row(run_id)
    assert (row.state, row.failure_class) == ("Failed", "budget")
    assert "of unknown cost" in row.reason
    assert violations(house.tenant) == []


def test_a_policy_may_let_it_fail(house: House) -> None:
    says(house, unknownUsage="fail")
    run_id = passed(house, house.hand())
    row = house.row(run_id)
    assert (row.state, row.failure_class, house.pending(run_id)) == ("Failed", "budget", [])
    assert "Nobody knows what 2 calls of gateway.example/big-1 cost" in row.reason
    assert "spend.unknownUsage: fail" in row.reason
    assert violations(house.tenant) == []


def test_a_policy_may_ignore_it(house: House) -> None:
    says(house, unknownUsage="ignore")
    worker = house.hand()
    run_id = passed(house, worker)
    assert (house.state(run_id), house.pending(run_id)) == ("Running", [])
    finish(worker)
    assert house.state(run_id) == "Completed"


def test_a_price_of_0_is_a_price(house: House) -> None:
    price_models(house, big_1="0")
    run_id = passed(house, house.hand())
    assert (house.state(run_id), house.pending(run_id)) == ("Running", [])


def test_money_and_the_unknown_are_asked_about_one_after_the_other(house: House) -> None:
    says(house, onLimit="ask")
    worker = house.hand()
    run_id = passed(house, worker, costing("6"), thinking())
    [view] = house.pending(run_id)
    assert "up to 10.00 USD in all" in view.summary
    house.decide(view.id)
    [view] = house.pending(run_id)
    assert "big-1" in view.summary
    assert house.state(run_id) == "WaitingForApproval"
    house.decide(view.id)
    assert house.state(run_id) == "Running"
    with reading(house.system):
        reserved = reservation_of(run_id)
    assert reserved is not None
    assert reserved.extended == 5
    assert violations(house.tenant) == []


def test_the_explanation_says_what_is_done(house: House) -> None:
    told = {}
    for chosen in ("ask", "fail", "ignore", None):
        says(house, **({} if chosen is None else {"unknownUsage": chosen}))
        with reading(house.system):
            told[chosen] = about_money(explain(current_policy(house.system), "spend", project_id=None))[-1]
    asks = "A run that has used something of unknown cost asks a person whether it may go on."
    assert told["ask"] == told[None] == asks
    assert "fails (spend.unknownUsage: fail)." in told["fail"]
    assert "goes on, as if it had cost nothing." in told["ignore"]


def test_an_answer_meets_a_cancellation(house: House) -> None:
    worker = house.hand()
    for _ in range(5):
        run_id = passed(house, worker)
        [view] = house.pending(run_id)
        cancel = partial(cancel_run, house.world.operator, run_id=run_id, reason="stop")
        outcomes = race(partial(house.decide, view.id), cancel)
        assert refusals(outcomes) in ([], ["ApprovalOver"])
        assert house.state(run_id) == "Cancelled"
    assert violations(house.tenant) == []
