"""Cancelling: intent first, then each kind of attempt by its own right."""

import pytest

from factory.kernel import hints
from factory.kernel.errors import InsufficientRole, InvalidInput
from factory.kernel.tenancy import reading
from runs.commands import cancel_run, enforce_deadline
from runs.errors import RunEnded
from runs.models import CancellationIntent
from runs.reconcilers import LeaseExpiryReconciler
from tests.support.acts import deliver
from tests.support.api import Api
from tests.support.evidence import journal, outbox, violations
from tests.support.proposals import OTHER_DIFF
from tests.support.receipts import effect
from tests.support.running import House
from usage.selectors import reservation_of

pytestmark = pytest.mark.slow


def cancel(house: House, run_id, ctx=None, reason: str = "enough") -> str:
    return cancel_run(ctx or house.world.operator, run_id=run_id, reason=reason)


def reservation_state(house: House, run_id) -> str:
    with reading(house.system):
        found = reservation_of(run_id)
    return str(found.state) if found else "none"


@pytest.mark.requirement("RUN-10", "STP-13", "DEP-10")
@pytest.mark.parametrize(("started", "money"), [(False, "none"), (True, "Released")])
def test_an_accepted_run_is_cancelled_at_once(house: House, started: bool, money: str) -> None:
    run_id = house.run() if started else house.accept()
    assert cancel(house, run_id) == "Cancelled"
    assert journal(house.system, run_id)[-1] == (
        "Accepted",
        "Cancelled",
        "CancelRequestedBeforeDispatch",
    )
    assert reservation_state(house, run_id) == money
    assert set(house.step_states(run_id).values()) <= {"Cancelled"}
    assert house.hand().poll() == []


@pytest.mark.requirement("RUN-14", "RUN-15", "RUN-39", "API-11")
def test_a_holder_is_told_and_its_report_ends_the_run(house: House) -> None:
    run_id = house.run()
    worker = house.hand()
    work = worker.take()
    assert cancel(house, run_id) == "Cancelling"
    until = house.leases(run_id)[0].expires_at
    grant = worker.acquire(work)
    assert (grant.cancel_requested, grant.expires_at) == (True, until), "A hung holder ends."
    worker.report(work, "Cancelled", "cancellation", reason="as told")
    assert (house.state(run_id), house.step_states(run_id)) == ("Cancelled", {"look": "Cancelled"})
    assert reservation_state(house, run_id) == "Settled"
    topics = [topic for topic, _ in outbox(house.system, run_id)]
    assert topics.count("run-control.runs.v1.run-cancelled") == 1


@pytest.mark.requirement("RUN-24")
def test_a_success_that_came_too_late_stays_visible(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    worker.authorize(work, asked.approval_id)
    cancel(house, run_id)
    worker.report(work, output={"commit": "c0ffee"}, receipts=[effect(asked.approval_id)])
    assert (house.state(run_id), house.step_states(run_id)) == ("Cancelled", {"publish": "Succeeded"})


def test_a_failure_after_the_cancellation_makes_no_new_attempt(house: House) -> None:
    run_id = house.run()
    worker = house.hand()
    work = worker.take()
    cancel(house, run_id)
    worker.fail(work)
    assert (house.state(run_id), house.step_states(run_id)) == ("Cancelled", {"look": "Cancelled"})
    assert (worker.poll(), len(house.attempts(run_id))) == ([], 1)


@pytest.mark.requirement("RUN-15")
@pytest.mark.parametrize("kind", ["offered", "parked", "parked and decided", "offered again", "held"])
def test_each_kind_of_attempt_settles(house: House, kind: str) -> None:
    run_id = house.run("gated")
    worker = house.hand("w1", slots=1)
    [work] = worker.poll()
    if kind != "offered":
        worker.acquire(work)
        asked = worker.ask(work, park=kind != "held")
        if kind in ("parked and decided", "offered again"):
            house.decide(asked.approval_id)
        if kind == "offered again":
            assert len(worker.poll()) == 1
    assert cancel(house, run_id) == ("Cancelling" if kind == "held" else "Cancelled")
    assert {a.state for a in house.approvals(run_id)} <= {"Cancelled", "Approved"}
    if kind == "held":
        worker.report(work, "Cancelled", "cancellation")
    assert (house.state(run_id), house.attempt(work.attempt_id).state) == ("Cancelled", "Cancelled")
    assert house.step_states(run_id) == {"publish": "Cancelled"}
    assert reservation_state(house, run_id) == "Settled"
    free = house.run("gated")
    assert [w.run_id for w in worker.poll()] == [free], "The slot is free."


def test_an_authorized_attempt_that_nobody_holds_is_uncertain(house: House) -> None:
    """Parked after its authorization, by asking again for something else."""
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    worker.authorize(work, asked.approval_id)
    worker.ask(work, proposal=OTHER_DIFF, park=True)
    assert cancel(house, run_id) == "Cancelled"
    step = house.steps(run_id)["publish"]
    assert house.attempt(work.attempt_id).state == "Uncertain"
    assert (step.state, step.attention) == ("Cancelled", "uncertain")


@pytest.mark.requirement("LSE-12")
@pytest.mark.parametrize(("workflow", "attention"), [("single", ""), ("gated", "uncertain")])
def test_a_holder_that_never_answers_is_uncertain(house: House, workflow: str, attention: str) -> None:
    run_id = house.run(workflow)
    work = house.hand().take()
    cancel(house, run_id)
    LeaseExpiryReconciler().run_once(house.tenant)
    assert house.state(run_id) == "Cancelling"
    house.let_lapse(work.lease_id)
    LeaseExpiryReconciler().run_once(house.tenant)
    [step] = house.steps(run_id).values()
    assert (house.state(run_id), house.attempt(work.attempt_id).state) == ("Cancelled", "Uncertain")
    assert (step.state, step.attention) == ("Cancelled", attention)


@pytest.mark.requirement("RUN-22", "API-12")
def test_the_first_intent_stands(house: House) -> None:
    run_id = house.run()
    work = house.hand().take()
    assert work
    cancel(house, run_id, reason="first")
    assert cancel(house, run_id, house.world.requester, reason="second") == "Cancelling"
    with reading(house.system):
        [intent] = CancellationIntent.objects.filter(run_id=run_id)
    assert (intent.reason, intent.requested_by) == ("first", house.world.operator.actor.subject)


@pytest.mark.requirement("RUN-18", "RUN-25")
def test_refuses_who_may_not_and_what_is_over(house: House) -> None:
    run_id = house.run()
    for who in (house.world.observer, house.world.reviewer, house.world.finance):
        with pytest.raises(InsufficientRole):
            cancel(house, run_id, who)
    with pytest.raises(InvalidInput):
        cancel(house, run_id, reason="  ")
    worker = house.hand()
    worker.report(worker.take(), output=1)
    with pytest.raises(RunEnded):
        cancel(house, run_id)
    failed = house.run()
    worker.fail(worker.take(), "permanent")
    with pytest.raises(RunEnded):
        cancel(house, failed)
    assert cancel(house, house.run(), house.world.service) == "Cancelled", "Its owner requested it."


@pytest.mark.requirement("RUN-14")
def test_a_waiting_run_is_cancelled_with_what_it_waits_for(house: House) -> None:
    run_id = house.run("gates")
    worker = house.hand()
    one, two = worker.poll()
    worker.acquire(one)
    worker.acquire(two)
    worker.ask(one, park=True)
    worker.ask(two)
    assert cancel(house, run_id) == "Cancelling"
    assert {a.state for a in house.approvals(run_id)} == {"Cancelled"}
    worker.report(two, "Cancelled", "cancellation")
    assert house.state(run_id) == "Cancelled"


def test_a_run_that_takes_too_long_fails_but_not_while_it_waits_for_a_person(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    deadline = house.row(run_id).deadline_at
    asked = worker.ask(work, park=True)
    house._owner(
        "UPDATE runs_run SET waiting_since = waiting_since - interval '2 hours', "
        "clock_since = clock_since - interval '2 hours', started_at = started_at - interval '2 hours', "
        "deadline_at = deadline_at - interval '2 hours' WHERE id = %s",
        [run_id],
    )
    LeaseExpiryReconciler().run_once(house.tenant)
    assert house.state(run_id) == "WaitingForApproval"
    house.decide(asked.approval_id)
    left = house.row(run_id).deadline_at - deadline
    assert left.total_seconds() < 60, "Waiting for a person moved the deadline by as much."
    assert not enforce_deadline(house.system, run_id=run_id)
    house.pass_deadline(run_id)
    LeaseExpiryReconciler().run_once(house.tenant)
    assert (house.state(run_id), house.row(run_id).failure_class) == ("Failed", "permanent")
    assert worker.poll() == []


@pytest.mark.requirement("RUN-10", "RUN-14")
def test_cancelling_needs_no_broker(house: House, settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers at its address: stopping is slower to be heard of, and not less true."""
    worker = house.hand()
    held, asks, accepted = house.run(), house.run("gated"), house.accept()
    works = {work.run_id: work for work in worker.poll()}
    for work in works.values():
        worker.acquire(work)
    worker.ask(works[asks], park=True)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    away = hints.connect(socket_timeout=0.25)
    monkeypatch.setattr(hints, "broker", lambda: away)
    monkeypatch.setattr(hints, "_silent_until", 0.0)
    api = Api.as_(house.world.operator)
    for run_id, state in ((held, "Cancelling"), (asks, "Cancelled"), (accepted, "Cancelled")):
        assert api.post(f"/factory/runs/{run_id}/cancel", {"reason": "enough"}).status_code == 202
        assert house.state(run_id) == state
    assert hints._silent_until > 0, "It was tried to tell the broker."
    assert worker.acquire(works[held]).cancel_requested
    worker.report(works[held], "Cancelled", "cancellation")
    deliver(house)
    assert house.state(held) == "Cancelled"
    assert violations(house.tenant) == []
