"""A database or a broker that is away for a while: no fault of what was being done, and told in one line."""

from collections.abc import Iterator
from contextlib import contextmanager

import redis
import structlog
from django.db import InterfaceError, OperationalError, connections

from factory.kernel.time_limits import TimeIsUp

log = structlog.get_logger("factory.jobs")

AWAY = ("08", "25006", "53", "57P", "58")
"""SQLSTATE classes of a server that cannot serve: no connection, a standby, no resources, shutting down."""
BROKER_AWAY = (redis.ConnectionError, redis.TimeoutError)


def is_away(fault: BaseException) -> bool:
    """Return whether the database or the broker is not there: no fault of what was being done."""
    return database_away(fault) or broker_away(fault)


def broker_away(fault: BaseException) -> bool:
    """Return whether the broker is not there. It stops no run: what needs it is put off, and nothing else."""
    return isinstance(fault, BROKER_AWAY)


def database_away(fault: BaseException) -> bool:
    """Return whether the database is not there, without which nothing can be done."""
    state = getattr(fault.__cause__, "sqlstate", None) or ""
    return isinstance(fault, OperationalError | InterfaceError) and (not state or state.startswith(AWAY))


@contextmanager
def put_off(job: str, **about: str) -> Iterator[None]:
    """Around a job whose work is found again by the next tick: what is away, and the end of its time, end it.

    A line says so, where the job system would print a traceback for each tick of an outage.
    """
    try:
        yield
    except TimeIsUp:
        log.warning("job_out_of_time", job=job, **about)
        connections.close_all()  # it may have come in the middle of a question
    except (OperationalError, InterfaceError, *BROKER_AWAY) as fault:
        if not is_away(fault):
            raise
        log.warning("job_put_off", job=job, fault=in_a_line(fault), **about)
        if database_away(fault):
            connections.close_all()


def in_a_line(fault: BaseException) -> str:
    """Return what a server's client says about it, without its line breaks."""
    return " ".join(str(fault).split())[:200]
