"""Databases of three earlier releases, with everything in them that there was, become what this one needs."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.core.management import call_command
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from factory.embedded.provision import with_database
from factory.evidence.schema.readiness import compared
from tests.kernel.damage import admin_url
from tests.support.evidence import violations
from tests.support.furnished import furnished
from tests.support.own_database import fresh, leading_to
from tests.support.running import House

pytestmark = pytest.mark.slow

APPS = ("factory", "projects", "approvals", "registry", "usage", "notifications", "runs")
RELEASES = {
    "the first": dict.fromkeys(APPS, "0002_walls"),
    "holds that end": {
        "approvals": "0003_people_decide",
        "factory": "0003_wider_audit_subjects",
        "projects": "0003_a_machine_never_decides",
        "usage": "0004_holds_end",
    },
    "budgets that recur": {
        "notifications": "0004_ending_budgets",
        "projects": "0004_one_person",
        "runs": "0004_receipts_of_runs",
        "usage": "0006_budgets_recur",
    },
}
"""The newest migrations of a release; an app that is not named had none since the one before."""

KEPT_LATER = {"E4i"}
"""Refused receipts: they were kept from a later release on."""

_TABLES = """
SELECT c.relname, array_agg(quote_ident(a.attname) ORDER BY a.attnum)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
  AND NOT a.attisdropped AND a.attgenerated = ''
GROUP BY c.relname HAVING bool_or(a.attname = 'tenant_id') ORDER BY c.relname
"""


@pytest.fixture(scope="module")
def house() -> House:
    """A tenant in which everything has happened once."""
    return furnished(f"t-{uuid4().hex[:16]}")


@pytest.fixture(scope="module")
def databases() -> Iterator[dict[str, str]]:
    """An empty database for each release, each made from the one before it as an upgrade makes it."""
    with ExitStack() as stack:
        made: dict[str, str] = {}
        for release, newest in RELEASES.items():
            source = list(made.values())[-1] if made else "template0"
            made[release] = stack.enter_context(fresh(source))
            with leading_to(made[release]):
                MigrationExecutor(connections["owner"]).migrate(list(newest.items()))
        yield made


def columns_of(cursor: psycopg.Cursor[Any]) -> dict[str, list[str]]:
    return dict(cursor.execute(_TABLES).fetchall())


def fill(database: str, tenant_id: str) -> dict[str, int]:
    """Put what a tenant has into the columns that there were; says how many rows each table got."""
    rows: dict[str, int] = {}
    old_url = with_database(admin_url(), database)
    with psycopg.connect(admin_url()) as now, psycopg.connect(old_url) as old:
        source, target = now.cursor(), old.cursor()
        target.execute("SET session_replication_role = replica")
        target.execute("UPDATE pg_trigger SET tgenabled = 'D' WHERE tgenabled = 'A' RETURNING oid")
        triggers = [oid for (oid,) in target.fetchall()]
        newer = columns_of(source)
        for table, columns in columns_of(target).items():
            names = ", ".join(name for name in columns if name in newer.get(table, ()))
            query = f"COPY (SELECT {names} FROM {table} WHERE tenant_id = '{tenant_id}') TO STDOUT"
            with source.copy(query) as read, target.copy(f"COPY {table} ({names}) FROM STDIN") as write:  # type: ignore[call-overload]
                for piece in read:
                    write.write(piece)
            rows[table] = target.rowcount
        target.execute("UPDATE pg_trigger SET tgenabled = 'A' WHERE oid = ANY(%s)", [triggers])
    return rows


def counts(database: str) -> dict[str, int]:
    with psycopg.connect(with_database(admin_url(), database)) as connection:
        tables = columns_of(connection.cursor())
        found = {}
        for table in tables:
            row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # type: ignore[call-overload]
            found[table] = row[0]
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_a_database_of_an_earlier_release_keeps_its_rows_and_becomes_what_this_one_needs(
    release: str, databases: dict[str, str], house: House
) -> None:
    database = databases[release]
    before = fill(database, house.tenant)
    assert sum(before.values()) > 300
    with leading_to(database):
        assert compared("owner").differences
        call_command("migrate", verbosity=0)
        assert [str(each) for each in compared("owner").differences] == []
        assert {violation.code for violation in violations(house.tenant)} <= KEPT_LATER
    after = counts(database)
    assert {table: after[table] for table in before} == before
