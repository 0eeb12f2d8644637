"""The database's superuser: who can do what nobody of the house can, to show that it is found out."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connections

from factory.auditing import Violation, invariants
from factory.embedded.provision import with_database
from tests import plugin


@contextmanager
def tampering() -> Iterator["psycopg.Cursor[Any]"]:
    """A superuser's cursor in a transaction that is rolled back in the end: nobody else sees it."""
    assert plugin.session is not None
    url = with_database(plugin.session.admin_url, connections["default"].settings_dict["NAME"])
    with psycopg.connect(url) as connection:
        try:
            yield connection.cursor()
        finally:
            connection.rollback()


def without_walls(cursor: "psycopg.Cursor[Any]", table: str, *constraints: str) -> None:
    """Take down a table's triggers, and the constraints named, within the transaction."""
    cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
    for name in constraints:
        cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")


def found(cursor: "psycopg.Cursor[Any]", tenant_id: str) -> set[str]:
    """The codes of the invariants that this transaction's view of the tenant violates."""
    return {
        rule.code
        for rule in invariants()
        for row in rule.check(cursor)  # type: ignore[arg-type]  # it only executes and fetches
        if Violation(rule.code, *map(str, row)).tenant_id == tenant_id
    }
