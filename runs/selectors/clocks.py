"""Whether the clock of a run runs, what stops it, and how much time it has left: one answer for everybody."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Min

from projects.selectors import paused, suspensions
from runs.engine import APPROVAL, FROZEN, OPERATOR, SUSPENDED, Clock
from runs.models import Freeze, Run, Step
from runs.selectors.views import ClockView
from runs.states import Attention, RunState

STOPS = (APPROVAL, FROZEN, OPERATOR, SUSPENDED)
WORDS = {
    APPROVAL: "a person is asked to decide",
    FROZEN: "it is frozen",
    OPERATOR: "an Operator is to settle what is uncertain",
    SUSPENDED: "the project is suspended",
}


def clock_of(run: Run) -> Clock | None:
    """Return the clock of a run; None before its first dispatch."""
    return clocks_of([run]).get(run.id)


def clocks_of(runs: Iterable[Run]) -> dict[UUID, Clock]:
    """Return the clocks of many runs by their ids, with one query; of none that has not begun."""
    begun = {run.id: run for run in runs if run.deadline_at is not None}
    work_out(begun.values())
    if not begun:
        return {}
    oldest = min(run.clock_since for run in begun.values() if run.clock_since is not None)
    spans = suspensions((run.project_id for run in begun.values()), oldest)
    clocks = {run.id: run.clock(spans.get(run.project_id, ())) for run in begun.values()}
    return {run_id: clock for run_id, clock in clocks.items() if clock is not None}


def work_out(runs: Iterable[Run]) -> None:
    """Fill in, unsaved, the clock of every run that has begun and whose clock nobody has noted.

    Such rows are from before there was a clock, or from a process that knows none. The time that they waited
    for people before is in their deadline already; of what stops them now, all counts.
    """
    unknown = [run for run in runs if run.deadline_at is not None and run.clock_since is None]
    if not unknown:
        return
    uncertain = Step.objects.filter(run_id__in=[run.id for run in unknown], attention=Attention.UNCERTAIN)
    since = dict(uncertain.values("run_id").annotate(since=Min("updated_at")).values_list("run_id", "since"))
    for run in unknown:
        run.clock_because = what_stops(run, uncertain=run.id in since)
        run.clock_since = _stands_since(run, since.get(run.id))


def _stands_since(run: Run, uncertain: datetime | None) -> datetime:
    if run.finished_at is not None:
        return run.finished_at
    if run.waiting_since is not None:
        return run.waiting_since
    stops = [at for at in (run.frozen_at, uncertain) if at is not None]
    return max(run.updated_at, min(stops)) if stops and run.is_working else run.updated_at


def out_of_time(run: Run, at: datetime) -> bool:
    """Return whether the time of a run is over. The stored deadline is never later than the true one."""
    if run.deadline_at is None or at < run.deadline_at:
        return False
    clock = clock_of(run)
    return clock is not None and clock.is_over(at)


def stands_still(run: Run, at: datetime) -> bool:
    """Return whether something stops the clock of a run at `at`."""
    clock = clock_of(run)
    return clock is not None and clock.stop(at) is not None


def what_stops(run: Run, *, uncertain: bool) -> list[str]:
    """Return what stops the clock of a run by itself, besides the suspensions of its project.

    `uncertain`: an Operator is to settle a step. Only a run at work is stopped: whether the time of one is
    over that ends, or has ended, nobody asks.
    """
    if not run.is_working:
        return []
    stops = {
        APPROVAL: run.state == RunState.WAITING,
        FROZEN: run.frozen_at is not None,
        OPERATOR: uncertain,
    }
    return [reason for reason, holds in stops.items() if holds]


def has_uncertain_step(run: Run) -> bool:
    """Return whether an Operator is to settle a step of the run."""
    return bool(Step.objects.filter(run_id=run.id, attention=Attention.UNCERTAIN).exists())


def clock_view(run: Run, clock: Clock | None, at: datetime) -> ClockView:
    """Return what the API tells of a clock; of a run that is over nothing stands still any more."""
    stop = clock.stop(at) if clock is not None and not run.is_terminal else None
    if clock is None or stop is None:
        return ClockView()
    return ClockView(stop.since, stop.because, int(clock.left(at).total_seconds()))


def why_it_stands(clock: Clock | None, at: datetime) -> str:
    """Say since when the clock of a run stands still, and why; empty while it runs."""
    stop = clock.stop(at) if clock is not None else None
    if stop is None:
        return ""
    *first, last = (WORDS[reason] for reason in stop.because)
    reasons = f"{', '.join(first)} and {last}" if first else last
    return f"stands still since {stop.since:%d %b %H:%M:%S} UTC: {reasons}"


def frozen_for(run_id: UUID, due: datetime, at: datetime) -> timedelta:
    """Return by how much the freezes of a run had, at `at`, put off what was due at `due`.

    What was over before a freeze began stays over: it is not put off. The time in which the project was
    suspended as well is not counted: that has put it off already.
    """
    put_off = timedelta()
    freezes = Freeze.objects.select_related("run").filter(run_id=run_id, frozen_at__lt=at)
    for freeze in freezes.order_by("frozen_at"):
        if freeze.frozen_at >= due + put_off:
            break
        end = min(freeze.lifted_at or at, at)
        put_off += end - freeze.frozen_at - paused(freeze.run.project_id, freeze.frozen_at, end, end)
    return put_off
