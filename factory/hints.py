"""Hints: best-effort wake-ups through Redis. Whoever waits also looks by itself."""

from functools import cache

import redis
import structlog
from django.conf import settings
from django.db import transaction

log = structlog.get_logger("factory.hints")

OUTBOX, WORK = "outbox", "work"


@cache
def broker() -> "redis.Redis":
    """The broker, with time-outs short enough that its absence is not felt in a request."""
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=0.25, socket_connect_timeout=0.25, health_check_interval=15
    )


def channel_name(channel: str) -> str:
    """The Redis channel of a hint."""
    return f"factory:hint:{channel}"


def wake(channel: str) -> None:
    """After the commit, tell whoever waits on `channel` that there may be something for them."""
    transaction.on_commit(lambda: publish(channel), robust=True)


def publish(channel: str) -> None:
    """Tell it now; a broker that is away is only noted."""
    try:
        broker().publish(channel_name(channel), b"1")
    except (redis.RedisError, OSError) as fault:
        log.debug("hint_lost", channel=channel, fault=type(fault).__name__)
