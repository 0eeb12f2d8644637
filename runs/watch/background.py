"""The tasks that a process has besides its requests: kept running, and told of by `/readyz`."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import structlog

log = structlog.get_logger("runs.watch")

BEGIN_AGAIN_SECONDS = 1.0
TRUSTED_AFTER_SECONDS = 10.0
"""A task that failed counts as well again once it has run for so long."""

Runs = Callable[[], Awaitable[None]]
"""A task that ends only when it is cancelled."""


class Background:
    """Run each task until `stop()`; one that ends by itself is a fault, and is begun again."""

    def __init__(self, tasks: Mapping[str, Runs]) -> None:
        self._runs = tasks
        self._failed_at: dict[str, float] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._keep(name), name=name) for name in self._runs]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def checks(self) -> dict[str, str]:
        """Return how each task is, for `/readyz`."""
        return {name: "failing" if self._is_failing(name) else "ok" for name in self._runs}

    def _is_failing(self, name: str) -> bool:
        failed_at = self._failed_at.get(name)
        return failed_at is not None and time.monotonic() - failed_at < TRUSTED_AFTER_SECONDS

    async def _keep(self, name: str) -> None:
        while True:
            try:
                await self._runs[name]()
                log.error("background_task_ended", task=name)
            except Exception:
                log.exception("background_task_failed", task=name)
            self._failed_at[name] = time.monotonic()
            await asyncio.sleep(BEGIN_AGAIN_SECONDS)
