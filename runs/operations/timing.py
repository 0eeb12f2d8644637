"""How long leases last, and when a retry is due."""

import random
from datetime import datetime, timedelta

from factory import reloading
from runs.models import Lease, Step

LONGEST_BACK_OFF = timedelta(minutes=5)
FIRST_BACK_OFF = timedelta(seconds=2)


def ttl() -> timedelta:
    """How long a lease lasts from when it is offered, acquired or renewed."""
    return timedelta(seconds=reloading.value("FACTORY_LEASES_DURATION_SECONDS"))


def grace() -> timedelta:
    """How long after its end a lease is left to its holder."""
    return timedelta(seconds=reloading.value("FACTORY_LEASES_RENEWAL_GRACE_SECONDS"))


def renewed(step: Step, lease: Lease, at: datetime) -> tuple[datetime, bool]:
    """The end of a lease that is renewed now, and whether the step's own time-out has come.

    The time-out is for a worker's time under one lease: the days that an attempt was parked while a
    person decided are not its next holder's.
    """
    until = at + ttl()
    if step.timeout_minutes is None or lease.acquired_at is None:
        return until, False
    end = lease.acquired_at + timedelta(minutes=step.timeout_minutes)
    return min(until, end), at >= end


def back_off(tries: int) -> timedelta:
    """Exponential with jitter, so that what failed together does not come back together."""
    longest: timedelta = min(FIRST_BACK_OFF * 2 ** max(tries - 1, 0), LONGEST_BACK_OFF)
    return longest * random.uniform(0.5, 1.0)
