"""Following the outbox: everything once, in order per run, whatever commits when."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest

from factory.kernel.errors import InvalidInput
from runs.watch.cursor import Cursor, FeedSnapshot, Key
from runs.watch.feed import Feed, WatchScope
from runs.watch.hub import QUEUE, Hub, Watcher
from runs.watch.streaming import Watching, _next
from runs.watch.wakes import Wakes
from tests.watch.outbox import Writer, writing


class Reader:
    """A client of the stream: what it was sent, and where it would resume."""

    def __init__(self, hub: Hub, scope: WatchScope, last: str | None = None) -> None:
        self.hub, self.scope, self.last = hub, scope, last
        self.got: list[dict[str, Any]] = []

    async def __aenter__(self) -> "Reader":
        cursor = Cursor.open(self.last) if self.last else None
        self.watcher: Watcher = await self.hub.join(self.scope, cursor)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.hub.leave(self.watcher)

    async def catch_up(self) -> None:
        async for message in Watching._earlier(_Only(self.hub), self.watcher):  # type: ignore[arg-type]
            self._take(message)

    def take(self, limit: int = 10**6) -> None:
        while not self.watcher.queue.empty() and limit:
            limit -= 1
            message = self.watcher.queue.get_nowait()
            assert message is not None
            self._take(message)

    def _take(self, message: bytes) -> None:
        fields = dict(line.split(": ", 1) for line in message.decode().splitlines() if line)
        self.last = fields.get("id", self.last)
        if "data" in fields:
            self.got.append(json.loads(fields["data"]))

    @property
    def ids(self) -> list[str]:
        return [event["id"] for event in self.got]


class _Only:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub


def live(test: Callable[[Hub], Awaitable[None]]) -> None:
    """Run a test in a loop with a hub that advances only when told."""

    @asynccontextmanager
    async def opened():
        feed = Feed()
        await feed.open()
        try:
            yield Hub(feed, Wakes())
        finally:
            await feed.close()

    async def main() -> None:
        async with opened() as hub:
            await test(hub)

    asyncio.run(main())


@pytest.mark.requirement("WAPI-09")
def test_sees_what_commits_late_although_it_began_early(tenant_id):
    run, other = uuid4(), uuid4()
    early, late = Writer(tenant_id), Writer(tenant_id)

    async def test(hub: Hub) -> None:
        async with Reader(hub, WatchScope(frozenset({tenant_id}))) as reader:
            first = early.tell(run, 1)  # its transaction is the older one, and commits last
            second = late.tell(other, 1)
            late.commit()
            await hub.advance()
            await hub.advance()
            reader.take()
            assert reader.ids == [second]
            early.commit()
            await hub.advance()
            reader.take()
            assert reader.ids == [second, first]

    live(test)
    early.close()
    late.close()


def test_resumes_exactly_after_any_event(tenant_id):
    run = uuid4()

    async def test(hub: Hub) -> None:
        scope = WatchScope(frozenset({tenant_id}))
        async with Reader(hub, scope) as reader:
            await reader.catch_up()
            assert reader.last is not None
            start, told, points = reader.last, [], []
            for n in range(1, 10, 3):
                with writing(tenant_id) as writer:
                    told += [writer.tell(run, n), writer.tell(run, n + 1), writer.tell(run, n + 2)]
                await hub.advance()
            while not reader.watcher.queue.empty():
                reader.take(1)
                points.append(reader.last)
            assert reader.ids == told
        for missing, point in enumerate([start, *points]):
            async with Reader(hub, scope, point) as again:
                await again.catch_up()
                assert again.ids == told[missing:]
                with writing(tenant_id) as writer:
                    told.append(writer.tell(run, len(told) + 1))
                await hub.advance()
                again.take()
                assert again.ids == told[missing:]

    live(test)


def test_resumes_in_the_middle_of_what_it_was_catching_up_on(tenant_id):
    runs = [uuid4() for _ in range(3)]
    scope = WatchScope(frozenset({tenant_id, f"{tenant_id}-b"}))

    async def test(hub: Hub) -> None:
        async with Reader(hub, scope) as reader:
            await reader.catch_up()
            last = reader.last
        told = set()
        for n in range(1, 21):
            with writing(random.choice(sorted(scope.tenants))) as writer:
                told |= {writer.tell(run, n) for run in runs}
        seen: list[str] = []
        while True:  # every connection breaks after seven events
            async with Reader(hub, scope, last) as again:
                count = 0
                async for message in Watching._earlier(_Only(hub), again.watcher):  # type: ignore[arg-type]
                    again._take(message)
                    count = len(again.got)
                    if count == 7:
                        break
                seen, last = seen + again.ids, again.last
                if not count:
                    break
        assert len(seen) == len(set(seen)) == 60
        assert set(seen) == told

    live(test)


@pytest.mark.slow
def test_keeps_the_order_of_each_run_under_concurrent_writers(tenant_id):
    """Eight writers commit in any order, connections break at random: nothing lost, doubled or swapped."""
    chosen = random.Random(7)
    runs = [uuid4() for _ in range(8)]
    told: dict[UUID, list[str]] = {run: [] for run in runs}

    async def test(hub: Hub) -> None:
        scope = WatchScope(frozenset({tenant_id}))
        got: list[dict[str, Any]] = []
        async with Reader(hub, scope) as reader:
            await reader.catch_up()
            last = reader.last
        open_: dict[UUID, Writer] = {}
        for _ in range(150):
            async with Reader(hub, scope, last) as reader:
                await reader.catch_up()
                for run in chosen.sample(runs, 4):
                    if run in open_:
                        open_.pop(run).commit()
                    else:
                        open_[run] = Writer(tenant_id)
                        told[run].append(open_[run].tell(run, len(told[run]) + 1))
                if chosen.random() < 0.7:
                    await hub.advance()
                reader.take(chosen.choice([0, 1, 2, 100]))
                got, last = got + reader.got, reader.last
        for writer in open_.values():
            writer.commit()
        async with Reader(hub, scope, last) as reader:
            await reader.catch_up()
            got += reader.got
        for run in runs:
            assert [event["id"] for event in got if event["runid"] == str(run)] == told[run]

    live(test)


def test_shows_nobody_another_tenant_project_or_run(tenant_id):
    mine, run, other = uuid4(), uuid4(), uuid4()

    async def test(hub: Hub) -> None:
        narrow = WatchScope(frozenset({tenant_id}), mine, run)
        async with Reader(hub, narrow) as reader:
            await reader.catch_up()
            last = reader.last
            with writing(f"{tenant_id}-b", mine) as writer:
                writer.tell(run, 1)
            with writing(tenant_id, uuid4()) as writer:
                writer.tell(run, 4)
            with writing(tenant_id, mine) as writer:
                writer.tell(other, 1)
                writer.tell(run, 5, topic="registry.releases.v1.asset-release-published")
                wanted = writer.tell(run, 2)
            await hub.advance()
            reader.take()
            assert reader.ids == [wanted]
        async with Reader(hub, narrow, last) as again:
            await again.catch_up()
            assert again.ids == [wanted]
        async with Reader(hub, narrow) as fresh:
            await fresh.catch_up()
            assert fresh.ids == [wanted]  # the current state comes first

    live(test)


def test_lets_go_of_who_cannot_keep_up_and_loses_nothing(tenant_id):
    run = uuid4()

    async def test(hub: Hub) -> None:
        scope = WatchScope(frozenset({tenant_id}))
        async with Reader(hub, scope) as slow:
            await slow.catch_up()
            with writing(tenant_id) as writer:
                told = [writer.tell(run, n + 1) for n in range(QUEUE + 5)]
            await hub.advance()
            assert hub.watching == 0
            slow.take(QUEUE)
            assert await _next(slow.watcher) is None
        async with Reader(hub, scope, slow.last) as again:
            await again.catch_up()
            assert slow.ids + again.ids == told

    live(test)


def test_refuses_an_id_that_it_never_gave():
    for forged in ("", "x", "0", Cursor(_snapshot("5:5:"), _snapshot("5:5:")).seal()[:-2] + "xx"):
        with pytest.raises(InvalidInput):
            Cursor.open(forged)


def test_a_snapshot_answers_as_the_database_does():
    from django.db import connection

    text = "10:20:12,15"
    with connection.cursor() as cursor:
        for transaction in range(5, 25):
            cursor.execute(
                "SELECT pg_visible_in_snapshot(%s::text::xid8, %s::pg_snapshot)", [transaction, text]
            )
            assert _snapshot(text).sees(transaction) == cursor.fetchone()[0]


def test_a_cursor_comes_back_as_it_was():
    from factory.kernel.clock import now

    cursor = Cursor(_snapshot("5:9:6"), _snapshot("6:12:"), Key(now(), uuid4(), 3, 0))
    assert Cursor.open(cursor.seal()) == cursor


def _snapshot(text: str) -> FeedSnapshot:
    return FeedSnapshot.parse(text)
