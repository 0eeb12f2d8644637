"""`python -m benchmarks.lists [rows [word]]`: how long the console takes for lists of a million rows.

Milliseconds of one machine say little about another. So in each round a tenant with few rows opens the same
list in the same database, and what is told is the milliseconds of the page, those that the database took,
and how many times the small tenant's page the big one is. The rows are multiplied by the server from a few,
into a database of its own that is removed afterwards, with their times spread over a year; the walls between
tenants, and every index, are those of the product.
"""

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from tests import databases

ROWS = 1_000_000
ROUNDS = 3
MOST_MS = 300
PAGE = "/admin/{}/"
SPREAD = "now() - n * interval '31 seconds'"
KEY = "gen_random_uuid()"


@dataclass(frozen=True)
class Grown:
    """A table, what differs between its rows, and what is asked of its list."""

    page: str
    table: str
    values: Mapping[str, str]
    questions: tuple[str, ...]
    first: str = ""
    """What makes the first row, where the house has none of its own."""


GROWN = (
    Grown(
        "runs/run", "runs_run",
        {"id": KEY, "idempotency_key": "'k' || n", "created_at": SPREAD, "budget_reservation_id": "NULL",
         "requested_by": "'person' || n % 700 || '@bench.test'"},
        ("", "state__exact=Completed", "state__exact=Failed", "workflow_id=gated", "failure_class=permanent",
         "failure_class=permanent&workflow_id=stubborn", "q=person5@bench.test", "q=k777777", "q=gated",
         "q=person5@bench.test&state__exact=Failed", "q=nobody", "order=oldest"),
    ),
    Grown(
        "approvals/approvalrequest", "approvals_approvalrequest",
        {"id": KEY, "subject_id": KEY, "run_id": KEY, "step_id": KEY, "attempt_id": KEY,
         "proposal_id": KEY, "requested_at": SPREAD, "requested_by": "'person' || n % 700 || '@bench.test'"},
        ("whose=all", "whose=closed", "whose=pending", "whose=all&state=Rejected",
         "whose=all&q=person5@bench.test", "whose=all&q=nobody", "whose=all&order=oldest"),
    ),
    Grown(
        "runs/step", "runs_step",
        {"id": KEY, "step_run_id": "'s' || n", "ordinal": "n + 1000",
         "created_at": SPREAD, "updated_at": SPREAD,
         "attention": "CASE WHEN n % 5000 = 0 THEN 'uncertain' ELSE '' END"},
        ("", "attention__exact=uncertain"),
    ),
    Grown(
        "factory/journalentry", "factory_journalentry",
        {"id": KEY, "stream_id": KEY, "entity_id": KEY, "occurred_at": SPREAD},
        ("", "entity=run", "entity=delegation", "to_state=Uncertain", "entity=step&to_state=Succeeded",
         f"q={'0' * 8}-0000-7000-8000-{'0' * 12}", "order=oldest"),
    ),
    Grown(
        "factory/auditentry", "factory_auditentry",
        {"id": KEY, "stream_id": KEY, "subject": "'run:' || gen_random_uuid()", "occurred_at": SPREAD,
         "actor": "'person' || n % 700 || '@bench.test'",
         "outcome": "CASE WHEN n % 9000 = 0 THEN 'refused' ELSE 'done' END"},
        ("", "outcome=done", "outcome=refused", "action=CancelRun", "action=CancelRun&outcome=refused",
         "channel=worker", "channel=cli", "q=person5@bench.test", "q=person5@bench.test&action=SubmitRun",
         f"q={'0' * 8}-0000-7000-8000-{'0' * 12}", "q=nobody", "order=oldest"),
    ),
    Grown(
        "factory/outboxevent", "factory_outboxevent",
        {"id": KEY, "stream_id": KEY, "run_id": KEY, "occurred_at": SPREAD, "handled_at": SPREAD,
         "streamed_at": f"CASE WHEN n > 200 THEN {SPREAD} END"},
        ("", "delivery=waiting", "delivery=aside", "topic=run-control.runs.v1.run-accepted",
         "topic=run-control.waivers.v1.waiver-changed", f"q={'0' * 8}-0000-7000-8000-{'0' * 12}",
         "order=oldest"),
    ),
    Grown(
        "usage/usagerecord", "usage_usagerecord",
        {"id": KEY, "receipt_id": "'r' || n", "run_id": KEY, "occurred_at": SPREAD, "priced_at": SPREAD,
         "name": "'model-' || n % 40"},
        ("", "state=Confirmed", "state=Uncertain", "kind=tool", "kind=model", "q=model-7", "q=r777777",
         "q=nothing", "q=model-7&kind=tool", "order=oldest"),
    ),
    Grown(
        "usage/usagerecord/explorer", "usage_usagesum",
        {"id": KEY, "run_id": KEY, "day": f"({SPREAD})::date", "name": "'model-' || n % 40",
         "workflow_id": "'workflow-' || n % 30"},
        ("", "by=day", "by=workflow", "by=release", "period=30", "period=30&by=day",
         "period=own&from=2026-01-01&to=2026-12-31"),
    ),
    Grown(
        "notifications/notification", "notifications_notification",
        {"id": KEY, "subject": "'person' || n || '@bench.test'", "created_at": SPREAD},
        ("", "state=Set+aside", "state=Sent", "medium__exact=email", "notice__kind=requested",
         "q=person7@bench.test", f"q={'0' * 8}-0000-7000-8000-{'0' * 12}", "order=oldest"),
        first="""
        WITH told AS (
          INSERT INTO notifications_notice (tenant_id, id, kind, approval_id, project_id, made_at)
          SELECT tenant_id, gen_random_uuid(), 'requested', id, project_id, now()
          FROM approvals_approvalrequest WHERE tenant_id = %(tenant)s LIMIT 1
          ON CONFLICT DO NOTHING RETURNING *)
        INSERT INTO notifications_notification
          (tenant_id, id, notice_id, project_id, subject, medium, created_at, attempts, error, sent_at)
        SELECT tenant_id, gen_random_uuid(), id, project_id, 'first', 'email', now(), 1, '', now() FROM told
        """,
    ),
)  # fmt: skip


def main() -> int:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    os.environ.setdefault("FACTORY_TEST_HOME", str(databases.ROOT / "var" / "bench-lists"))
    session = databases.Session()
    os.environ.update(session.environment())
    try:
        return report(session.admin_url, rows, word)
    finally:
        session.close()
        shutil.rmtree(os.environ["FACTORY_TEST_HOME"], ignore_errors=True)


def report(admin_url: str, rows: int, word: str) -> int:
    from uuid import uuid4

    import django

    django.setup()
    from factory.embedded.provision import with_database
    from tests.console.test_pages import signed_in
    from tests.support.furnished import furnished
    from tests.support.world import second_world

    database = os.environ["DATABASE_URL"].rpartition("/")[2].partition("?")[0]
    house = furnished(f"bench-{uuid4().hex[:8]}")
    big, small = (signed_in(w.workspace_admin) for w in (house.world, second_world(house.tenant)))
    found: dict[str, dict[str, float]] = {}
    with psycopg.connect(with_database(admin_url, database), autocommit=True) as db:
        for one in (each for each in GROWN if word in each.page):
            if one.first:
                db.execute(one.first.encode(), {"tenant": house.tenant})
            _grow(db, one, house.tenant, rows)
            for asked in one.questions:
                ms, in_database, few = _opened(big, small, f"{PAGE.format(one.page)}?{asked}")
                told = {"ms": round(ms), "databaseMs": round(in_database), "ratio": round(ms / few, 2)}
                found[f"{one.page}?{asked}"] = told
                name = f"{one.page}?{asked}"
                line = f"{name:90}{ms:7.0f} ms{in_database:7.0f} ms{ms / few:7.2f} x"
                print(line, flush=True)  # noqa: T201
    slow = [name for name, of in found.items() if of["ms"] > MOST_MS]
    print(json.dumps({"rows": rows, "lists": found, "over": slow}))  # noqa: T201
    return 1 if slow else 0


def _opened(big: Any, small: Any, path: str) -> tuple[float, float, float]:
    """Medians of a page's milliseconds: all of it, what the database took, and all of the small tenant's."""
    rounds = [(*_once(big, path), _once(small, path)[0]) for _ in range(ROUNDS + 1)][1:]
    whole, in_database, few = (statistics.median(of) for of in zip(*rounds, strict=True))
    return whole, in_database, few


def _once(client: Any, path: str) -> tuple[float, float]:
    from django.db import connection

    spent = 0.0

    def timed(execute: Any, *args: Any) -> Any:
        nonlocal spent
        began = time.perf_counter()
        try:
            return execute(*args)
        finally:
            spent += time.perf_counter() - began

    began = time.perf_counter()
    with connection.execute_wrapper(timed):
        answer = client.get(path)
    assert answer.status_code == 200, f"{path}: {answer.status_code}"
    return (time.perf_counter() - began) * 1000, spent * 1000


def _grow(db: "psycopg.Connection[Any]", one: Grown, tenant: str, rows: int) -> None:
    """So many rows out of those that are there, each like one of them but for what `values` names."""
    table = sql.Identifier(one.table)
    indexes = db.execute(
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index "
        "WHERE indrelid = %s::regclass AND NOT indisunique AND NOT EXISTS "
        "(SELECT 1 FROM pg_constraint WHERE conindid = indexrelid)",
        [one.table],
    ).fetchall()
    for name, _ in indexes:
        db.execute(f"DROP INDEX {name}")  # made anew in one go below
    db.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER ALL").format(table))
    checks = db.execute(
        "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'c'", [one.table]
    ).fetchall()
    for (name,) in checks:
        db.execute(sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(table, sql.Identifier(name)))
    columns = [
        name
        for (name,) in db.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 "
            "AND NOT attisdropped AND attgenerated = ''",
            [one.table],
        ).fetchall()
    ]
    chosen = sql.SQL(", ").join(
        sql.SQL(one.values[name]) if name in one.values else sql.Identifier("t", name)  # type: ignore[arg-type]
        for name in columns
    )
    db.execute("SET maintenance_work_mem = '512MB'")
    db.execute(
        sql.SQL(
            "WITH few AS MATERIALIZED (SELECT *, row_number() OVER () - 1 AS place, count(*) OVER () AS many "
            "FROM {table} WHERE tenant_id = {tenant}) "
            "INSERT INTO {table} ({names}) SELECT {chosen} FROM generate_series(1, {rows}) n "
            "JOIN few t ON t.place = CASE WHEN n % 10 = 0 THEN (n / 10) % t.many ELSE t.many - 1 END"
        ).format(
            table=table,
            tenant=sql.Literal(tenant),
            names=sql.SQL(", ").join(map(sql.Identifier, columns)),
            chosen=chosen,
            rows=sql.Literal(rows),
        )
    )
    for _, definition in indexes:
        db.execute(definition)
    db.execute(sql.SQL("VACUUM ANALYZE {}").format(table))


if __name__ == "__main__":
    sys.exit(main())
