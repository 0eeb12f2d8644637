"""Reading the outbox without a thread: what is new since a snapshot, and what the events say."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from psycopg import AsyncConnection, IsolationLevel
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from factory.kernel.models import OutboxEvent
from factory.kernel.tenancy import TENANT_SETTING
from runs.watch.cursor import Cursor, FeedSnapshot, Key

TOPICS = "run-control."
POOL_SIZE = 4
CHUNK = 500
DJANGOS = ("cursor_factory", "context", "prepare_threshold", "pool", "server_side_binding")

_REFS = "id, tenant_id, project_id, run_id, stream_id, sequence, position, occurred_at, transaction_id"
_EVENT = ", ".join(field.attname for field in OutboxEvent._meta.concrete_fields)
"""By name: a newer release may add a column while this one runs."""
_ORDER = "ORDER BY occurred_at, stream_id, sequence, position"
_NEW = f"""
SELECT {_REFS} FROM factory_outboxevent
WHERE starts_with(topic, '{TOPICS}') AND transaction_id >= %(low)s
  AND NOT pg_visible_in_snapshot(transaction_id::text::xid8, %(before)s::pg_snapshot)
{_ORDER}
"""
_MISSED = f"""
SELECT {_EVENT} FROM factory_outboxevent
WHERE starts_with(topic, '{TOPICS}') AND transaction_id >= %(low)s
  AND NOT pg_visible_in_snapshot(transaction_id::text::xid8, %(before)s::pg_snapshot)
  AND pg_visible_in_snapshot(transaction_id::text::xid8, %(upto)s::pg_snapshot)
  AND (%(project)s::uuid IS NULL OR project_id = %(project)s) AND (%(run)s::uuid IS NULL OR run_id = %(run)s)
  AND (%(at)s::timestamptz IS NULL
       OR (occurred_at, stream_id, sequence, position) > (%(at)s, %(stream)s, %(sequence)s, %(position)s))
{_ORDER} LIMIT {CHUNK}
"""
_CURRENT = f"""
SELECT {_EVENT} FROM factory_outboxevent
WHERE run_id = %(run)s AND starts_with(topic, 'run-control.runs.')
  AND pg_visible_in_snapshot(transaction_id::text::xid8, %(upto)s::pg_snapshot)
  AND (%(project)s::uuid IS NULL OR project_id = %(project)s)
ORDER BY sequence DESC, position DESC LIMIT 1
"""
_EVENTS = f"SELECT {_EVENT} FROM factory_outboxevent WHERE id = ANY(%s)"


@dataclass(frozen=True, slots=True)
class WatchScope:
    """Name what a watcher may see: tenants, and in them perhaps one project and one run."""

    tenants: frozenset[str]
    project_id: UUID | None = None
    run_id: UUID | None = None

    def admits(self, ref: "Ref") -> bool:
        if ref.tenant_id not in self.tenants:
            return False
        if self.project_id is not None and ref.project_id != self.project_id:
            return False
        return self.run_id is None or ref.run_id == self.run_id


@dataclass(frozen=True, slots=True)
class Ref:
    """An event as the scan role sees it: where it belongs, but not what it says."""

    id: UUID
    tenant_id: str
    project_id: UUID | None
    run_id: UUID | None
    transaction_id: int
    key: Key


class Feed:
    """A few connections of this process's own event loop."""

    def __init__(self) -> None:
        parameters = connection.get_connection_params()
        for ours in DJANGOS:
            parameters.pop(ours, None)
        self._pool: AsyncConnectionPool[AsyncConnection[dict[str, Any]]] = AsyncConnectionPool(
            kwargs={**parameters, "row_factory": dict_row},
            min_size=1,
            max_size=POOL_SIZE,
            timeout=3,
            open=False,
            configure=_configure,
            name="watch",
        )

    async def open(self) -> None:
        await self._pool.open()

    async def close(self) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def _reading(self, setting: str, value: str) -> AsyncIterator[AsyncConnection[dict[str, Any]]]:
        async with self._pool.connection() as held, held.transaction():
            await held.execute("SELECT set_config(%s, %s, true)", [setting, value])
            yield held

    async def now(self) -> FeedSnapshot:
        """Return what a watcher that starts now has missed nothing of."""
        async with self._pool.connection() as held:
            row = await (await held.execute("SELECT pg_current_snapshot()::text AS text")).fetchone()
        assert row is not None
        return FeedSnapshot.parse(row["text"])

    async def news(self, before: FeedSnapshot) -> tuple[FeedSnapshot, list[Ref]]:
        """Every event that `before` did not see, in order, and the snapshot that sees them."""
        role = f"{settings.FACTORY_ROLE_PREFIX}_scan"
        async with self._reading("role", role) as held:
            first = await (await held.execute("SELECT pg_current_snapshot()::text AS text")).fetchone()
            result = await held.execute(_NEW, {"low": before.oldest_running, "before": before.text})
            rows = await result.fetchall()
        assert first is not None
        return FeedSnapshot.parse(first["text"]), [_ref(row) for row in rows]

    async def events(self, tenant_id: str, ids: Sequence[UUID]) -> dict[UUID, OutboxEvent]:
        async with self._reading(TENANT_SETTING, tenant_id) as held:
            result = await held.execute(_EVENTS, [list(ids)])
            return {row["id"]: OutboxEvent(**row) for row in await result.fetchall()}

    async def missed(
        self, scope: WatchScope, cursor: Cursor, upto: FeedSnapshot
    ) -> AsyncIterator[OutboxEvent]:
        """Yield what `upto` sees of the cursor's own batch after its key, or of what came after it."""
        # Merged by key: the last key sent must tell, for all tenants at once, what was sent.
        sources = [self._missed_in(tenant, scope, cursor, upto) for tenant in sorted(scope.tenants)]
        heads = [(key_of(event), source, event) for source in sources if (event := await anext(source, None))]
        while heads:
            _, source, event = heads.pop(min(range(len(heads)), key=lambda n: heads[n][0]))
            yield event
            following = await anext(source, None)
            if following is not None:
                heads.append((key_of(following), source, following))

    async def _missed_in(
        self, tenant_id: str, scope: WatchScope, cursor: Cursor, upto: FeedSnapshot
    ) -> AsyncIterator[OutboxEvent]:
        key = cursor.key
        while True:
            rows = await self._missed(tenant_id, scope, cursor.before, upto, key)
            for row in rows:
                event = OutboxEvent(**row)
                key = key_of(event)
                yield event
            if len(rows) < CHUNK:
                return

    async def _missed(
        self, tenant_id: str, scope: WatchScope, before: FeedSnapshot, upto: FeedSnapshot, key: Key | None
    ) -> list[dict[str, Any]]:
        at, stream, sequence, position = key or (None, None, None, None)
        values = {
            "low": before.oldest_running,
            "before": before.text,
            "upto": upto.text,
            "project": scope.project_id,
            "run": scope.run_id,
            "at": at,
            "stream": stream,
            "sequence": sequence,
            "position": position,
        }
        async with self._reading(TENANT_SETTING, tenant_id) as held:
            return await (await held.execute(_MISSED, values)).fetchall()

    async def current(self, scope: WatchScope, upto: FeedSnapshot) -> OutboxEvent | None:
        """The last thing that was told of the one run that the scope names."""
        for tenant_id in scope.tenants:
            values = {"run": scope.run_id, "project": scope.project_id, "upto": upto.text}
            async with self._reading(TENANT_SETTING, tenant_id) as held:
                row = await (await held.execute(_CURRENT, values)).fetchone()
            if row is not None:
                return OutboxEvent(**row)
        return None


def key_of(event: OutboxEvent) -> Key:
    return Key(event.occurred_at, event.stream_id, event.sequence, event.position)


def _ref(row: dict[str, Any]) -> Ref:
    key = Key(row["occurred_at"], row["stream_id"], row["sequence"], row["position"])
    return Ref(row["id"], row["tenant_id"], row["project_id"], row["run_id"], row["transaction_id"], key)


async def _configure(held: AsyncConnection[dict[str, Any]]) -> None:
    # One snapshot for a whole transaction: the list of the running and the rows must agree.
    await held.set_isolation_level(IsolationLevel.REPEATABLE_READ)
    await held.set_read_only(True)
