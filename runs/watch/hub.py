"""One task follows the outbox for everybody who watches in this process."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable
from uuid import UUID

import psycopg
import structlog
from psycopg_pool import PoolTimeout

from factory.kernel.bulkhead import Bulkhead
from factory.kernel.models import OutboxEvent
from factory.messaging.relay.destinations import envelope
from runs.watch.cursor import Cursor, FeedSnapshot, Key
from runs.watch.feed import Feed, Ref, WatchScope
from runs.watch.wakes import Wakes

log = structlog.get_logger("runs.watch")

QUEUE = 1000
"""A watcher that is further behind is let go; it resumes from its last event, out of the database."""
POLL_SECONDS = 1.0


def sse(event: OutboxEvent, cursor: Cursor) -> bytes:
    """An event as the stream carries it."""
    data = json.dumps(envelope(event), separators=(",", ":"))
    return f"id: {cursor.seal()}\nevent: {event.topic}\ndata: {data}\n\n".encode()


class Watcher:
    """One open stream: what it may see, where it started, and what waits to be sent."""

    def __init__(self, scope: WatchScope, start: FeedSnapshot, cursor: Cursor | None) -> None:
        self.scope = scope
        self.start = start
        self.cursor = cursor
        self.ended = False
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(QUEUE)

    def matches(self, ref: Ref) -> bool:
        if self.cursor is not None and self.cursor.covers(ref.transaction_id, ref.key):
            return False
        return self.scope.admits(ref)

    def offer(self, message: bytes) -> bool:
        """False when it cannot keep up."""
        try:
            self.queue.put_nowait(message)
        except asyncio.QueueFull:
            return False
        return True

    def let_go(self) -> None:
        """End its stream after what is queued already."""
        self.ended = True
        if not self.queue.full():  # a full queue has nobody waiting at its other end
            self.queue.put_nowait(None)


class Hub:
    """Reads what is new once, and hands it to each watcher that may see it."""

    def __init__(self, feed: Feed, wakes: Wakes) -> None:
        self.feed = feed
        self._wakes = wakes
        self._watchers: set[Watcher] = set()
        self._snapshot: FeedSnapshot | None = None
        self._lock = asyncio.Lock()

    async def join(self, scope: WatchScope, cursor: Cursor | None) -> Watcher:
        """A watcher to whom everything after `watcher.start` will be offered."""
        async with self._lock:
            if not self._watchers or self._snapshot is None:
                self._snapshot = await self.feed.now()  # nobody watched: there is nothing to catch up on
            watcher = Watcher(scope, self._snapshot, cursor)
            self._watchers.add(watcher)
        return watcher

    def leave(self, watcher: Watcher) -> None:
        self._watchers.discard(watcher)

    @property
    def watching(self) -> int:
        return len(self._watchers)

    def close(self) -> None:
        """End every stream: the process is going down."""
        for watcher in self._watchers:
            watcher.let_go()

    async def run(self) -> None:
        """Follow the outbox until cancelled; a database that is away is only waited for."""
        while True:
            await self._wakes.wait("outbox", POLL_SECONDS)
            if not self._watchers:
                continue
            try:
                await self.advance()
            except (psycopg.Error, PoolTimeout, OSError) as fault:
                log.warning("watch_interrupted", fault=type(fault).__name__)
                await asyncio.sleep(POLL_SECONDS)

    async def advance(self) -> None:
        """Offer what is new. Only when all of it could be read is any of it offered.

        An event that cannot be put on the wire is passed over, and keeps no other from who watches.
        """
        async with self._lock:
            if self._snapshot is None:
                return
            before = self._snapshot
            snapshot, refs = await self.feed.news(before)
            wanted = [ref for ref in refs if any(watcher.matches(ref) for watcher in self._watchers)]
            events = await self._read(wanted)
            alone = Bulkhead("watch")
            for ref in wanted:
                with alone.item(ref.id, ref.tenant_id):
                    self._offer(ref, sse(events[ref.id], Cursor(before, snapshot, ref.key)))
            self._snapshot = snapshot

    async def _read(self, refs: Iterable[Ref]) -> dict[UUID, OutboxEvent]:
        by_tenant: dict[str, list[UUID]] = defaultdict(list)
        for ref in refs:
            by_tenant[ref.tenant_id].append(ref.id)
        events: dict[UUID, OutboxEvent] = {}
        for tenant_id, ids in by_tenant.items():
            events |= await self.feed.events(tenant_id, ids)
        return events

    def _offer(self, ref: Ref, message: bytes) -> None:
        for watcher in [each for each in self._watchers if each.matches(ref)]:
            if not watcher.offer(message):
                log.info("watcher_let_go", tenants=len(watcher.scope.tenants))
                self.leave(watcher)
                watcher.let_go()


__all__ = ["Hub", "Key", "Watcher", "sse"]
