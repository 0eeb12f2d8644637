"""Evidence that is older than the test: shifted in time by an administrator, and chained again."""

import json
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from factory.kernel.chain import (
    AUDIT_CONTENT,
    ENVELOPE,
    JOURNAL_CONTENT,
    audit_stream,
    chained,
    content_of,
    seal,
)
from factory.kernel.hashing import canonical
from tests.kernel.damage import admin_url
from tests.support.running import House

TABLES = ("factory_journalentry", "factory_auditentry", "factory_outboxevent", "factory_chainhead")


def age(run_id: UUID, days: int, *, first: int = 10**6, first_days: int = 0) -> None:
    """Make a run's evidence `days` old, its first entries `first_days`, and everything delivered."""
    with psycopg.connect(admin_url(), row_factory=dict_row) as db:
        for table in TABLES:
            db.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        for table, stream in (
            ("factory_journalentry", run_id),
            ("factory_outboxevent", run_id),
            ("factory_auditentry", audit_stream(run_id)),
        ):
            db.execute(
                f"UPDATE {table} SET occurred_at = occurred_at - make_interval(days => "
                "CASE WHEN sequence <= %s AND %s > 0 THEN %s ELSE %s END) WHERE stream_id = %s",
                [first, first_days, first_days, days, stream],
            )
        db.execute(
            "UPDATE factory_outboxevent SET handled_at = coalesce(handled_at, now()), streamed_at = now() "
            "WHERE stream_id = %s",
            [run_id],
        )
        db.execute(
            "UPDATE runs_run SET finished_at = finished_at - make_interval(days => %s) WHERE id = %s",
            [days, run_id],
        )
        _chain(db, run_id, "factory_journalentry", JOURNAL_CONTENT)
        _chain(db, audit_stream(run_id), "factory_auditentry", AUDIT_CONTENT)
        for table in TABLES:
            for trigger in ("append_only_rows", "append_only_table", "pinned_columns"):
                known = db.execute(
                    "SELECT 1 FROM pg_trigger WHERE tgname = %s AND tgrelid = %s::regclass", [trigger, table]
                ).fetchone()
                if known:
                    db.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {trigger}")


def outwait_money(house: House, run_id: UUID | None = None) -> None:
    """Let the time of a run's reservation be over, or of every one of the house.

    It ended a moment after it began: a reservation that had begun days ago might be of another month than
    the budgets on which it draws.
    """
    house._owner(
        "UPDATE usage_reservation SET expires_at = created_at + interval '1 us', "
        "due_at = CASE WHEN due_at IS NOT NULL THEN created_at + interval '1 us' END "
        "WHERE tenant_id = %s AND run_id = coalesce(%s, run_id)",
        [house.tenant, run_id],
        unpinned=True,
    )


def _chain(db: "psycopg.Connection[Any]", stream: UUID, table: str, columns: tuple[str, ...]) -> None:
    last = ""
    for row in db.execute(
        f"SELECT * FROM {table} WHERE stream_id = %s ORDER BY sequence", [stream]
    ).fetchall():
        for told in row.get("events", ()):
            event = db.execute(
                f"SELECT {', '.join(ENVELOPE)} FROM factory_outboxevent WHERE id = %s", [told["id"]]
            ).fetchone()
            told["hash"] = seal(event or {})
        fresh = chained(last, canonical(content_of(row, columns)))
        events = ", events = %s" if "events" in row else ""
        values = [json.dumps(row["events"])] if events else []
        db.execute(
            f"UPDATE {table} SET prev_hash = %s, hash = %s{events} WHERE id = %s",
            [last, fresh, *values, row["id"]],
        )
        last = fresh
    db.execute("UPDATE factory_chainhead SET hash = %s WHERE stream_id = %s", [last, stream])
