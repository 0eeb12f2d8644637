"""A step that takes longer than its time: who holds it stops, and it is tried again."""

import pytest

from runs.commands import cancel_run
from runs.errors import LeaseOver, StaleFencingToken
from runs.reconcilers import LeaseExpiryReconciler
from runs.selectors.answers import OfferedAttempt
from tests.support.evidence import journal, violations
from tests.support.hands import Hand
from tests.support.receipts import effect, receipt
from tests.support.running import House

pytestmark = pytest.mark.slow


def pass_time(house: House, work: OfferedAttempt, seconds: int = 10) -> None:
    """The holder's minute, which is all that the step gives, was over so many seconds ago."""
    house._owner(
        "UPDATE runs_lease SET expires_at = statement_timestamp() - make_interval(secs => %s), "
        "acquired_at = statement_timestamp() - make_interval(secs => %s) WHERE id = %s",
        [seconds, seconds + 60, work.lease_id],
    )


def timed_out(house: House, workflow_id: str = "brief") -> tuple[Hand, OfferedAttempt]:
    house.run(workflow_id)
    worker = house.hand()
    work = worker.take()
    pass_time(house, work)
    return worker, work


@pytest.mark.parametrize("word", ["Cancelled", "Failed"])
def test_giving_up_in_time_is_tried_again_until_the_attempts_are_used_up(house: House, word: str) -> None:
    worker, work = timed_out(house)
    failure_class = {"Cancelled": "cancellation", "Failed": "transient"}[word]
    for number in (1, 2, 3):
        grant = worker.acquire(work)
        assert (grant.stop, grant.cancel_requested) == ("timed-out", False)
        told = worker.report(work, word, failure_class, reason="told to stop")
        assert told.outcome == "TimedOut"
        attempt = house.attempt(work.attempt_id)
        assert (attempt.failure_class, attempt.number) == ("transient", number)
        assert attempt.reason == "It took longer than the 1 minute of its step."
        assert journal(house.system, attempt.id)[-1] == ("Open", "TimedOut", "OutcomeReported")
        assert worker.report(work, word, failure_class, reason="told to stop") == told, "said twice"
        if number < 3:
            assert (house.state(work.run_id), house.step_states(work.run_id)) == (
                "Running",
                {"look": "Pending"},
            )
            house.make_due(work.run_id)
            work = worker.take()
            pass_time(house, work)
    run = house.row(work.run_id)
    assert (run.state, run.failure_class) == ("Failed", "transient")
    assert "the last of 3 attempts" in run.reason
    assert violations(house.tenant) == []


@pytest.mark.parametrize("renews", [True, False])
def test_who_just_stops_is_followed_by_another(house: House, renews: bool) -> None:
    """Renewals beyond the time move nothing, so that a hung task with a living thread ends as well."""
    worker, work = timed_out(house)
    if renews:
        assert worker.acquire(work).stop == "timed-out"
    pass_time(house, work, seconds=40)
    LeaseExpiryReconciler().run_once(house.tenant)
    attempt = house.attempt(work.attempt_id)
    assert (attempt.state, house.step_states(work.run_id)) == ("TimedOut", {"look": "Pending"})
    assert attempt.reason == "It took longer than the 1 minute of its step."
    house.make_due(work.run_id)
    worker.report(worker.take(), output=1)
    assert house.state(work.run_id) == "Completed"
    assert violations(house.tenant) == []


@pytest.mark.parametrize(
    ("outcome", "failure_class", "becomes"),
    [
        ("Succeeded", None, "Succeeded"),
        ("Failed", "permanent", "Failed"),
        ("Failed", "validation", "Failed"),
        ("Uncertain", "uncertain", "Uncertain"),
    ],
)
def test_what_is_no_giving_up_counts_as_it_was_said(
    house: House, outcome: str, failure_class: str | None, becomes: str
) -> None:
    worker, work = timed_out(house)
    worker.report(work, outcome, failure_class, output=1 if failure_class is None else None)
    assert house.attempt(work.attempt_id).state == becomes
    assert violations(house.tenant) == []


@pytest.mark.parametrize("took_place", [None, False])
def test_after_an_authorization_giving_up_is_uncertain_unless_nothing_was_done(
    house: House, took_place: bool | None
) -> None:
    run_id, worker = house.run("hasty"), house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    worker.authorize(work, asked.approval_id)
    pass_time(house, work)
    receipts = [] if took_place is None else [effect(asked.approval_id, tookPlace=took_place)]
    worker.report(work, "Cancelled", "cancellation", receipts=receipts)
    state = {None: "Uncertain", False: "TimedOut"}[took_place]
    assert (house.attempt(work.attempt_id).state, house.state(run_id)) == (state, "Running")
    assert house.steps(run_id)["publish"].attention == ("uncertain" if took_place is None else "")
    assert violations(house.tenant) == []


def given_up(house: House, worker: Hand, work: OfferedAttempt, obeys: bool) -> None:
    """The time of the step is over, and its holder does as it is told, or falls silent."""
    pass_time(house, work, seconds=10 if obeys else 40)
    if not obeys:
        LeaseExpiryReconciler().run_once(house.tenant)
        return
    assert worker.acquire(work).stop == "timed-out"
    told = worker.report(work, "Failed", "transient", reason="told to stop", receipts=[receipt()])
    assert (told.outcome, told.outcome_hash) == ("Parked", "")
    with pytest.raises(StaleFencingToken):
        worker.report(work, "Failed", "transient", reason="told to stop")


@pytest.mark.parametrize("obeys", [True, False])
def test_a_question_that_a_person_looks_at_outlives_the_time_of_its_step(house: House, obeys: bool) -> None:
    run_id, worker = house.run("hasty"), house.hand()
    for _ in range(2):
        worker.fail(worker.take(), "transient")
        house.make_due(run_id)
    work = worker.take()
    asked = worker.ask(work)
    given_up(house, worker, work, obeys)
    attempt = house.attempt(work.attempt_id)
    assert (attempt.state, attempt.number, attempt.outcome_hash) == ("Parked", 3, "")
    assert [view.id for view in house.pending(run_id)] == [asked.approval_id]
    assert (house.state(run_id), worker.poll()) == ("WaitingForApproval", [])
    assert violations(house.tenant) == []
    house.decide(asked.approval_id)
    again = worker.take()
    worker.authorize(again, asked.approval_id)
    worker.report(again, output=1, receipts=[effect(asked.approval_id)])
    assert house.state(run_id) == "Completed"
    assert violations(house.tenant) == []


@pytest.mark.parametrize("obeys", [True, False])
def test_a_yes_that_nobody_used_in_time_lasts_as_long_as_attempts_are_left(house: House, obeys: bool) -> None:
    run_id, worker = house.run("hasty"), house.hand()
    work = worker.take()
    house.decide(worker.ask(work).approval_id)
    for left in (2, 1):
        given_up(house, worker, work, obeys)
        assert house.attempt(work.attempt_id).state == "Parked", left
        work = worker.take()
    pass_time(house, work)
    assert worker.report(work, "Cancelled", "cancellation").outcome == "TimedOut"
    assert (house.state(run_id), house.row(run_id).failure_class) == ("Failed", "transient")
    assert violations(house.tenant) == []


def test_a_cancelled_run_says_so_whatever_the_time(house: House) -> None:
    worker, work = timed_out(house)
    cancel_run(house.world.operator, run_id=work.run_id, reason="stop")
    grant = worker.acquire(work)
    assert (grant.stop, grant.cancel_requested) == ("cancelled", True)
    worker.report(work, "Cancelled", "cancellation")
    assert (house.attempt(work.attempt_id).state, house.state(work.run_id)) == ("Cancelled", "Cancelled")
    assert violations(house.tenant) == []


def test_who_stops_in_its_time_by_itself_still_cancels_its_step(house: House) -> None:
    house.run("brief")
    worker = house.hand()
    work = worker.take()
    worker.report(work, "Cancelled", "cancellation")
    assert (house.state(work.run_id), house.row(work.run_id).failure_class) == ("Failed", "cancellation")


def test_nothing_is_authorized_once_the_time_of_the_step_is_over(house: House) -> None:
    worker = house.hand()
    for taken_in_time in (True, False):
        house.run("hasty")
        work = worker.take()
        asked = worker.ask(work).approval_id
        house.decide(asked)
        taken = worker.authorize(work, asked) if taken_in_time else None
        pass_time(house, work)
        if taken is not None:
            assert worker.authorize(work, asked) == taken, "a lost answer is told again"
            continue
        with pytest.raises(LeaseOver, match="longer than the 1 minute"):
            worker.authorize(work, asked)
    assert violations(house.tenant) == []
