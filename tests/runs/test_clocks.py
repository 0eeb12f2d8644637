"""The clock of a run stands still while a person or an Operator is asked, it is frozen, or suspended."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connections, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from factory.kernel.clock import now
from factory.kernel.tenancy import reading
from projects.commands import resume_project, suspend_project
from runs.commands import enforce_deadline, freeze_run, lift_freeze, resolve_step
from runs.engine import APPROVAL, FROZEN, OPERATOR, SUSPENDED, Clock
from runs.reconcilers import LeaseExpiryReconciler
from runs.selectors.clocks import clock_of, clocks_of
from tests.support.acts import deliver
from tests.support.evidence import violations
from tests.support.running import House

REASONS = (APPROVAL, FROZEN, OPERATOR, SUSPENDED)
START = datetime(2026, 2, 28, 23, 59, tzinfo=UTC)
LIMIT = timedelta(minutes=30)


class Reference:
    """Counts minute by minute, and knows no intervals."""

    def __init__(self) -> None:
        self.at = self.since = START
        self.worked, self.stops = timedelta(0), set[str]()

    def go_to(self, at: datetime) -> None:
        if not self.stops:
            self.worked += at - self.at
            self.since = at
        self.at = at


def toggled(clock: Clock, reference: Reference, reason: str) -> Clock:
    """The same clock, after one thing that stops it has begun, or has ended."""
    begins, at = reason not in reference.stops, reference.at
    (reference.stops.add if begins else reference.stops.remove)(reason)
    if reason != SUSPENDED:
        return clock.changed(reference.stops - {SUSPENDED}, at)
    *before, last = [*clock.suspensions, *([(at, None)] if begins else [])]
    return Clock(clock.due, clock.since, clock.because, [*before, last if begins else (last[0], at)])


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.sampled_from(REASONS)), max_size=25), st.integers(0, 60))
def test_whatever_stops_the_clock_in_any_order_no_second_of_it_counts_and_none_twice(
    moves: Sequence[tuple[int, str]], later: int
) -> None:
    clock, reference = Clock(START + LIMIT, START), Reference()
    over = False
    for minutes, reason in [*moves, (later, SUSPENDED)]:
        reference.go_to(reference.at + timedelta(minutes=minutes))
        at = reference.at
        assert clock.left(at) == LIMIT - reference.worked
        assert clock.is_over(at) == (reference.worked >= LIMIT)
        assert not over or clock.is_over(at), "what is over stays over"
        over = clock.is_over(at)
        stop = clock.stop(at)
        assert (set(stop.because) if stop else set()) == reference.stops
        assert stop is None or reference.since <= stop.since <= at, "since then it has not run"
        assert clock.due <= clock.due_at(at), "what is stored is never later than the truth"
        assert clock.changed(clock.because, at).left(at) == clock.left(at)
        clock = toggled(clock, reference, reason)
    assert clock.left(reference.at) == LIMIT - reference.worked


pytestmark = pytest.mark.slow


def left(house: House, run_id: UUID) -> float:
    """Minutes that the run has left."""
    with reading(house.system):
        clock = clock_of(house.row(run_id))
        assert clock is not None
        return clock.left(now()).total_seconds() / 60


def stops(house: House, run_id: UUID) -> tuple[str, ...]:
    with reading(house.system):
        clock = clock_of(house.row(run_id))
        assert clock is not None
        found = clock.stop(now())
    return found.because if found else ()


def pass_time(house: House, run_id: UUID, minutes: int) -> None:
    """So many minutes pass for the run and its project; nothing else is older afterwards."""
    by = "- make_interval(mins => %s)"
    house._owner(
        f"UPDATE runs_run SET started_at = started_at {by}, deadline_at = deadline_at {by}, "
        f"clock_since = clock_since {by}, waiting_since = waiting_since {by} WHERE id = %s",
        [minutes, minutes, minutes, minutes, run_id],
    )
    house._owner(
        f"UPDATE projects_suspension SET suspended_at = suspended_at {by}, resumed_at = resumed_at {by} "
        "WHERE project_id = %s",
        [minutes, minutes, house.world.project],
        unpinned=True,
    )


def suspend(house: House) -> None:
    suspend_project(house.world.workspace_admin, project_id=house.world.project, reason="quiet")


def resume(house: House) -> None:
    resume_project(house.world.workspace_admin, project_id=house.world.project, reason="go on")


def lift(house: House, run_id: UUID) -> None:
    lift_freeze(house.world.platform_admin, run_id=run_id, reason="looked at it")


def in_doubt(house: House) -> UUID:
    """A run whose Operator has to say whether an effect happened."""
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    worker.authorize(work, asked.approval_id)
    worker.report(work, "Uncertain", "uncertain", reason="the line went dead")
    return run_id


def settle(house: House, run_id: UUID, resolution: str = "effect-did-not-happen") -> None:
    [step] = [step for step in house.steps(run_id).values() if step.attention == "uncertain"]
    resolve_step(
        house.world.operator,
        run_id=run_id,
        step_id=step.id,
        resolution=resolution,
        evidence="looked",
        version=step.version,
    )


@pytest.mark.parametrize("reason", REASONS)
def test_an_hour_for_which_the_clock_stands_still_does_not_end_a_run_of_half_an_hour(
    house: House, reason: str
) -> None:
    worker = None
    if reason == OPERATOR:
        run_id = in_doubt(house)
    else:
        run_id, worker = house.run("gated"), house.hand()
        work = worker.take()
    if reason == APPROVAL:
        asked = worker.ask(work, park=True)
    if reason == FROZEN:
        freeze_run(house.system, run_id=run_id, findings=["A1"])
    if reason == SUSPENDED:
        suspend(house)
    assert stops(house, run_id) == (reason,)
    before = left(house, run_id)
    pass_time(house, run_id, 60)
    LeaseExpiryReconciler().run_once(house.tenant)
    assert not house.row(run_id).finished_at
    assert violations(house.tenant) == []
    if reason == OPERATOR:
        settle(house, run_id)
    if reason == APPROVAL:
        house.decide(asked.approval_id)
    if reason == FROZEN:
        lift(house, run_id)
    if reason == SUSPENDED:
        resume(house)
    LeaseExpiryReconciler().run_once(house.tenant)
    assert (house.state(run_id), stops(house, run_id)) == ("Running", ())
    assert 0 <= before - left(house, run_id) < 0.5
    assert violations(house.tenant) == []
    pass_time(house, run_id, 60)
    LeaseExpiryReconciler().run_once(house.tenant)
    row = house.row(run_id)
    assert (row.state, row.failure_class) == ("Failed", "permanent"), "an hour of its own ends it"
    assert violations(house.tenant) == []


def test_what_overlaps_counts_once_and_the_last_to_end_starts_the_clock(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    pass_time(house, run_id, 10)
    suspend(house)
    pass_time(house, run_id, 10)
    asked = worker.ask(work, park=True)
    pass_time(house, run_id, 10)
    freeze_run(house.system, run_id=run_id, findings=["A1"])
    pass_time(house, run_id, 10)
    assert stops(house, run_id) == (APPROVAL, FROZEN, SUSPENDED)
    resume(house)
    pass_time(house, run_id, 10)
    lift(house, run_id)
    assert stops(house, run_id) == (APPROVAL,)
    pass_time(house, run_id, 10)
    house.decide(asked.approval_id)
    assert (house.state(run_id), stops(house, run_id)) == ("Running", ())
    assert 19.5 < left(house, run_id) <= 20, "it has worked ten, and has stood still for fifty"
    assert violations(house.tenant) == []


def test_after_a_suspension_work_goes_on_where_the_time_seemed_to_be_over(house: House) -> None:
    run_id = house.run("row")
    worker = house.hand()
    worker.report(worker.take(), output=1)
    pass_time(house, run_id, 20)
    suspend(house)
    pass_time(house, run_id, 60)
    resume(house)
    deliver(house)
    [work] = worker.poll()
    assert work.run_id == run_id
    assert 9.5 < left(house, run_id) <= 10
    assert not enforce_deadline(house.system, run_id=run_id)


def test_a_step_is_dispatched_while_an_operator_has_let_the_time_of_its_sibling_pass(house: House) -> None:
    run_id, worker = house.run("mixed"), house.hand()
    gate, side = sorted(worker.poll(), key=lambda work: work.snapshot["stepKey"])
    worker.acquire(gate)
    worker.acquire(side)
    asked = worker.ask(gate)
    house.decide(asked.approval_id)
    worker.authorize(gate, asked.approval_id)
    worker.report(gate, "Uncertain", "uncertain")
    pass_time(house, run_id, 60)
    worker.fail(side)
    house.make_due(run_id)
    assert worker.take().step_id == side.step_id


def test_the_word_of_an_operator_after_the_time_of_the_run_ends_it(house: House) -> None:
    """The time was over before its clock was stopped: what is over stays over."""
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    worker.authorize(work, asked.approval_id)
    pass_time(house, run_id, 60)
    worker.report(work, "Uncertain", "uncertain")
    LeaseExpiryReconciler().run_once(house.tenant)
    assert house.state(run_id) == "Running", "nothing runs out while the clock stands still"
    settle(house, run_id)
    row = house.row(run_id)
    assert (row.state, row.failure_class, len(house.attempts(run_id))) == ("Failed", "permanent", 1)
    assert violations(house.tenant) == []


def forget_clock(house: House, run_id: UUID) -> None:
    """Leave the row as the release before does, which knows no clock."""
    house._owner("UPDATE runs_run SET clock_since = NULL, clock_because = '{}' WHERE id = %s", [run_id])


def test_rows_from_before_have_the_clock_that_they_should_have(house: House) -> None:
    doubtful, over = in_doubt(house), house.run()
    worker = house.hand()
    worker.report(worker.take(), output=1)
    frozen, waiting, plain, accepted = house.run(), house.run("gated"), house.run(), house.accept()
    for work in worker.poll():
        worker.acquire(work)
        if work.run_id == waiting:
            worker.ask(work, park=True)
    freeze_run(house.system, run_id=frozen, findings=["A1"])
    runs = (doubtful, over, frozen, waiting, plain)
    kept = {run_id: house.row(run_id) for run_id in runs}
    for run_id in (*runs, accepted):
        forget_clock(house, run_id)
    assert violations(house.tenant) == []
    with reading(house.system):
        clocks = clocks_of([house.row(run_id) for run_id in (*runs, accepted)])
    assert set(clocks) == set(runs)
    for run_id in runs:
        assert list(clocks[run_id].because) == kept[run_id].clock_because
    for run_id in (over, waiting, frozen):
        assert clocks[run_id].since == kept[run_id].clock_since


def test_a_run_that_the_release_before_has_started_goes_on_with_its_time(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    forget_clock(house, run_id)
    before = left(house, run_id)
    asked = worker.ask(work, park=True)
    assert (stops(house, run_id), house.row(run_id).clock_because) == ((APPROVAL,), [APPROVAL])
    forget_clock(house, run_id)  # it may wait since before, too
    assert stops(house, run_id) == (APPROVAL,)
    pass_time(house, run_id, 60)
    assert violations(house.tenant) == []
    house.decide(asked.approval_id)
    assert 0 <= before - left(house, run_id) < 0.5
    assert violations(house.tenant) == []
    forget_clock(house, run_id)
    pass_time(house, run_id, 60)
    LeaseExpiryReconciler().run_once(house.tenant)
    assert house.row(run_id).failure_class == "permanent"


def test_what_the_release_before_moves_leaves_no_clock_that_is_wrong(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    worker.ask(worker.take(), park=True)
    with transaction.atomic(using="owner"), connections["owner"].cursor() as cursor:
        cursor.execute("ALTER TABLE runs_run NO FORCE ROW LEVEL SECURITY")
        cursor.execute(
            "UPDATE runs_run SET state = 'Running', waiting_since = NULL, updated_at = clock_timestamp() "
            "WHERE id = %s RETURNING clock_since, clock_because", [run_id],
        )  # fmt: skip
        assert cursor.fetchone() == (None, [])
        transaction.set_rollback(True, using="owner")
    house._owner("UPDATE runs_run SET frozen_at = clock_timestamp() WHERE id = %s", [run_id])
    assert house.row(run_id).clock_since is None
    assert violations(house.tenant) == [], "nobody is to look at it"
    assert stops(house, run_id) == (APPROVAL, FROZEN)


def test_the_release_before_may_add_a_run_and_say_nothing_of_a_clock() -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT column_default FROM information_schema.columns "
            "WHERE table_name = 'runs_run' AND column_name = 'clock_because'"
        )
        assert cursor.fetchone() != (None,)
