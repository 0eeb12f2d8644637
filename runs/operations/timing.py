"""How long leases last, and when a retry is due."""

import random
from datetime import datetime, timedelta

from factory.kernel import reloading
from runs.models import Lease, Step

LONGEST_BACK_OFF = timedelta(minutes=5)
FIRST_BACK_OFF = timedelta(seconds=2)


def ttl() -> timedelta:
    """Return how long a lease lasts from when it is offered, acquired or renewed."""
    return timedelta(seconds=reloading.value("FACTORY_LEASES_DURATION_SECONDS"))


def grace() -> timedelta:
    """Return how long after its end a lease is left to its holder."""
    return timedelta(seconds=reloading.value("FACTORY_LEASES_RENEWAL_GRACE_SECONDS"))


def end_of_time(step: Step, since: datetime) -> datetime | None:
    """Return when the step's own time-out comes for who acquired its lease at `since`; None without one.

    It is a worker's time under one lease: the days that an attempt was parked while a person decided are
    not its next holder's. It goes on whatever the run waits for, because the holder does.
    """
    return None if step.timeout_minutes is None else since + timedelta(minutes=step.timeout_minutes)


def is_timed_out(step: Step, lease: Lease, at: datetime) -> bool:
    """Return whether the time that the step gives its holder was over at `at`."""
    end = end_of_time(step, lease.acquired_at) if lease.acquired_at is not None else None
    return end is not None and at >= end


def took_too_long(step: Step) -> str:
    """Say of a step with a time-out, as the reason of an attempt, that it took longer."""
    minutes = "minute" if step.timeout_minutes == 1 else "minutes"
    return f"It took longer than the {step.timeout_minutes} {minutes} of its step."


def renewed(step: Step, lease: Lease, at: datetime) -> datetime:
    """Return the end of a lease that is acquired or renewed at `at`: not past the step's own time-out."""
    until, end = at + ttl(), end_of_time(step, lease.acquired_at or at)
    return until if end is None else min(until, end)


def back_off(used: int) -> timedelta:
    """Exponential with jitter, so that what failed together does not come back together."""
    longest: timedelta = min(FIRST_BACK_OFF * 2 ** max(used - 1, 0), LONGEST_BACK_OFF)
    return longest * random.uniform(0.5, 1.0)
