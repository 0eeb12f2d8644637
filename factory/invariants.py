"""The kernel's invariants: journal and chain (A), outbox (C), boundaries (F) and walls (G)."""

import json
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db import models
from django.db.backends.utils import CursorWrapper

from factory.auditing import check, invariant
from factory.chain import AUDIT_CONTENT, JOURNAL_CONTENT, chained, content_of
from factory.database import role
from factory.hashing import canonical, digest
from factory.lifecycle import lifecycles
from factory.models.base import Journaled, TenantForeignKey, TenantModel
from factory.tenancy import TENANT_SETTING

Rows = Iterator[tuple[Any, Any, Any]]


def tenant_models() -> list[type[TenantModel]]:
    """Every table that belongs to tenants."""
    return [m for m in apps.get_models() if issubclass(m, TenantModel)]


def journaled_models() -> list[type[Journaled]]:
    """Every table whose states are journaled."""
    return [m for m in apps.get_models() if issubclass(m, Journaled)]


@check("A1", "The last journaled state of every entity is its state, and every entity is journaled")
def last_state(cursor: CursorWrapper) -> Rows:
    for model in journaled_models():
        cursor.execute(
            f"""
            SELECT e.tenant_id, %s || ':' || e.id, 'row says ' || e.state || ', journal says '
                   || coalesce(j.to_state, 'nothing')
            FROM "{model._meta.db_table}" e LEFT JOIN LATERAL (
                SELECT to_state FROM factory_journalentry
                WHERE entity_id = e.id AND entity = %s ORDER BY sequence DESC LIMIT 1) j ON true
            WHERE j.to_state IS DISTINCT FROM e.state
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


def _gapless(table: str) -> str:
    return f"""
        SELECT h.tenant_id, h.stream_id, 'head says ' || h.sequence || ', ' || count(l.sequence)
               || ' entries from ' || coalesce(min(l.sequence), 0) || ' to ' || coalesce(max(l.sequence), 0)
        FROM factory_chainhead h JOIN {table} l USING (stream_id)
        GROUP BY h.tenant_id, h.stream_id, h.sequence
        HAVING count(*) <> h.sequence OR max(l.sequence) <> h.sequence OR min(l.sequence) <> 1
    """


@invariant("A3", "Journal sequences are gapless from 1 and end where the chain's head says")
def journal_gapless() -> str:
    return _gapless("factory_journalentry")


@invariant("A3b", "Audit sequences are gapless from 1 and end where the chain's head says")
def audit_gapless() -> str:
    return _gapless("factory_auditentry")


@invariant("A3c", "Every chain head has a chain, and every chain a head")
def heads_have_chains() -> str:
    chains = (
        "SELECT tenant_id, stream_id FROM factory_journalentry "
        "UNION SELECT tenant_id, stream_id FROM factory_auditentry"
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
    return """
        SELECT tenant_id, entity || ':' || entity_id, 'entry ' || sequence || ' starts from ' || from_state
               || ' after ' || before
        FROM (SELECT *, coalesce(lag(to_state) OVER (PARTITION BY entity_id ORDER BY sequence), 'None')
                     AS before
              FROM factory_journalentry) j
        WHERE from_state <> before
    """


@check("A5", "Every journaled transition is declared, for its cause and with its events")
def transitions_declared(cursor: CursorWrapper) -> Rows:
    cursor.execute(
        """
        SELECT entity, from_state, to_state, cause,
               coalesce((SELECT array_agg(e->>'topic' ORDER BY e->>'topic')
                         FROM jsonb_array_elements(events) e), '{}') AS topics,
               min(tenant_id), min(stream_id::text), count(*)
        FROM factory_journalentry GROUP BY 1, 2, 3, 4, 5
        """
    )
    declared = lifecycles()
    for entity, before, after, cause, topics, tenant, stream, count in cursor.fetchall():
        edge = declared[entity].edge(before, after, cause) if entity in declared else None
        told = set(topics)
        if edge is None or set(edge.events) - told or told - set(edge.events) - set(edge.optional):
            yield tenant, stream, f"{count} × {entity} {before} → {after} ({cause}) telling {sorted(told)}"


@check("A6", "Every journal entry's hash follows from the one before and its content")
def journal_chain(cursor: CursorWrapper) -> Rows:
    yield from _broken_chains(cursor, "factory_journalentry", JOURNAL_CONTENT)


@check("A6b", "Every audit entry's hash follows from the one before and its content")
def audit_chain(cursor: CursorWrapper) -> Rows:
    yield from _broken_chains(cursor, "factory_auditentry", AUDIT_CONTENT)


def _broken_chains(cursor: CursorWrapper, table: str, columns: tuple[str, ...]) -> Rows:
    names = [*columns, "prev_hash", "hash"]
    cursor.execute("SELECT stream_id, hash FROM factory_chainhead")
    heads = dict(cursor.fetchall())
    cursor.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY stream_id, sequence")
    stream, last, tenant = None, "", ""
    while batch := cursor.fetchmany(2000):
        for values in batch:
            row = _parsed(dict(zip(names, values, strict=True)))
            if row["stream_id"] != stream:
                yield from _unlike_head(heads, stream, last, tenant)
                stream, last = row["stream_id"], ""
            tenant = row["tenant_id"]
            if row["prev_hash"] != last or chained(last, canonical(content_of(row, columns))) != row["hash"]:
                yield tenant, f"{stream}#{row['sequence']}", "the hash does not follow from its content"
            last = row["hash"]
    yield from _unlike_head(heads, stream, last, tenant)


def _unlike_head(heads: dict[Any, str], stream: Any, last: str, tenant: str) -> Rows:
    if stream is not None and heads.get(stream) != last:
        yield tenant, str(stream), "the chain ends with another hash than its head holds"


def _parsed(row: dict[str, Any]) -> dict[str, Any]:
    """JSON columns come as text from a bare cursor."""
    for name in ("detail", "events"):
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


_TOLD = """
    SELECT j.tenant_id, j.stream_id, j.sequence, (e.ordinality - 1)::int AS position,
           (e.value->>'id')::uuid AS id, e.value->>'topic' AS topic, e.value->>'hash' AS hash
    FROM factory_journalentry j, jsonb_array_elements(j.events) WITH ORDINALITY e
"""


@invariant("C1", "The outbox holds exactly the events that the journal tells, in their places")
def outbox_matches_journal() -> str:
    return f"""
        SELECT coalesce(t.tenant_id, o.tenant_id), coalesce(t.stream_id, o.stream_id) || '#'
               || coalesce(t.sequence, o.sequence), coalesce('lacks ' || t.topic, 'has untold ' || o.topic)
        FROM ({_TOLD}) t FULL JOIN factory_outboxevent o
          ON o.id = t.id AND o.tenant_id = t.tenant_id AND o.stream_id = t.stream_id
         AND o.sequence = t.sequence AND o.position = t.position AND o.topic = t.topic
        WHERE o.id IS NULL OR t.id IS NULL
    """


@check("C2", "Each event's data is what the journal's chain covers")
def event_data(cursor: CursorWrapper) -> Rows:
    cursor.execute(
        f"SELECT o.tenant_id, o.id, o.payload, t.hash FROM ({_TOLD}) t JOIN factory_outboxevent o USING (id)"
    )
    while batch := cursor.fetchmany(2000):
        for tenant, event, payload, hash_ in batch:
            if digest(json.loads(payload) if isinstance(payload, str) else payload) != hash_:
                yield tenant, event, "the event's data is not what was recorded"


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


@check("G1", "Walls stand: row-level security is forced, and the application owns nothing")
def walls_stand(cursor: CursorWrapper) -> Rows:
    tables = [m._meta.db_table for m in tenant_models()]
    cursor.execute(
        """
        SELECT '', c.relname, CASE WHEN NOT c.relrowsecurity THEN 'row-level security is off'
               WHEN NOT c.relforcerowsecurity THEN 'row-level security does not bind the owner'
               WHEN pg_get_userbyid(c.relowner) = %s THEN 'the application owns it'
               ELSE 'it has no tenant wall' END
        FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relname = ANY(%s)
        AND (NOT c.relrowsecurity OR NOT c.relforcerowsecurity OR pg_get_userbyid(c.relowner) = %s
             OR NOT EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'tenant_wall'))
        """,
        [role("app").strip('"'), tables, role("app").strip('"')],
    )
    yield from cursor.fetchall()


@check("G4", "Every policy of a tenant's table is one of the three, and says what it should")
def policies_say_what_they_should(cursor: CursorWrapper) -> Rows:
    cursor.execute(
        "SELECT tablename, policyname, permissive, roles::text[], cmd, qual, with_check FROM pg_policies "
        "WHERE schemaname = 'public' AND tablename = ANY(%s)",
        [[m._meta.db_table for m in tenant_models()]],
    )
    app, auditor, scan = (role(name).strip('"') for name in ("app", "auditor", "scan"))
    wall = f"((tenant_id)::text = NULLIF(current_setting('{TENANT_SETTING}'::text, true), ''::text))"
    built = {
        ("tenant_wall", app, "ALL", wall, wall),
        ("auditor_reads", auditor, "SELECT", "true", None),
        ("scan_reads", scan, "SELECT", "true", None),
    }
    for table, name, permissive, roles, *rest in cursor.fetchall():
        if permissive != "PERMISSIVE" or (name, *roles, *rest) not in built:
            yield "", table, f"the policy {name} is not the one that was built"


@check("G2", "Evidence can only be added: grants and triggers of append-only and journaled tables stand")
def evidence_is_append_only(cursor: CursorWrapper) -> Rows:
    app = role("app").strip('"')
    for table in EVIDENCE:
        for privilege in ("UPDATE", "DELETE", "TRUNCATE"):
            cursor.execute("SELECT has_table_privilege(%s, %s, %s)", [app, table, privilege])
            if cursor.fetchone()[0]:
                yield "", table, f"the application may {privilege}"
        yield from _missing_triggers(cursor, table, ("append_only_rows", "append_only_table"))
    for model in journaled_models():
        yield from _missing_triggers(cursor, model._meta.db_table, ("journal_required",))


EVIDENCE = ("factory_journalentry", "factory_auditentry")


def _missing_triggers(cursor: CursorWrapper, table: str, names: tuple[str, ...]) -> Rows:
    cursor.execute(
        "SELECT tgname FROM pg_trigger WHERE tgrelid = %s::regclass AND tgenabled = 'A'", [f'"{table}"']
    )
    standing = {name for (name,) in cursor.fetchall()}
    for name in names:
        if name not in standing:
            yield "", table, f"the trigger {name} is missing or can be switched off"


@check("G3", "The application's role has no way around the walls")
def application_role_is_bound(cursor: CursorWrapper) -> Rows:
    app = role("app").strip('"')
    cursor.execute("SELECT rolsuper OR rolbypassrls OR rolcreaterole FROM pg_roles WHERE rolname = %s", [app])
    row = cursor.fetchone()
    if row is None or row[0]:
        yield "", app, "the role is missing, or may pass the walls"
    scan = role("scan").strip('"')
    cursor.execute(
        "SELECT rolname, pg_has_role(%s::name, oid, 'USAGE') FROM pg_roles "
        "WHERE rolname <> %s AND pg_has_role(%s::name, oid, 'MEMBER')",
        [app, app, app],
    )
    for name, inherits in cursor.fetchall():
        if name != scan:
            yield "", app, f"it is a member of {name}"
        elif inherits:  # then the scan's policies, which see every tenant, would always be the application's
            yield "", app, f"it inherits from {name}"
    cursor.execute(
        "SELECT has_schema_privilege(%s::name, 'public', 'CREATE'), "
        "has_database_privilege(%s::name, current_database(), 'CREATE')",
        [app, app],
    )
    if any(cursor.fetchone()):
        yield "", app, "it may make objects of its own"
