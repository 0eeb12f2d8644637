"""One look for all who wait: which tenants have something to do, and who is to poll for it.

A thousand waiting polls cost one query a second. A poll is a command with a heartbeat, so pollers are called
only when there is something, those first that have waited longest, and only so many at a time.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog
from django.db import Error as DatabaseFault

from factory.kernel.hints import WORK
from runs.watch.threads import Threads
from runs.watch.wakes import Wakes

log = structlog.get_logger("runs.watch")

LOOK_AGAIN_SECONDS = 1.0
TOGETHER = 8
"""So many pollers are called at once; the next ones only if something is left for them."""
PAUSE_SECONDS = 0.05

Todo = dict[str, str]
"""By tenant, what there is to do, in a word that changes when that does."""


@dataclass(eq=False)
class WaitingPoll:
    """A poll that waits: for which tenants, since when, and what calls it."""

    tenants: frozenset[str]
    turn: int
    called: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def concerns(self, todo: Todo) -> bool:
        return not self.tenants.isdisjoint(todo)


class PollBoard:
    """`look` says, blocking, what there is to do for the tenants that are waited for."""

    def __init__(self, threads: Threads, wakes: Wakes, look: Callable[[Iterable[str]], Todo]) -> None:
        self._threads, self._wakes, self._look = threads, wakes, look
        self._waiting: set[WaitingPoll] = set()
        self._turns = itertools.count()

    @contextmanager
    def waiting(self, tenants: Iterable[str]) -> Iterator[WaitingPoll]:
        """From here on the poll may be called, also before it begins to wait."""
        poll = WaitingPoll(frozenset(tenants), next(self._turns))
        self._waiting.add(poll)
        try:
            yield poll
        finally:
            self._waiting.discard(poll)
            poll.called.cancel()

    async def run(self) -> None:
        """Look at every hint, and each second in any case, until cancelled."""
        seen: Todo = {}
        hinted = False
        while True:
            with self._wakes.expecting(WORK) as woken:  # a hint that comes during the round is for the next
                try:
                    seen = await self._round(seen, hinted=hinted)
                except (DatabaseFault, OSError) as fault:
                    log.warning("board_not_read", fault=type(fault).__name__)
                await asyncio.wait([woken], timeout=LOOK_AGAIN_SECONDS)
                hinted = woken.done()

    async def _round(self, seen: Todo, *, hinted: bool) -> Todo:
        """Call pollers for what there is; all of them in turn if it is new, else only a few."""
        todo = await self._todo()
        fresh = hinted or todo != seen
        last = next(self._turns)  # who begins to wait after this has looked already
        while self._call(todo, before=last) and fresh:
            await asyncio.sleep(PAUSE_SECONDS)
            todo = await self._todo()
        return todo

    async def _todo(self) -> Todo:
        tenants = frozenset().union(*(one.tenants for one in self._waiting))
        return await self._threads.run(lambda: self._look(tenants)) if tenants else {}

    def _call(self, todo: Todo, *, before: int) -> bool:
        """Call those that have waited longest; whether there was anybody to call."""
        concerned = [
            one for one in self._waiting if one.turn < before and not one.called.done() and one.concerns(todo)
        ]
        for one in sorted(concerned, key=lambda each: each.turn)[:TOGETHER]:
            one.called.set_result(None)
        return bool(concerned)
