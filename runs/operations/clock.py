"""Noting what stops the clock of a run, whenever that may have changed."""

from datetime import datetime

from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.recording import save
from runs.engine import OPERATOR
from runs.models import Run
from runs.selectors.clocks import clock_of, has_uncertain_step, what_stops


def keep_clock(run: Run, at: datetime) -> None:
    """Let the clock of a locked run stand still from `at` on exactly if something stops it; unsaved.

    For its own transitions, which settle no uncertain step. At its end everything is counted, so that its
    time is known for good.
    """
    _stop(run, at, uncertain=OPERATOR in run.clock_because)


@operation
def note_clock(ctx: Context, run: Run, at: datetime) -> None:
    """Do the same, saved, after what is no transition of the run itself: a step became uncertain, say."""
    _stop(run, at, uncertain=has_uncertain_step(run))
    save(run)


def _stop(run: Run, at: datetime, *, uncertain: bool) -> None:
    because = what_stops(run, uncertain=uncertain)
    if because != run.clock_because or run.is_terminal:
        clock = clock_of(run)
        if clock is not None:
            run.set_clock(clock.changed(because, at))
