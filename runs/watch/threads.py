"""Commands are synchronous; here they run in a few threads that never keep a connection."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from django.db import connections

T = TypeVar("T")


class Threads:
    """A bounded executor. Whoever waits in its queue holds nothing but a task of the loop."""

    def __init__(self, size: int) -> None:
        self._executor = ThreadPoolExecutor(size, thread_name_prefix="command")

    async def run(self, work: Callable[[], T]) -> T:
        """Run it in a thread, in this task's context, and give the connection back whatever happens."""
        context = copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, lambda: context.run(_released, work))

    def close(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)


def _released(work: Callable[[], T]) -> T:
    try:
        return work()
    finally:
        connections.close_all()
