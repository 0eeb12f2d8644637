"""When money that waits for a run expires: its clock stands still with the project and with the run."""

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from projects.selectors import paused
from usage.models import Reservation

StoodStill = Callable[[UUID, datetime, datetime], timedelta]
"""Returns by how much what a run was to do until the first time is put off at the second."""
_stood_still: list[StoodStill] = []


def stands_still_with_runs(stood_still: StoodStill) -> None:
    """Let the app that knows runs say how long they stood still; called by its `ready`."""
    _stood_still[:] = [stood_still]


def has_time(row: Reservation, at: datetime) -> bool:
    """Return whether a reservation that waits has not expired at `at`."""
    if row.due_at is None:
        raise ValueError("A reservation that has dispatched, or is over, never expires.")
    if at < row.due_at:
        return True
    due = row.due_at + paused(row.project_id, row.created_at, row.due_at, at)
    return at < due + sum((of_runs(row.run_id, due, at) for of_runs in _stood_still), timedelta())
