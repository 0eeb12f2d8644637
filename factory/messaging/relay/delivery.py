"""One round of delivery for one destination.

A relay takes a lane (a transaction-scoped advisory lock on a connection of its own), then works
through the lane's streams: within a stream strictly in order, and never past an event that has not
been delivered. What keeps failing is retried with a growing delay and then set aside, where it
blocks its own stream for this destination and nothing else, until a person decides.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol
from uuid import UUID

import psycopg
import structlog
from django.db import connection

from factory.kernel.bulkhead import Bulkhead, Resting
from factory.kernel.context import Context, system
from factory.kernel.errors import DomainError
from factory.kernel.hashing import storable
from factory.kernel.models import OutboxEvent
from factory.kernel.tenancy import bound, reading, scanning

log = structlog.get_logger("factory.messaging.relay")

ATTEMPTS = 12
"""After so many failures (about ten minutes) an event is set aside."""
LONGEST_DELAY_SECONDS = 120


class DestinationAway(Exception):
    """The destination itself cannot be reached: no event is to blame, so none is counted against."""


class Destination(Protocol):
    """Say where events go. `prefix` names its columns in the outbox: handle or stream."""

    prefix: str
    done_column: str

    def deliver(self, ctx: Context, event: OutboxEvent) -> None:
        """Hand over one event; raise when it must be tried again, `DestinationAway` when all must."""


@dataclass(frozen=True, slots=True)
class DueStream:
    """A stream with something to deliver."""

    tenant_id: str
    id: UUID


_own = threading.local()

KEEPALIVE = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
"""A relay whose machine is gone says no farewell: its lanes must not stay taken for hours."""


def _keeper() -> "psycopg.Connection[Any]":
    """This thread's connection for holding lanes: deliveries are commands with their own transactions."""
    held: psycopg.Connection[Any] | None = getattr(_own, "connection", None)
    if held is None or held.closed:
        parameters = connection.get_connection_params()
        for ours in ("cursor_factory", "context", "prepare_threshold", "pool", "server_side_binding"):
            parameters.pop(ours, None)
        held = _own.connection = psycopg.connect(**parameters, autocommit=True)
        held.execute(KEEPALIVE)
    return held


@contextmanager
def lane(number: int, destination: Destination) -> Iterator[bool]:
    """Hold a lane for one destination; yields False when another relay has it."""
    keeper = _keeper()
    with keeper.transaction():
        keeper.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        row = keeper.execute(
            "SELECT pg_try_advisory_xact_lock(hashtext(%s), %s)",
            [f"factory.relay.{destination.prefix}", number],
        ).fetchone()
        yield bool(row and row[0])


def still_ours() -> None:
    """Raises when the connection that holds the lane is gone, and the lane with it."""
    _keeper().execute("SELECT 1")


def busy_lanes(destination: Destination, tenant_id: str | None = None) -> list[int]:
    """Lanes with something due for a destination."""
    only, params = ("AND tenant_id = %s", [tenant_id]) if tenant_id else ("", [])
    with scanning() as cursor:
        cursor.execute(
            f"SELECT DISTINCT lane FROM factory_outboxevent WHERE {destination.done_column} IS NULL "
            f"{only} ORDER BY lane",
            params,
        )
        return [lane for (lane,) in cursor.fetchall()]


_resting = Resting()
"""Streams that could not even be read or marked; what a handler refuses has its delay in the database."""


def due_streams(
    destination: Destination, lanes: Sequence[int], tenant_id: str | None = None, limit: int = 500
) -> list[DueStream]:
    """Streams of these lanes whose *first* undelivered event is due and not set aside."""
    prefix, done = destination.prefix, destination.done_column
    only, params = ("AND tenant_id = %s", [tenant_id]) if tenant_id else ("", [])
    with scanning() as cursor:
        cursor.execute(
            f"""
            SELECT tenant_id, stream_id FROM (
                SELECT DISTINCT ON (stream_id) tenant_id, stream_id, occurred_at,
                       {prefix}_due_at AS due_at, {prefix}_set_aside_at AS set_aside_at
                FROM factory_outboxevent WHERE {done} IS NULL AND lane = ANY(%s) {only}
                ORDER BY stream_id, sequence, position
            ) AS first
            WHERE set_aside_at IS NULL AND (due_at IS NULL OR due_at <= clock_timestamp())
              AND stream_id <> ALL(%s)
            ORDER BY occurred_at LIMIT {limit}
            """,
            [list(lanes), *params, _resting.items()],
        )
        return [DueStream(*row) for row in cursor.fetchall()]


def deliver_stream(destination: Destination, stream: DueStream, limit: int = 200) -> int:
    """Deliver a stream's events in order until one fails; returns how many went out."""
    ctx = system(stream.tenant_id, "Relay", channel="handler")
    with reading(ctx):
        events = list(
            OutboxEvent.objects.filter(
                stream_id=stream.id, **{f"{destination.done_column}__isnull": True}
            ).order_by("sequence", "position")[:limit]
        )
    delivered: list[UUID] = []
    failure: tuple[OutboxEvent, Exception] | None = None
    away: DestinationAway | None = None
    for event in events:
        if getattr(event, f"{destination.prefix}_set_aside_at"):
            break
        try:
            destination.deliver(context_of(event), event)
        except DestinationAway as fault:
            away = fault
            break
        except Exception as fault:  # whatever a handler raises must not stop other streams
            failure = (event, fault)
            break
        delivered.append(event.id)
    _mark(destination, ctx, delivered, failure)
    if away is not None:
        raise away
    return len(delivered)


def context_of(event: OutboxEvent) -> Context:
    """Return the context of what an event causes: it belongs to the same trace and correlation."""
    ctx = system(
        event.tenant_id,
        "Relay",
        project_id=event.project_id,
        correlation_id=event.correlation_id,
        causation_id=event.id,
        channel="handler",
    )
    return replace(ctx, traceparent=event.traceparent)


def _mark(
    destination: Destination,
    ctx: Context,
    delivered: list[UUID],
    failure: tuple[OutboxEvent, Exception] | None,
) -> None:
    if not delivered and failure is None:
        return
    with bound(ctx), connection.cursor() as cursor:
        if delivered:
            cursor.execute(_MARK.format(done=destination.done_column), [delivered])
        if failure is not None:
            _mark_failure(cursor, destination, *failure)


_MARK = """
WITH mine AS MATERIALIZED (
    SELECT id FROM factory_outboxevent WHERE id = ANY(%s) AND {done} IS NULL
    ORDER BY sequence, position FOR NO KEY UPDATE
), at AS MATERIALIZED (SELECT clock_timestamp() AS now FROM (SELECT count(*) FROM mine) AS held)
UPDATE factory_outboxevent AS e SET {done} = at.now FROM at, mine WHERE e.id = mine.id
"""
"""One time for all, read after the rows are held: or a later event could seem to be delivered first."""


def _mark_failure(cursor: Any, destination: Destination, event: OutboxEvent, fault: Exception) -> None:
    prefix = destination.prefix
    retryable = isinstance(fault, DomainError) and fault.retryable
    attempts = getattr(event, f"{prefix}_attempts") + (0 if retryable else 1)
    delay = min(LONGEST_DELAY_SECONDS, 0.25 * 2**attempts)
    if isinstance(fault, DomainError):
        delay = max(delay, fault.retry_seconds)
    aside = "clock_timestamp()" if attempts >= ATTEMPTS else "NULL"
    cursor.execute(
        f"UPDATE factory_outboxevent SET {prefix}_attempts = %s, {prefix}_error = %s, "
        f"{prefix}_due_at = clock_timestamp() + make_interval(secs => %s), {prefix}_set_aside_at = {aside} "
        f"WHERE id = %s AND {destination.done_column} IS NULL",
        [attempts, _told(fault), delay, event.id],
    )
    log.warning(
        "delivery_failed", destination=prefix, topic=event.topic, event_id=str(event.id), attempts=attempts,
        set_aside=attempts >= ATTEMPTS, fault=type(fault).__name__,
    )  # fmt: skip


def _told(fault: Exception) -> str:
    """Return what is kept of a fault: one line (PostgreSQL's further ones quote rows), and always
    storable."""
    lines = str(fault).splitlines()
    return storable(f"{type(fault).__name__}: {lines[0] if lines else ''}", 500)


def deliver_due(destination: Destination, tenant_id: str | None = None) -> int:
    """One round over every lane that no other relay holds; returns the number of events delivered.

    A stream that cannot be worked keeps no other waiting. Raises `DestinationAway` at once: the rest of the
    round would meet it too.
    """
    total = 0
    alone = Bulkhead(f"relay.{destination.prefix}", through=(DestinationAway,), resting=_resting)
    for number in busy_lanes(destination, tenant_id):
        with lane(number, destination) as ours:
            if ours:
                for stream in due_streams(destination, [number], tenant_id):
                    still_ours()
                    with alone.item(stream.id, stream.tenant_id):
                        total += deliver_stream(destination, stream)
    return total


def drain(destination: Destination, tenant_id: str, seconds: float = 10.0) -> int:
    """Deliver one tenant's events until nothing more is due; for commands that wait for the end."""
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        delivered = deliver_due(destination, tenant_id)
        total += delivered
        if not delivered:
            break
    return total
