"""Hints: best-effort wake-ups through Redis. Whoever waits also looks by itself."""

import time
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import redis
import structlog
from django.conf import settings
from django.db import transaction
from redis.backoff import NoBackoff
from redis.retry import Retry

from factory.kernel.time_limits import TimeIsUp

T = TypeVar("T")

log = structlog.get_logger("factory.kernel.hints")

OUTBOX, WORK = "outbox", "work"

SECONDS_OF_SILENCE = 1.0
"""After a failure no hint is tried for so long: a frozen broker must not slow every request down."""

_silent_until = 0.0


@cache
def broker() -> "redis.Redis":
    """The broker, without retries and with time-outs so short that its absence is hardly felt."""
    return connect(socket_timeout=0.25)


def connect(socket_timeout: float | None) -> "redis.Redis":
    """A client of the broker; retries are the caller's business."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=socket_timeout,
        socket_connect_timeout=0.25,
        retry=Retry(NoBackoff(), 0),
    )


def channel_name(channel: str) -> str:
    """The Redis channel of a hint."""
    return f"factory:hint:{channel}"


def wake(channel: str) -> None:
    """After the commit, tell whoever waits on `channel` that there may be something for them."""
    once_committed(lambda: publish(channel))


def once_committed(hint: Callable[[], object]) -> None:
    """Run a hint after the commit; what it raises is only noted. Django's own way to do that (`robust`)
    would note the end of a job's time too, and go on."""
    transaction.on_commit(lambda: _quietly(hint))


def _quietly(hint: Callable[[], object]) -> None:
    try:
        hint()
    except TimeIsUp:
        raise
    except Exception:
        log.exception("hint_failed")


def publish(channel: str) -> None:
    """Tell it now; a broker that is away is only noted."""
    asked(lambda broker: broker.publish(channel_name(channel), b"1"))


def asked(question: Callable[["redis.Redis"], T]) -> T | None:
    """Return what the broker answers; None while it is away, when nobody asks it for a moment."""
    global _silent_until
    if time.monotonic() < _silent_until:
        return None
    try:
        return question(broker())
    except (redis.RedisError, OSError) as fault:
        _silent_until = time.monotonic() + SECONDS_OF_SILENCE
        log.debug("broker_away", fault=type(fault).__name__)
        return None
