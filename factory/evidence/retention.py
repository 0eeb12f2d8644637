"""Removing evidence whose time is over: by a role of its own, of what has ended, never without a record.

Of a stream the oldest entries go first, so what remains is still a chain: it goes on from the hash that the
purge record holds. A purge is thereby told from tampering, by the auditor and by the anchors.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db.backends.utils import CursorWrapper

from factory.kernel.bulkhead import Bulkhead
from factory.kernel.chain import audit_stream, purge_hash
from factory.kernel.ids import uuid7
from factory.kernel.tenancy import retaining

log = structlog.get_logger("factory.evidence.retention")

BATCH = 500

_ended: list[str] = []
_kept: list[str] = []
_with_events: list[str] = []


def ended_streams(query: str) -> None:
    """Declare streams to which nothing will be added: SQL for stream_id, tenant_id and ended_at."""
    _ended.append(query)


def keeps_its_key(operation: str) -> None:
    """Declare a command whose record lives as long as what it made: its key answers the same for ever."""
    _kept.append(operation)


def goes_with_events(statement: str) -> None:
    """Declare what is kept no longer than delivered events: a DELETE that takes their days."""
    _with_events.append(statement)


@dataclass(slots=True)
class Purged:
    """Say how many rows went, by kind."""

    journal: int = 0
    audit: int = 0
    outbox: int = 0
    inbox: int = 0
    idempotency: int = 0
    messages: int = 0
    failed: int = 0

    def words(self) -> str:
        return ", ".join(f"{getattr(self, name)} {name}" for name in self.__slots__)

    def add(self, other: "Purged") -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def purge() -> Purged:
    """Remove what is past its time, one stream a transaction; stopped half-way, the next one goes on.

    A stream that cannot be purged is counted as `failed`, and keeps no other.
    """
    done, alone = Purged(), Bulkhead("purge")
    days = {
        "journal": settings.FACTORY_JOURNAL_RETENTION_DAYS,
        "audit": settings.FACTORY_AUDIT_RETENTION_DAYS,
        "outbox": min(settings.FACTORY_OUTBOX_RETENTION_DAYS, settings.FACTORY_JOURNAL_RETENTION_DAYS),
    }
    for streams in _batches(min(days.values())):
        for stream, tenant in streams:
            with alone.item(stream, tenant):
                done.add(_purge_stream(stream, tenant, days))
    done.failed = alone.counts.failed
    with retaining() as cursor:
        cursor.execute(
            "DELETE FROM factory_idempotencyrecord WHERE operation NOT LIKE '%%.%%' "
            "AND operation <> ALL(%s) AND created_at < clock_timestamp() - make_interval(days => %s)",
            [_kept, settings.FACTORY_IDEMPOTENCY_RETENTION_DAYS],
        )
        done.idempotency = cursor.rowcount
        for statement in _with_events:
            cursor.execute(statement, [days["outbox"]])
            done.messages += cursor.rowcount
    log.info("purged", **{name: getattr(done, name) for name in Purged.__slots__})
    return done


def _batches(days: int) -> Iterator[list[tuple[UUID, str]]]:
    """Streams that ended before the shortest time, with something left in them."""
    found = iter(_candidates(days))
    while batch := list(islice(found, BATCH)):
        left = _with_something_left([stream for stream, _ in batch])
        yield [(stream, tenant) for stream, tenant in batch if stream in left]


def _with_something_left(streams: Sequence[UUID]) -> set[UUID]:
    """Most that has ended was emptied long ago; it is not looked at one by one again, day after day."""
    about = {audit_stream(stream): stream for stream in streams}
    with retaining() as cursor:
        cursor.execute(_LEFT, [[*streams, *about]])
        return {about.get(stream, stream) for (stream,) in cursor.fetchall()}


_LEFT = "SELECT s.id FROM unnest(%s::uuid[]) AS s(id) WHERE " + " OR ".join(
    f"EXISTS (SELECT 1 FROM {table} t WHERE t.stream_id = s.id)"
    for table in ("factory_journalentry", "factory_auditentry", "factory_outboxevent")
)


def _candidates(days: int) -> list[tuple[UUID, str]]:
    if not _ended:
        return []
    with retaining() as cursor:
        cursor.execute(
            f"SELECT stream_id, tenant_id FROM ({' UNION ALL '.join(_ended)}) AS ended "
            "WHERE ended_at < clock_timestamp() - make_interval(days => %s) ORDER BY ended_at, stream_id",
            [days],
        )
        return [(stream, tenant) for stream, tenant in cursor.fetchall()]


def _purge_stream(stream: UUID, tenant: str, days: dict[str, int]) -> Purged:
    done = Purged()
    with retaining() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('factory.purge'))")  # one purge at a time
        cursor.execute("SELECT clock_timestamp()")
        at: datetime = cursor.fetchone()[0]
        before = {kind: at - timedelta(days=n) for kind, n in days.items()}
        events = _outbox_prefix(cursor, stream, before["outbox"])
        if events is not None:
            done.inbox += _remove_inbox(cursor, stream, tenant, events)
            _remove_deliveries(cursor, stream, events)
            row = _record(stream, tenant, "outbox", events, "", {}, days["outbox"], at)
            done.outbox += _remove(cursor, row, "factory_outboxevent")
        entries = _journal_prefix(cursor, stream, before["journal"])
        if entries is not None:
            hash_, states = _what_is_kept(cursor, stream, entries[0])
            row = _record(stream, tenant, "journal", entries, hash_, states, days["journal"], at)
            done.journal += _remove(cursor, row, "factory_journalentry")
        about = audit_stream(stream)
        noted = _prefix(cursor, "factory_auditentry", about, before["audit"])
        if noted is not None:
            cursor.execute(
                "SELECT hash FROM factory_auditentry WHERE stream_id = %s AND sequence = %s",
                [about, noted[0]],
            )
            row = _record(about, tenant, "audit", noted, cursor.fetchone()[0], {}, days["audit"], at)
            done.audit += _remove(cursor, row, "factory_auditentry")
    return done


Prefix = tuple[int, datetime]
"""The last sequence that goes, and the time of the newest row among those that go."""


def _prefix(
    cursor: CursorWrapper, table: str, stream: UUID, before: datetime, more: str = "", *params: Any
) -> Prefix | None:
    """Return how far the rows from the oldest on are past their time (and satisfy `more`)."""
    cursor.execute(
        f"""
        SELECT max(sequence), max(occurred_at) FROM {table} WHERE stream_id = %s AND sequence < coalesce(
            (SELECT min(sequence) FROM {table} WHERE stream_id = %s AND NOT (occurred_at < %s {more})),
            9223372036854775807)
        """,
        [stream, stream, before, *params],
    )
    last, newest = cursor.fetchone()
    return None if last is None else (int(last), newest)


def _outbox_prefix(cursor: CursorWrapper, stream: UUID, before: datetime) -> Prefix | None:
    """Return what has been delivered everywhere; an event that was set aside waits for a person, and
    stays."""
    delivered = (
        "AND handled_at IS NOT NULL AND streamed_at IS NOT NULL AND NOT EXISTS ("
        "SELECT 1 FROM factory_webhookdelivery d "
        "JOIN factory_webhooksubscription s ON s.id = d.subscription_id "
        "WHERE d.event_id = factory_outboxevent.id AND d.delivered_at IS NULL AND s.state = 'Active')"
    )
    return _prefix(cursor, "factory_outboxevent", stream, before, delivered)


def _journal_prefix(cursor: CursorWrapper, stream: UUID, before: datetime) -> Prefix | None:
    """Entries go no sooner than the events that they tell."""
    left = (
        "AND sequence < coalesce((SELECT min(sequence) FROM factory_outboxevent WHERE stream_id = %s), "
        "9223372036854775807)"
    )
    return _prefix(cursor, "factory_journalentry", stream, before, left, stream)


def _what_is_kept(cursor: CursorWrapper, stream: UUID, last: int) -> tuple[str, dict[str, str]]:
    """The hash from which the chain goes on, and the last state of each entity among what goes."""
    cursor.execute(
        "SELECT DISTINCT ON (entity_id) entity_id, to_state FROM factory_journalentry "
        "WHERE stream_id = %s AND sequence <= %s ORDER BY entity_id, sequence DESC",
        [stream, last],
    )
    states = {str(entity): state for entity, state in cursor.fetchall()}
    cursor.execute(
        "SELECT hash FROM factory_journalentry WHERE stream_id = %s AND sequence = %s", [stream, last]
    )
    return str(cursor.fetchone()[0]), states


def _remove_deliveries(cursor: CursorWrapper, stream: UUID, events: Prefix) -> None:
    """An event's ways to webhooks go with it; a disabled webhook is waited for no longer."""
    cursor.execute(
        "DELETE FROM factory_webhookdelivery WHERE stream_id = %s AND sequence <= %s", [stream, events[0]]
    )


def _remove_inbox(cursor: CursorWrapper, stream: UUID, tenant: str, events: Prefix) -> int:
    """Whoever handled an event that can never come again need not be remembered."""
    cursor.execute(
        "DELETE FROM factory_idempotencyrecord WHERE tenant_id = %s AND operation LIKE '%%.%%' AND key IN "
        "(SELECT id::text FROM factory_outboxevent WHERE stream_id = %s AND sequence <= %s)",
        [tenant, stream, events[0]],
    )
    return int(cursor.rowcount)


def _record(
    stream: UUID,
    tenant: str,
    kind: str,
    upto: Prefix,
    hash_: str,
    states: dict[str, str],
    days: int,
    at: datetime,
) -> dict[str, Any]:
    return {
        "tenant_id": tenant, "stream_id": stream, "kind": kind, "sequence": upto[0], "hash": hash_,
        "newest_at": upto[1], "states": states, "retention_days": days, "purged_at": at,
    }  # fmt: skip


def _remove(cursor: CursorWrapper, record: dict[str, Any], table: str) -> int:
    """Delete a stream's rows up to the record's sequence and write the record, in one transaction."""
    cursor.execute(
        f"DELETE FROM {table} WHERE stream_id = %s AND sequence <= %s",
        [record["stream_id"], record["sequence"]],
    )
    record["rows"] = cursor.rowcount
    cursor.execute("SELECT number, record_hash FROM factory_purge ORDER BY number DESC LIMIT 1")
    number, last = cursor.fetchone() or (0, "")
    record |= {"id": uuid7(), "number": number + 1, "prev_hash": last}
    record["record_hash"] = purge_hash(record)
    _insert(cursor, record)
    return int(record["rows"])


def _insert(cursor: CursorWrapper, record: dict[str, Any]) -> None:
    columns: Sequence[str] = list(record)
    cursor.execute(
        f"INSERT INTO factory_purge ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})",
        [json.dumps(v) if isinstance(v, dict) else v for v in record.values()],
    )
