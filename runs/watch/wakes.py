"""Hints from Redis, as events of the loop. A lost one costs a second: who waits also looks by itself."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import redis.asyncio as redis
import structlog
from django.conf import settings
from redis.exceptions import RedisError

from factory.kernel.hints import OUTBOX, WORK, channel_name

log = structlog.get_logger("runs.watch")

PATIENT: dict[str, Any] = {"socket_connect_timeout": 1, "socket_timeout": None, "health_check_interval": 15}
"""Silence is the usual state of a channel of hints, and no fault."""


class Wakes:
    """Whoever waits for a channel is woken by its next hint."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Future[None]]] = defaultdict(set)

    @contextmanager
    def expecting(self, channel: str) -> Iterator["asyncio.Future[None]"]:
        """From here on a hint completes the future, also before anybody waits for it."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[channel].add(woken)
        try:
            yield woken
        finally:
            self._waiting[channel].discard(woken)
            woken.cancel()

    async def wait(self, channel: str, seconds: float) -> None:
        """Wait for a hint, but not longer."""
        with self.expecting(channel) as woken:
            await asyncio.wait([woken], timeout=seconds)

    def wake(self, channel: str) -> None:
        for future in self._waiting[channel]:
            if not future.done():
                future.set_result(None)

    async def listen(self) -> None:
        """Pass on the hints of Redis until cancelled; one that is away is tried again each second."""
        names = {channel_name(channel).encode(): channel for channel in (OUTBOX, WORK)}
        while True:
            with suppress(RedisError, OSError):
                await self._listen(names)
            await asyncio.sleep(1)

    async def _listen(self, names: dict[bytes, str]) -> None:
        async with (
            redis.Redis.from_url(settings.REDIS_URL, **PATIENT) as client,
            client.pubsub(ignore_subscribe_messages=True) as subscription,
        ):
            await subscription.subscribe(*names)
            async for message in subscription.listen():
                self.wake(names.get(message["channel"], ""))
