"""Events of the engine and of money as second chances: done if it was not done, and nothing otherwise."""

import sys
from uuid import uuid4

import pytest

import usage.states as usage
from factory.kernel.errors import InvalidInput
from factory.kernel.hashing import digest
from factory.kernel.models import IdempotencyRecord, JournalEntry, OutboxEvent
from factory.kernel.tenancy import reading
from factory.messaging.relay import handlers
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import Handlers
from runs import handlers as names
from runs import states
from runs.commands import (
    cancel_run,
    complete_run_when_told,
    create_step_and_dispatch,
    fail_run_on_budget_denial,
    fail_run_when_told,
    release_first_step,
    start_run,
)
from tests.support.evidence import counts, outbox
from tests.support.running import House
from usage.selectors import reservation_of

pytestmark = pytest.mark.slow

SECOND_CHANCES = {
    states.STEP_READY: names.CREATE,
    states.WORKFLOW_RUN_COMPLETED: names.COMPLETE,
    states.WORKFLOW_RUN_FAILED: names.FAIL,
    usage.BUDGET_RESERVED: names.RELEASE,
    usage.BUDGET_DENIED: names.DENY,
}


@pytest.mark.requirement("EVT-29", "EVT-30", "EVT-31")
def test_each_event_of_engine_and_money_has_its_handler() -> None:
    for topic, name in SECOND_CHANCES.items():
        assert name in [handler.name for handler in handlers(topic)]


@pytest.mark.requirement("EVT-31", "WFE-12")
def test_what_the_first_chance_did_is_not_done_again(house: House) -> None:
    worker = house.hand()
    done, failed = house.run("single"), house.run("stubborn")
    for work in worker.poll():
        worker.acquire(work)
        if work.run_id == done:
            worker.report(work, output=1)
        else:
            worker.fail(work, "permanent")
    with reading(house.system):
        before = JournalEntry.objects.exclude(operation="StartRun").count()
    drain(Handlers(), house.tenant)
    with reading(house.system):
        assert JournalEntry.objects.exclude(operation="StartRun").count() == before
        assert not OutboxEvent.objects.filter(handled_at=None).exists()
        kept = set(IdempotencyRecord.objects.values_list("operation", flat=True))
    assert {names.CREATE, names.COMPLETE, names.FAIL, names.RELEASE} <= kept
    assert (house.state(done), house.state(failed)) == ("Completed", "Failed")


@pytest.fixture
def half_started(house: House, monkeypatch: pytest.MonkeyPatch) -> House:
    """A house whose StartRun sets money aside and forgets the steps, as a repair could leave a run."""
    monkeypatch.setattr(sys.modules["runs.operations.spending"], "advance", lambda ctx, run: None)
    return house


@pytest.mark.requirement("STP-09")
def test_a_step_that_is_missing_is_made_once_however_often_it_is_told(half_started: House) -> None:
    run_id = half_started.run("diamond")
    assert half_started.steps(run_id) == {}
    key = f"{run_id}/a"
    told = [create_step_and_dispatch(half_started.system, run_id=run_id, step_run_id=key) for _ in range(3)]
    assert told == ["done", "nothing to do", "nothing to do"]
    assert half_started.step_states(run_id) == {"a": "Pending"}
    assert create_step_and_dispatch(half_started.system, run_id=run_id, step_run_id=f"{run_id}/d") == "done"
    assert half_started.step_states(run_id) == {"a": "Pending"}, "the plan says what is ready, no event does"
    assert half_started.hand().take().run_id == run_id


@pytest.mark.requirement("EVT-29")
def test_a_reservation_without_its_run_is_taken_up(half_started: House) -> None:
    run_id = half_started.run("single")
    half_started._owner("UPDATE runs_run SET budget_reservation_id = NULL WHERE id = %s", [run_id])
    with reading(half_started.system):
        reserved = reservation_of(run_id)
    assert reserved is not None
    house = half_started
    assert release_first_step(house.system, run_id=run_id, reservation_id=uuid4()) == "nothing to do"
    assert release_first_step(house.system, run_id=run_id, reservation_id=reserved.id) == "done"
    assert release_first_step(house.system, run_id=run_id, reservation_id=reserved.id) == "nothing to do"
    assert house.row(run_id).budget_reservation_id == reserved.id
    assert house.step_states(run_id) == {"look": "Pending"}
    assert house.hand().take().run_id == run_id


@pytest.mark.requirement("EVT-30")
def test_a_denial_fails_a_run_that_still_waits_for_its_money_and_no_other(house: House) -> None:
    waiting, at_work = house.accept(), house.run()
    assert fail_run_on_budget_denial(house.system, run_id=waiting, reason="nothing left") == "done"
    run = house.row(waiting)
    assert (run.state, run.failure_class, run.reason) == ("Failed", "budget", "nothing left")
    assert fail_run_on_budget_denial(house.system, run_id=waiting, reason="again") == "nothing to do"
    assert fail_run_on_budget_denial(house.system, run_id=at_work, reason="late") == "nothing to do"
    assert house.state(at_work) == "Accepted"
    assert start_run(house.system, run_id=waiting) == "Failed"


@pytest.mark.requirement("WFE-12", "EVT-31", "WFE-06")
def test_the_engine_outside_ends_a_run_that_goes_on_and_moves_none_that_is_over(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, run_id, other = house.hand(), house.run(), house.run()
    first, second = worker.poll()
    for work in (first, second):
        worker.acquire(work)
    assert complete_run_when_told(house.system, run_id=run_id) == "nothing to do", "a step is still at work"
    with monkeypatch.context() as broken:
        broken.setattr("runs.operations.settling.advance", lambda ctx, run: None)
        worker.report(first if first.run_id == run_id else second, output=7)
    assert house.state(run_id) == "Running"
    assert complete_run_when_told(house.system, run_id=run_id) == "done"
    done = house.row(run_id)
    assert (done.state, done.output, done.output_hash) == ("Completed", 7, digest(7))
    told = dict(outbox(house.system, run_id))
    assert told[states.RUN_COMPLETED]["outcomeHash"] == done.output_hash
    failing = {"failure_class": "permanent", "reason": "the engine gave up"}
    with pytest.raises(InvalidInput):
        fail_run_when_told(house.system, run_id=other, failure_class="bad luck", reason="x")
    assert fail_run_when_told(house.system, run_id=other, **failing) == "done"
    assert [topic.rsplit(".")[-1] for topic, _ in outbox(house.system, other)][-3:].count("run-failed") == 1
    cancelled = house.run()
    cancel_run(house.system, run_id=cancelled, reason="stop")
    before = counts(house.system)
    for over in (run_id, other, cancelled):
        assert complete_run_when_told(house.system, run_id=over) == "nothing to do"
        assert fail_run_when_told(house.system, run_id=over, **failing) == "nothing to do"
        key = f"{over}/look"
        assert create_step_and_dispatch(house.system, run_id=over, step_run_id=key) == "nothing to do"
    assert counts(house.system) == before


@pytest.mark.requirement("WFE-07")
def test_a_run_fails_as_its_steps_say_and_only_else_as_the_event_does(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, run_id, other = house.hand(), house.run(), house.run()
    works = {work.run_id: work for work in worker.poll()}
    for work in works.values():
        worker.acquire(work)
    with monkeypatch.context() as broken:
        broken.setattr("runs.operations.settling.advance", lambda ctx, run: None)
        worker.fail(works[run_id], "validation")
    for each in (run_id, other):
        told = {"failure_class": "budget", "reason": "so the event says"}
        assert fail_run_when_told(house.system, run_id=each, **told) == "done"
    by_row, by_event = house.row(run_id), house.row(other)
    assert (by_row.failure_class, "it broke" in by_row.reason) == ("validation", True)
    assert (by_event.failure_class, by_event.reason) == ("budget", "so the event says")
    told = [data for topic, data in outbox(house.system, run_id) if topic == states.WORKFLOW_RUN_FAILED]
    assert [data["failureClass"] for data in told] == ["validation"]
