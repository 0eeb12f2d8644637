"""Rows as an older backup of their table has them, while the journal goes on: what no dump of a whole
database shows, and a table that was put back by itself does."""

from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from factory.evidence.invariants import journaled_models
from tests.kernel.damage import admin_url

TABLES = [model._meta.db_table for model in journaled_models() if model.__module__.split(".")[0] != "tests"]
Rows = dict[str, dict[str, dict[str, Any]]]


def rows_now() -> Rows:
    """Every row whose states are journaled, by table and id."""
    with psycopg.connect(admin_url()) as db:
        return {
            table: {row["id"]: row for (row,) in db.execute(f'SELECT to_jsonb(t) FROM "{table}" t')}
            for table in TABLES
        }


def put_back(rows: Rows) -> None:
    """Make these rows what they were; those that were made later stay."""
    with psycopg.connect(admin_url()) as db:
        for table, kept in rows.items():
            triggers = db.execute(
                "SELECT tgname FROM pg_trigger WHERE tgrelid = %s::regclass AND NOT tgisinternal", [table]
            ).fetchall()
            columns = db.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 "
                "AND NOT attisdropped AND attgenerated = ''",
                [table],
            ).fetchall()
            db.execute(f'ALTER TABLE "{table}" DISABLE TRIGGER USER')
            db.execute(
                f'UPDATE "{table}" t SET {", ".join(f"{name} = r.{name}" for (name,) in columns)} '
                f'FROM jsonb_populate_recordset(NULL::"{table}", %s) r WHERE t.id = r.id',
                [Jsonb(list(kept.values()))],
            )
            for (name,) in triggers:
                db.execute(f'ALTER TABLE "{table}" ENABLE ALWAYS TRIGGER "{name}"')


def lose_events() -> None:
    """Every event, as if its time to be kept were over."""
    with psycopg.connect(admin_url()) as db:
        db.execute("SET session_replication_role = replica")
        db.execute("TRUNCATE factory_outboxevent CASCADE")
