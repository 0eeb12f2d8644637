"""The kernel's invariants: journal and chain (A), outbox (C) and boundaries (F)."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from django.apps import apps
from django.db import models
from django.db.backends.utils import CursorWrapper

from factory.evidence.auditor import check, invariant, judged, streamed
from factory.evidence.readable import array_of, is_uuid, object_of, uuid_of
from factory.kernel.chain import (
    AUDIT_CONTENT,
    ENVELOPE,
    JOURNAL_CONTENT,
    PURGE_CONTENT,
    chained,
    content_of,
    purge_hash,
    seal,
)
from factory.kernel.hashing import canonical
from factory.kernel.lifecycle import lifecycles
from factory.kernel.models.base import Journaled, TenantForeignKey, TenantModel

Rows = Iterator[tuple[Any, Any, Any]]


def tenant_models() -> list[type[TenantModel]]:
    """Every table that belongs to tenants."""
    return [m for m in apps.get_models() if issubclass(m, TenantModel)]


def journaled_models() -> list[type[Journaled]]:
    """Every table whose states are journaled."""
    return [m for m in apps.get_models() if issubclass(m, Journaled)]


PURGED = "SELECT stream_id, max(sequence) AS sequence FROM factory_purge WHERE kind = '{}' GROUP BY stream_id"
"""How far each stream has been removed by retention."""
LAST_PURGED_STATES = f"""
    SELECT {uuid_of("s.key")} AS entity_id, (array_agg(s.value ORDER BY p.number DESC))[1] AS state
    FROM factory_purge p, jsonb_each_text({object_of("p.states")}) s GROUP BY 1
"""
UNREADABLE_STATES = f"""
    SELECT p.tenant_id, 'purge:' || p.number, 'its last states cannot be checked: not all are of a UUID'
    FROM factory_purge p WHERE jsonb_typeof(p.states) <> 'object' OR EXISTS (
        SELECT 1 FROM jsonb_object_keys({object_of("p.states")}) k WHERE NOT {is_uuid("k")})
"""


@check("A1", "The last journaled state of every entity is its state, and every entity is journaled")
def last_state(cursor: CursorWrapper) -> Rows:
    cursor.execute(UNREADABLE_STATES)
    yield from cursor.fetchall()
    for model in journaled_models():
        cursor.execute(
            f"""
            SELECT e.tenant_id, %s || ':' || e.id, 'row says ' || e.state || ', journal says '
                   || coalesce(j.to_state, gone.state, 'nothing')
            FROM "{model._meta.db_table}" e LEFT JOIN LATERAL (
                SELECT to_state FROM factory_journalentry
                WHERE entity_id = e.id AND entity = %s ORDER BY sequence DESC LIMIT 1) j ON true
            LEFT JOIN ({LAST_PURGED_STATES}) gone ON gone.entity_id = e.id
            WHERE coalesce(j.to_state, gone.state) IS DISTINCT FROM e.state
            """,
            [model.lifecycle.entity, model.lifecycle.entity],
        )
        yield from cursor.fetchall()


@check("A2", "Every journal entry is about an entity that exists")
def entity_exists(cursor: CursorWrapper) -> Rows:
    for model in journaled_models():
        cursor.execute(
            f"""
            SELECT j.tenant_id, j.entity || ':' || j.entity_id, 'the journal knows it, the table does not'
            FROM factory_journalentry j WHERE j.entity = %s AND j.from_state = 'None'
            AND NOT EXISTS (SELECT 1 FROM "{model._meta.db_table}" e WHERE e.id = j.entity_id)
            """,
            [model.lifecycle.entity],
        )
        yield from cursor.fetchall()


def _gapless(kind: str) -> str:
    return f"""
        SELECT h.tenant_id, h.stream_id, 'head says ' || h.sequence || ', ' || count(l.sequence)
               || ' entries from ' || coalesce(min(l.sequence), 0) || ' to ' || coalesce(max(l.sequence), 0)
        FROM factory_chainhead h JOIN factory_{kind}entry l USING (stream_id)
        LEFT JOIN ({PURGED.format(kind)}) gone USING (stream_id)
        GROUP BY h.tenant_id, h.stream_id, h.sequence, gone.sequence
        HAVING count(*) <> h.sequence - coalesce(gone.sequence, 0) OR max(l.sequence) <> h.sequence
            OR min(l.sequence) <> coalesce(gone.sequence, 0) + 1
    """


@invariant("A3", "Journal sequences are gapless from 1 and end where the chain's head says")
def journal_gapless() -> str:
    return _gapless("journal")


@invariant("A3b", "Audit sequences are gapless from 1 and end where the chain's head says")
def audit_gapless() -> str:
    return _gapless("audit")


@invariant("A3c", "Every chain head has a chain, and every chain a head")
def heads_have_chains() -> str:
    chains = (
        "SELECT tenant_id, stream_id FROM factory_journalentry "
        "UNION SELECT tenant_id, stream_id FROM factory_auditentry "
        "UNION SELECT p.tenant_id, p.stream_id FROM factory_purge p JOIN factory_chainhead h "
        "ON h.stream_id = p.stream_id AND h.sequence = p.sequence AND h.hash = p.hash "
        "WHERE p.kind <> 'outbox'"
    )
    return f"""
        SELECT coalesce(h.tenant_id, c.tenant_id), coalesce(h.stream_id, c.stream_id),
               'head or chain is missing'
        FROM factory_chainhead h
        FULL JOIN ({chains}) c ON c.stream_id = h.stream_id AND c.tenant_id = h.tenant_id
        WHERE h.stream_id IS NULL OR c.stream_id IS NULL
    """


@invariant("A4", "Each entry starts from the state in which the one before left its entity")
def states_connect() -> str:
    return f"""
        {UNREADABLE_STATES} UNION ALL
        SELECT tenant_id, entity || ':' || entity_id, 'entry ' || sequence || ' starts from ' || from_state
               || ' after ' || before
        FROM (SELECT e.*, coalesce(lag(e.to_state) OVER (PARTITION BY e.entity_id ORDER BY e.sequence),
                                   gone.state, 'None') AS before
              FROM factory_journalentry e LEFT JOIN ({LAST_PURGED_STATES}) gone USING (entity_id)) j
        WHERE from_state <> before
    """


@check("A5", "Every journaled transition is declared, for its cause and with its events")
def transitions_declared(cursor: CursorWrapper) -> Rows:
    cursor.execute(
        f"""
        SELECT entity, from_state, to_state, cause,
               coalesce((SELECT array_agg(e->>'topic' ORDER BY e->>'topic')
                         FROM jsonb_array_elements({array_of("events")}) e), '{{}}') AS topics,
               tenant_id, min(stream_id::text), count(*)
        FROM factory_journalentry GROUP BY 1, 2, 3, 4, 5, 6
        """
    )
    for entity, before, after, cause, topics, tenant, stream, count in cursor.fetchall():
        if not _is_declared(entity, before, after, cause, set(topics)):
            told = sorted(str(topic) for topic in topics)
            yield tenant, stream, f"{count} × {entity} {before} → {after} ({cause}) telling {told}"


def _is_declared(entity: str, before: str, after: str, cause: str, told: set[str]) -> bool:
    cycle = lifecycles().get(entity)
    edge = cycle.edge(before, after, cause) if cycle else None
    return edge is not None and set(edge.events) <= told <= {*edge.events, *edge.optional}


@check("A6", "Every journal entry's hash follows from the one before and its content")
def journal_chain(cursor: CursorWrapper) -> Rows:
    yield from _broken_chains(cursor, "journal", JOURNAL_CONTENT)


@check("A6b", "Every audit entry's hash follows from the one before and its content")
def audit_chain(cursor: CursorWrapper) -> Rows:
    yield from _broken_chains(cursor, "audit", AUDIT_CONTENT)


def _broken_chains(cursor: CursorWrapper, kind: str, columns: tuple[str, ...]) -> Rows:
    names = [*columns, "prev_hash", "hash"]
    own = ", ".join(_read(f"l.{name}") for name in names)
    query = f"""
        SELECT {own}, h.hash, coalesce(gone.hash, '') FROM factory_{kind}entry l
        LEFT JOIN factory_chainhead h ON h.stream_id = l.stream_id
        LEFT JOIN LATERAL (SELECT hash FROM factory_purge p
                           WHERE p.stream_id = l.stream_id AND p.kind = '{kind}'
                           ORDER BY p.sequence DESC LIMIT 1) gone ON true
        ORDER BY l.stream_id, l.sequence
    """
    stream, last, tenant, head = None, "", "", None
    for batch in streamed(cursor, query):
        for *values, next_head, start in batch:
            row = dict(zip(names, values, strict=True))
            if row["stream_id"] != stream:
                yield from _unlike_head(head, stream, last, tenant)
                stream, last, head = row["stream_id"], start, next_head
            tenant = row["tenant_id"]
            yield from judged(tenant, f"{stream}#{row['sequence']}", partial(_unlike, row, last, columns))
            last = row["hash"]
    yield from _unlike_head(head, stream, last, tenant)


def _unlike(row: dict[str, Any], last: str, columns: tuple[str, ...]) -> str | None:
    content = canonical(content_of(_parsed(row), columns))
    follows = row["prev_hash"] == last and chained(last, content) == row["hash"]
    return None if follows else "the hash does not follow from its content"


def _unlike_head(head: str | None, stream: Any, last: str, tenant: str) -> Rows:
    if stream is not None and head != last:
        yield tenant, str(stream), "the chain ends with another hash than its head holds"


def _read(column: str) -> str:
    """Return the expression that reads a column: a time as `stamp` writes it, so that any can be read."""
    if not column.endswith("_at"):
        return column
    return f"""to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""


def _parsed(row: dict[str, Any]) -> dict[str, Any]:
    """JSON columns come as text from a bare cursor."""
    for name in ("detail", "events", "payload", "states"):
        if isinstance(row.get(name), str):
            row[name] = json.loads(row[name])
    return row


@invariant("A8", "Time never runs backwards within a chain")
def time_rises() -> str:
    return """
        SELECT tenant_id, stream_id || '#' || sequence, occurred_at || ' after ' || before
        FROM (SELECT *, lag(occurred_at) OVER (PARTITION BY stream_id ORDER BY sequence) AS before
              FROM factory_journalentry) j WHERE occurred_at < before
    """


@check("A9", "What was removed had passed its time, and each removal is recorded in an unbroken chain")
def removals_recorded(cursor: CursorWrapper) -> Rows:
    names = ("number", *PURGE_CONTENT, "prev_hash", "record_hash")
    early = "newest_at + make_interval(days => retention_days) > purged_at"
    query = f"SELECT {', '.join(map(_read, names))}, {early} FROM factory_purge ORDER BY number"
    last, expected = "", 0
    for batch in streamed(cursor, query):
        for *values, too_early in batch:
            row, expected = dict(zip(names, values, strict=True)), expected + 1
            tenant, subject = row["tenant_id"], f"purge:{row['number']}"
            yield from judged(tenant, subject, partial(_unlike_record, row, expected, last))
            if too_early:
                yield tenant, subject, f"entries of {row['newest_at']} were removed before their time"
            expected, last = row["number"], row["record_hash"]


def _unlike_record(row: dict[str, Any], expected: int, last: str) -> str | None:
    follows = row["number"] == expected and row["prev_hash"] == last
    if follows and purge_hash(_parsed(row)) == row["record_hash"]:
        return None
    return "the record does not follow from its content and the one before"


_TOLD = f"""
    SELECT j.tenant_id, j.stream_id, j.sequence, (e.ordinality - 1)::int AS position,
           {uuid_of("e.value->>'id'")} AS id, e.value->>'topic' AS topic, e.value->>'hash' AS hash
    FROM factory_journalentry j LEFT JOIN ({PURGED.format("outbox")}) gone USING (stream_id),
         jsonb_array_elements({array_of("j.events")}) WITH ORDINALITY e
    WHERE j.sequence > coalesce(gone.sequence, 0)
"""
_UNREADABLE_EVENTS = f"""
    SELECT j.tenant_id, j.stream_id || '#' || j.sequence, 'its events cannot be checked: not all have a UUID'
    FROM factory_journalentry j WHERE jsonb_typeof(j.events) <> 'array' OR EXISTS (
        SELECT 1 FROM jsonb_array_elements({array_of("j.events")}) e
        WHERE {is_uuid("e->>'id'")} IS NOT TRUE)
"""


@invariant("C1", "The outbox holds exactly the events that the journal tells, in their places")
def outbox_matches_journal() -> str:
    return f"""
        {_UNREADABLE_EVENTS} UNION ALL
        SELECT coalesce(t.tenant_id, o.tenant_id), coalesce(t.stream_id, o.stream_id) || '#'
               || coalesce(t.sequence, o.sequence),
               coalesce('has untold ' || o.topic, concat('lacks ', t.topic))
        FROM ({_TOLD}) t FULL JOIN factory_outboxevent o
          ON o.id = t.id AND o.tenant_id = t.tenant_id AND o.stream_id = t.stream_id
         AND o.sequence = t.sequence AND o.position = t.position AND o.topic = t.topic
        WHERE o.id IS NULL OR t.id IS NULL
    """


@check("C2", "Each event's data and envelope are what the journal's chain covers")
def event_data(cursor: CursorWrapper) -> Rows:
    cursor.execute(_UNREADABLE_EVENTS)
    yield from cursor.fetchall()
    own = ", ".join(_read(f"o.{name}") for name in ENVELOPE)
    query = f"SELECT o.tenant_id, o.id, t.hash, {own} FROM ({_TOLD}) t JOIN factory_outboxevent o USING (id)"
    for batch in streamed(cursor, query):
        for tenant, event, hash_, *values in batch:
            row = dict(zip(ENVELOPE, values, strict=True))
            yield from judged(tenant, event, partial(_unlike_event, row, hash_))


def _unlike_event(row: dict[str, Any], hash_: str) -> str | None:
    return None if seal(_parsed(row)) == hash_ else "the event is not what was recorded"


@invariant("C3", "Nothing is delivered before an earlier event of its stream")
def delivered_in_order() -> str:
    return " UNION ALL ".join(
        f"""
        SELECT l.tenant_id, l.stream_id || '#' || l.sequence, '{column} before an earlier event of its stream'
        FROM factory_outboxevent l WHERE l.{column} IS NOT NULL AND EXISTS (
            SELECT 1 FROM factory_outboxevent e WHERE e.stream_id = l.stream_id
            AND (e.sequence, e.position) < (l.sequence, l.position)
            AND (e.{column} IS NULL OR e.{column} > l.{column}))
        """
        for column in ("handled_at", "streamed_at")
    )


@invariant("C4", "Every inbox record is about an event that exists")
def inbox_events_exist() -> str:
    return """
        SELECT i.tenant_id, i.operation || ':' || i.key, 'handled an event that nobody told'
        FROM factory_idempotencyrecord i WHERE i.operation LIKE '%.%'
        AND NOT EXISTS (SELECT 1 FROM factory_outboxevent o
                        WHERE o.id::text = i.key AND o.tenant_id = i.tenant_id)
    """


@check("F1", "Every reference stays within its tenant")
def references_within_tenant(cursor: CursorWrapper) -> Rows:
    for model in tenant_models():
        for field in model._meta.concrete_fields:
            if isinstance(field, models.ForeignKey) and _is_tenant_reference(field):
                target = field.remote_field.model._meta
                cursor.execute(
                    f"""
                    SELECT r.tenant_id, '{model._meta.db_table}:' || r."{model._meta.pk.column}",
                           '{field.column} leads to ' || coalesce('tenant ' || t.tenant_id, 'nothing')
                    FROM "{model._meta.db_table}" r LEFT JOIN "{target.db_table}" t
                      ON t."{target.pk.column}" = r."{field.column}"
                    WHERE r."{field.column}" IS NOT NULL AND t.tenant_id IS DISTINCT FROM r.tenant_id
                    """
                )
                yield from cursor.fetchall()


def _is_tenant_reference(field: Any) -> bool:
    return isinstance(field, TenantForeignKey) and issubclass(field.remote_field.model, TenantModel)


@invariant("F3", "No idempotency record is without its answer")
def records_finished() -> str:
    return """
        SELECT tenant_id, operation || ':' || key, 'it says that it happened, but not what came of it'
        FROM factory_idempotencyrecord WHERE result IS NULL
    """


@invariant("F4", "Each setting that was changed holds what the audit log last says of it")
def settings_as_logged() -> str:
    return """
        SELECT '', 'setting:' || coalesce(s.name, l.name), 'the row says '
               || coalesce(s.value::text, 'nothing') || ', the audit log ' || coalesce(l.after, 'nothing')
        FROM factory_setting s FULL JOIN (
            SELECT DISTINCT ON (subject) substr(subject, 9) AS name, detail->>'after' AS after
            FROM factory_auditentry
            WHERE action = 'ChangeSetting' AND outcome = 'done' AND subject LIKE 'setting:%'
            ORDER BY subject, occurred_at DESC, sequence DESC
        ) l USING (name)
        WHERE s.value::text IS DISTINCT FROM l.after
    """
