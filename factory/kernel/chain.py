"""The form of the evidence: how journal and audit entries are numbered, chained and written.

Each entry's hash covers the hash before it and every column of the entry; the journal's also
covers the hash of each event, its data and its envelope.
`factory.evidence.invariants` recomputes them from the stored rows.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from django.db import connection

from factory.kernel.context import Context
from factory.kernel.errors import DomainError, InvalidInput, TooLarge
from factory.kernel.events import wire
from factory.kernel.hashing import canonical, digest, digest_bytes, storable
from factory.kernel.ids import uuid7
from factory.kernel.models.journal import MOST_AUDIT_SUBJECT
from factory.kernel.models.webhook import PINGED
from factory.kernel.recording import AuditNote, PendingEntry, Work
from factory.kernel.writing import portions

MOST_DETAIL = 128 * 1024
"""Bytes of one entry. It holds ids, codes and a reason in words, and is kept for years."""
MOST_REFUSAL = 4000
MOST_AT_ONCE = 500
"""Entries of one statement: an act of twenty thousand leaves its transaction idle, or one statement at work,
no longer than the role's time-outs allow."""

LANES = 64
"""Deliveries are spread over this many lanes; a stream always takes the same one."""


def lane_of(stream: UUID) -> int:
    """The delivery lane of a stream."""
    return int.from_bytes(stream.bytes[-2:], "big") % LANES


def audit_stream(stream: UUID) -> UUID:
    """The audit log's own chain about the same thing."""
    return uuid5(NAMESPACE_OID, f"audit:{stream}")


def scope_stream(ctx: Context) -> UUID:
    """The chain of what concerns no entity: one for each project and for each tenant."""
    return uuid5(NAMESPACE_OID, f"scope:{ctx.tenant_id}:{ctx.project_id or ''}")


def chained(prev_hash: str, content: bytes) -> str:
    """The hash of an entry with this canonical content that follows `prev_hash`."""
    return digest_bytes(prev_hash.encode() + b"\n" + content)


def stamp(at: datetime) -> str:
    """A time as it is hashed: UTC with microseconds, as PostgreSQL keeps it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


JOURNAL_CONTENT = (
    "tenant_id", "stream_id", "sequence", "entity", "entity_id", "cause", "from_state", "to_state",
    "actor", "actor_kind", "operation", "correlation_id", "detail", "events", "occurred_at",
)  # fmt: skip
AUDIT_CONTENT = (
    "tenant_id", "stream_id", "sequence", "project_id", "action", "subject", "outcome", "reason", "detail",
    "actor", "actor_kind", "person", "channel", "correlation_id", "occurred_at",
)  # fmt: skip


ENVELOPE = (
    "topic", "schema_version", "project_id", "run_id", "step_id", "attempt_id", "correlation_id",
    "causation_id", "traceparent", "payload", "occurred_at",
)  # fmt: skip
"""What of an event its hash covers. Its id and place are in the entry that tells it."""


PURGE_CONTENT = (
    "tenant_id", "stream_id", "kind", "sequence", "hash", "rows", "newest_at", "states", "retention_days",
    "purged_at",
)  # fmt: skip


def purge_hash(record: Mapping[str, Any]) -> str:
    """The hash of a purge record that follows `prev_hash`."""
    return chained(record["prev_hash"], canonical(content_of(record, PURGE_CONTENT)))


def seal(event: Mapping[str, Any]) -> str:
    """The hash of an event, its data and its envelope, as the journal's chain keeps it."""
    return digest(content_of(event, ENVELOPE))


def content_of(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """The hashed content of a stored or new row."""
    return {name: _plain(row[name]) for name in columns}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return stamp(value)
    return str(value) if isinstance(value, UUID) else value


def write(work: Work, *, audited: bool) -> bool:
    """Number, chain and insert all that the command recorded; the last act before its commit.

    Says whether there are events for the relay.
    """
    notes = list(work.notes)
    if audited and work.entries and all(note.action != work.operation for note in notes):
        notes.insert(0, _own_note(work))  # unless the command wrote its own, with a reason
    if not work.entries and not notes:
        return False
    main = work.entries[0].stream if work.entries else scope_stream(work.ctx)
    placed = [(audit_stream(note.stream or main), note) for note in notes]
    counts: dict[UUID, int] = {}
    for stream in [*(e.stream for e in work.entries), *(stream for stream, _ in placed)]:
        counts[stream] = counts.get(stream, 0) + 1
    chain = _Chain(work.ctx, _take_heads(work.ctx.tenant_id, counts))
    *ahead, last = portions(work.entries, MOST_AT_ONCE) or [[]]
    for entries in ahead:
        _insert(*chain.journal(work.operation, entries), [], chain.hashes())
    journal, outbox = chain.journal(work.operation, last)
    _insert(journal, outbox, chain.audits(placed), chain.hashes())
    return any(entry.events for entry in work.entries)


def refusal_note(action: str, refusal: DomainError) -> AuditNote:
    """The evidence of a refusal. Whatever words it carries, it can be written: nothing may keep it out."""
    told = wire(refusal.extra.get("evidence", {}))
    try:
        fits = len(canonical(told)) <= MOST_DETAIL
    except InvalidInput:
        fits = False
    evidence = told if fits else {"omitted": storable(repr(told), 2000)}
    return AuditNote(
        action,
        storable(str(refusal.extra.get("subject", "")), MOST_AUDIT_SUBJECT),
        "refused",
        storable(refusal.detail, MOST_REFUSAL),
        {"code": refusal.code, **evidence},
        refusal.extra.get("stream"),
    )


def _own_note(work: Work) -> AuditNote:
    first = work.entries[0]
    causes = Counter(f"{e.entity}:{e.cause}" for e in work.entries)  # an act may move any number of things
    subject, told = f"{first.entity}:{first.entity_id}", {"causes": dict(causes)}
    return AuditNote(work.operation, subject, "done", "", told, first.stream)


class _Chain:
    """Appends entries to streams whose heads are held."""

    def __init__(self, ctx: Context, heads: dict[UUID, tuple[int, str, datetime]]) -> None:
        self.ctx = ctx
        self.next = {stream: sequence for stream, (sequence, _, _) in heads.items()}
        self.last = {stream: hash_ for stream, (_, hash_, _) in heads.items()}
        self.at = max(at for _, _, at in heads.values())

    def hashes(self) -> list[dict[str, str]]:
        return [{"stream_id": str(stream), "hash": value} for stream, value in self.last.items()]

    def journal(
        self, operation: str, entries: Iterable[PendingEntry]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        rows, events = [], []
        for entry in entries:
            told = self._events(entry)
            row = self._common() | {
                "entity": entry.entity,
                "entity_id": str(entry.entity_id),
                "cause": entry.cause,
                "from_state": entry.before,
                "to_state": entry.after,
                "operation": operation,
                "detail": entry.detail,
                "events": [{"id": e["id"], "topic": e["topic"], "hash": seal(e)} for e in told],
            }
            rows.append(self._append(entry.stream, row, JOURNAL_CONTENT))
            events += [e | {"sequence": row["sequence"]} for e in told]
        return rows, events

    def audits(self, placed: Iterable[tuple[UUID, AuditNote]]) -> list[dict[str, Any]]:
        rows = []
        for stream, note in placed:
            row = self._common() | {
                "project_id": _text(self.ctx.project_id),
                "action": note.action,
                "subject": note.subject,
                "outcome": note.outcome,
                "reason": note.reason,
                "detail": note.detail,
                "person": self.ctx.actor.person,
                "channel": self.ctx.channel,
            }
            rows.append(self._append(stream, row, AUDIT_CONTENT))
        return rows

    def _common(self) -> dict[str, Any]:
        actor = self.ctx.actor
        return {
            "id": str(uuid7()),
            "tenant_id": self.ctx.tenant_id,
            "actor": actor.subject,
            "actor_kind": actor.kind,
            "correlation_id": str(self.ctx.correlation_id),
            "occurred_at": stamp(self.at),
        }

    def _append(self, stream: UUID, row: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        self.next[stream] += 1
        row |= {"stream_id": str(stream), "sequence": self.next[stream], "prev_hash": self.last[stream]}
        content = canonical(content_of(row, columns))
        if len(content) > MOST_DETAIL:
            raise TooLarge("The evidence of one act is larger than it may be: it holds ids and codes.")
        row["hash"] = self.last[stream] = chained(row["prev_hash"], content)
        return row

    def _events(self, entry: PendingEntry) -> list[dict[str, Any]]:
        ctx, refs = self.ctx, entry.refs
        return [
            {
                "id": str(uuid7()),
                "tenant_id": ctx.tenant_id,
                "stream_id": str(entry.stream),
                "position": position,
                "lane": lane_of(entry.stream),
                "topic": event.topic,
                "schema_version": event.schema_version,
                "project_id": _text(refs.project_id or ctx.project_id),
                "run_id": _text(refs.run_id),
                "step_id": _text(refs.step_id),
                "attempt_id": _text(refs.attempt_id),
                "correlation_id": str(ctx.correlation_id),
                "causation_id": _text(ctx.causation_id),
                "traceparent": ctx.traceparent,
                "payload": event.payload(),
                "occurred_at": stamp(self.at),
            }
            for position, event in enumerate(entry.events)
        ]


def _text(value: UUID | None) -> str | None:
    return str(value) if value else None


_TAKE_HEADS = """
INSERT INTO factory_chainhead AS head (stream_id, tenant_id, sequence, hash)
SELECT stream_id, %s, count, '' FROM unnest(%s::uuid[], %s::bigint[]) AS taken(stream_id, count)
ON CONFLICT (stream_id) DO UPDATE SET sequence = head.sequence + EXCLUDED.sequence
RETURNING stream_id, sequence, hash, clock_timestamp()
"""


def _take_heads(tenant_id: str, counts: Mapping[UUID, int]) -> dict[UUID, tuple[int, str, datetime]]:
    """Lock the heads in the order of their ids and reserve the numbers; the hashes are the old ones."""
    streams = sorted(counts)
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_HEADS, [tenant_id, streams, [counts[s] for s in streams]])
        rows = cursor.fetchall()
    return {stream: (sequence - counts[stream], hash_, at) for stream, sequence, hash_, at in rows}


_JOURNAL_COLUMNS = {
    "id": "uuid", "tenant_id": "text", "stream_id": "uuid", "sequence": "bigint", "entity": "text",
    "entity_id": "uuid", "cause": "text", "from_state": "text", "to_state": "text", "actor": "text",
    "actor_kind": "text", "operation": "text", "correlation_id": "uuid", "detail": "jsonb",
    "events": "jsonb", "occurred_at": "timestamptz", "prev_hash": "text", "hash": "text",
}  # fmt: skip
_OUTBOX_COLUMNS = {
    "id": "uuid", "tenant_id": "text", "stream_id": "uuid", "sequence": "bigint", "position": "smallint",
    "lane": "smallint", "topic": "text", "schema_version": "smallint", "project_id": "uuid", "run_id": "uuid",
    "step_id": "uuid", "attempt_id": "uuid", "correlation_id": "uuid", "causation_id": "uuid",
    "traceparent": "text", "payload": "jsonb", "occurred_at": "timestamptz",
}  # fmt: skip
_AUDIT_COLUMNS = {
    "id": "uuid", "tenant_id": "text", "stream_id": "uuid", "sequence": "bigint", "project_id": "uuid",
    "action": "text", "subject": "text", "outcome": "text", "reason": "text", "detail": "jsonb",
    "actor": "text", "actor_kind": "text", "person": "text", "channel": "text", "correlation_id": "uuid",
    "occurred_at": "timestamptz", "prev_hash": "text", "hash": "text",
}  # fmt: skip
_FRESH_OUTBOX = (
    "handle_attempts, handle_error, stream_attempts, stream_error, transaction_id",
    "0, '', 0, '', pg_current_xact_id()::text::bigint",
)


def _insertion(table: str, columns: Mapping[str, str], more: tuple[str, str]) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    typed = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
    extra_names, extra_values = (f", {part}" if part else "" for part in more)
    return (
        f"INSERT INTO {table} ({names}{extra_names}) "
        f"SELECT {names}{extra_values} FROM jsonb_to_recordset(%s::jsonb) AS r({typed})"
    )


_TRANSACTION = ("transaction_id", "pg_current_xact_id()::text::bigint")

_OFFER = f"""
INSERT INTO factory_webhookdelivery (id, tenant_id, subscription_id, event_id, stream_id, sequence, position,
    topic, project_id, run_id, created_at, attempts, error)
SELECT gen_random_uuid(), o.tenant_id, s.id, o.id, o.stream_id, o.sequence, o.position,
    o.topic, o.project_id, o.run_id, o.occurred_at, 0, ''
FROM o JOIN factory_webhooksubscription s ON s.tenant_id = o.tenant_id AND s.state = 'Active'
WHERE CASE WHEN o.topic = '{PINGED}' THEN o.stream_id = s.id
           ELSE (s.project_id IS NULL OR s.project_id = o.project_id)
                AND (s.topics = '{{}}' OR o.topic = ANY (s.topics)) END
"""
"""Each event's way to each subscription that wants it begins with the event, in the same statement."""

_WRITE = (
    f"WITH j AS ({_insertion('factory_journalentry', _JOURNAL_COLUMNS, _TRANSACTION)}), "
    f"o AS ({_insertion('factory_outboxevent', _OUTBOX_COLUMNS, _FRESH_OUTBOX)} RETURNING *), "
    f"w AS ({_OFFER}), "
    f"a AS ({_insertion('factory_auditentry', _AUDIT_COLUMNS, ('', ''))}) "
    "UPDATE factory_chainhead AS head SET hash = r.hash "
    "FROM jsonb_to_recordset(%s::jsonb) AS r(stream_id uuid, hash text) WHERE head.stream_id = r.stream_id"
)


def _insert(*tables: list[dict[str, Any]]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_WRITE, [json.dumps(rows) for rows in tables])
