"""Many rows out of a few: the server multiplies what a small house holds, with its times spread over a year.

A row of many is one of the few with all its times moved by one span, so that what must hold between them
holds, and with ids that rise with time, as the product's own do. The run of row `n` of one table is the run
of row `n` of another; row 1 is the newest. Beside the tenant that is measured stands another large one.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

YEAR = 365 * 86_400_000
"""In milliseconds."""
NEIGHBOUR = 0.2
"""How large the other tenant is."""
BESIDE = 2048
"""What is added to the kind of an id there."""

FUNCTIONS = """
CREATE OR REPLACE FUNCTION bench_at(n bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS
$$ SELECT timestamptz {begin} - n * interval '{apart} milliseconds' $$;
CREATE OR REPLACE FUNCTION bench_key(kind int, n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS
$$ SELECT (lpad(to_hex({begin_ms} - n * {apart}), 12, '0') || '7' || lpad(to_hex(kind), 3, '0') || '8'
          || lpad(to_hex(n), 15, '0'))::uuid $$;
CREATE OR REPLACE FUNCTION bench_month(n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT n * {apart} / 2628000000 $$;
CREATE OR REPLACE FUNCTION bench_project(m bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN m % 2000 = 7 THEN '{small}'::uuid WHEN m % 10 = 3 THEN '{second}' ELSE '{main}' END $$;
CREATE OR REPLACE FUNCTION bench_skew(n bigint, salt int, many bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS
$$ SELECT floor(many * power((hashint8extended(n, salt) & 2147483647) / 2147483648.0::float8, 3))::bigint $$;
"""


@dataclass(frozen=True)
class Grown:
    """A table, when its rows were made, which of the few each is like, and what else differs between them.

    `like` are conditions on `n`, each with one on the few; a row for which none holds is like any of the few,
    the first of them far more often than the last. `run` says which run a row is of. `first` makes the
    first row, where the house has none of its own.
    """

    table: str
    main: str
    like: Sequence[tuple[str, str]] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    run: str = "n"
    share: float = 1.0
    most: int | None = None
    first: str = ""

    def rows(self, of: int) -> int:
        return min(round(of * self.share), self.most or of)


KINDS = (
    "runs_run", "runs_snapshot", "runs_step", "runs_attempt", "runs_lease", "runs_receipt",
    "approvals_proposal", "approvals_approvalrequest", "approvals_vote", "approvals_authorization",
    "factory_journalentry", "factory_auditentry", "factory_outboxevent", "factory_webhookdelivery",
    "usage_usagerecord", "usage_reservation", "usage_reservationhold", "usage_ledgerentry",
    "notifications_notice", "notifications_notification", "other", "transaction", "usage_budget",
    "registry_closure",
)  # fmt: skip
REFERENCES = {
    "run_id": "runs_run", "step_id": "runs_step", "attempt_id": "runs_attempt", "lease_id": "runs_lease",
    "snapshot_id": "runs_snapshot", "proposal_id": "approvals_proposal", "subject_id": "runs_step",
    "approval_id": "approvals_approvalrequest", "reservation_id": "usage_reservation",
    "budget_reservation_id": "usage_reservation", "notice_id": "notifications_notice",
    "event_id": "factory_outboxevent", "stream_id": "runs_run", "correlation_id": "other",
    "causation_id": "other", "closure_id": "registry_closure", "transaction_id": "transaction",
    "entity_id": "other",
}  # fmt: skip
OF_A_RUN = {"run_id", "stream_id", "correlation_id"}


def kind_of(table: str) -> int:
    return KINDS.index(table) if table in KINDS else 100 + sum(table.encode()) % 1900


@dataclass(frozen=True)
class Large:
    """The tenant that grows, whose rows are the few, and three of its projects: most of the runs are the
    first one's, a tenth the second's, and one of 2,000 the small one's."""

    tenant: str
    main: UUID
    second: UUID
    small: UUID
    rows: int
    begin: str

    @property
    def apart(self) -> int:
        """Milliseconds between a row and the next."""
        return YEAR // self.rows


def read(file: Path) -> Large | None:
    """The house that was kept, if one was."""
    if not file.exists():
        return None
    told = json.loads(file.read_text(encoding="utf-8"))
    return Large(**{name: UUID(v) if name in ("main", "second", "small") else v for name, v in told.items()})


def write(file: Path, large: Large) -> None:
    file.write_text(json.dumps(asdict(large), default=str), encoding="utf-8")


def grow_all(db: "psycopg.Connection[Any]", large: Large) -> None:
    """All tables, with a line for each; what is large already stays as it is."""
    from benchmarks.lists.shapes import MANY, SOME

    prepare(db, large)
    for one in (*SOME, *MANY):
        if _is_grown(db, one, large):
            continue
        began = time.perf_counter()
        grow(db, one, large)
        took = time.perf_counter() - began
        print(f"{one.rows(large.rows):10,} rows of {one.table} in {took:.0f} s", flush=True)  # noqa: T201


def _is_grown(db: "psycopg.Connection[Any]", one: Grown, large: Large) -> bool:
    """It was, if growing was broken off; the figure is that of the ANALYZE at the end."""
    query = "SELECT reltuples FROM pg_class WHERE oid = %s::regclass"
    [(rows,)] = db.execute(query, [one.table]).fetchall()
    return bool(rows >= one.rows(large.rows))


def prepare(db: "psycopg.Connection[Any]", large: Large) -> None:
    begin = sql.Literal(large.begin).as_string(db)
    began = round(datetime.fromisoformat(large.begin).timestamp() * 1000)
    text = FUNCTIONS.format(
        begin=begin,
        begin_ms=began,
        apart=large.apart,
        main=large.main,
        second=large.second,
        small=large.small,
    )
    db.execute(text.encode())
    db.execute("SET maintenance_work_mem = '1GB'")


def grow(db: "psycopg.Connection[Any]", one: Grown, large: Large) -> None:
    """So many rows for the tenant, some for the other, and then the indexes anew, all at once."""
    with db.transaction():
        if one.first and not _few(db, one.table, large.tenant):
            db.execute(one.first.encode(), {"tenant": large.tenant})
        rows = one.rows(large.rows)
        _let_be(db, one.table)
        indexes = _indexes(db, one.table) if rows > 50_000 else []
        for name, _ in indexes:
            db.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
        columns = _columns(db, one.table)
        _multiply(db, one, large, columns, rows, beside=False)
        if "tenant_id" in columns and rows > 50_000:
            _multiply(db, one, large, columns, round(rows * NEIGHBOUR), beside=True)
        for _, definition in indexes:
            db.execute(definition.encode())
    db.execute(sql.SQL("VACUUM ANALYZE {}").format(sql.Identifier(one.table)))


def _let_be(db: "psycopg.Connection[Any]", table: str) -> None:
    """No trigger and no CHECK stands in the way of what only commands would keep; nothing comes after."""
    name = sql.Identifier(table)
    db.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER ALL").format(name))
    checks = db.execute(
        "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'c'", [table]
    ).fetchall()
    for (check,) in checks:
        db.execute(sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(name, sql.Identifier(check)))


def _few(db: "psycopg.Connection[Any]", table: str, tenant: str) -> bool:
    where = "WHERE tenant_id = %s" if "tenant_id" in _columns(db, table) else "WHERE %s <> ''"
    query = sql.SQL(f"SELECT 1 FROM {{}} {where} LIMIT 1").format(sql.Identifier(table))  # type: ignore[arg-type]
    return db.execute(query, [tenant]).fetchone() is not None


def _indexes(db: "psycopg.Connection[Any]", table: str) -> list[tuple[str, str]]:
    return db.execute(
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index "
        "WHERE indrelid = %s::regclass AND NOT indisunique",
        [table],
    ).fetchall()


def _columns(db: "psycopg.Connection[Any]", table: str) -> dict[str, str]:
    return dict(
        db.execute(
            "SELECT attname::text, atttypid::regtype::text FROM pg_attribute WHERE attrelid = %s::regclass "
            "AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
            [table],
        ).fetchall()
    )


def _multiply(
    db: "psycopg.Connection[Any]",
    one: Grown,
    large: Large,
    columns: Mapping[str, str],
    rows: int,
    *,
    beside: bool,
) -> None:
    chosen = ", ".join(_value(one, large, name, kind, beside=beside) for name, kind in columns.items())
    few = "WHERE tenant_id = {tenant}" if "tenant_id" in columns else ""
    places = " ".join(
        f"WHEN {on_n} THEN (SELECT min(place) FROM few t WHERE {on_few})" for on_n, on_few in one.like
    )
    place = (
        f"CASE {places} ELSE bench_skew(n, 1, (SELECT count(*) FROM few)) END"
        if one.like
        else ("bench_skew(n, 1, (SELECT count(*) FROM few))")
    )
    order = f"row_number() OVER (ORDER BY {one.main}) - 1"
    text = (
        f"WITH few AS MATERIALIZED (SELECT *, {order} AS place FROM {{table}} {few}), "
        f"many AS (SELECT n, {one.run} AS m, {place} AS place FROM generate_series({{rows}}, 1, -1) AS n) "
        f"INSERT INTO {{table}} ({{names}}) SELECT {chosen} FROM many JOIN few t USING (place)"
    )
    query = sql.SQL(text).format(  # type: ignore[arg-type]  # our own words
        table=sql.Identifier(one.table), rows=sql.Literal(rows), tenant=sql.Literal(large.tenant),
        names=sql.SQL(", ").join(map(sql.Identifier, columns)),
    )  # fmt: skip
    made = db.execute(query).rowcount
    if made != rows:
        raise RuntimeError(
            f"{one.table}: {made} rows were made, not {rows}: what some are like is not there."
        )


def _value(one: Grown, large: Large, name: str, kind: str, *, beside: bool) -> str:
    """What a column of row `n` holds, as SQL over it, its run `m` and its model `t`."""
    apart, column = BESIDE if beside else 0, f't."{name}"'
    if name in one.values:
        return one.values[name].replace("+BESIDE", f"+{apart}")
    if name == "tenant_id" and beside:
        return f"{column} || '-beside'"
    if name == "id" and kind == "uuid":
        return f"bench_key({kind_of(one.table) + apart}, n)"
    if name == "project_id":
        found = f"bench_key({99 + apart}, m % 5)" if beside else "bench_project(m)"
        return f"CASE WHEN {column} IS NOT NULL THEN {found} END"
    if name in REFERENCES and kind == "uuid":
        number = "m" if name in OF_A_RUN else "n"
        key = f"bench_key({kind_of(REFERENCES[name]) + apart}, {number})"
        return f"CASE WHEN {column} IS NOT NULL THEN {key} END"
    if kind == "timestamp with time zone":
        return f'{column} + (bench_at(n) - t."{one.main}")'
    return column
