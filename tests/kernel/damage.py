"""Proof that the auditor sees: damage done past every wall, looked at, and undone.

The damage is done as the server's administrator with triggers switched off, and the invariant is
evaluated in the same transaction, which is then rolled back: no other test ever meets it.
"""

import os
from collections.abc import Sequence
from typing import Any

import psycopg

from factory.embedded.provision import with_database
from factory.evidence.auditor import Violation, invariants


def admin_url() -> str:
    """The administrator's URL of this process's own test database."""
    base = os.environ.get("FACTORY_TEST_ADMIN_URL", "")
    database = os.environ["DATABASE_URL"].rpartition("/")[2].partition("?")[0]
    return with_database(base, database)


def corrupt(code: str, statements: Sequence[tuple[str, Sequence[Any]]], *, tenant_id: str) -> list[Violation]:
    """What invariant `code` finds of this tenant after the statements, each (SQL, parameters)."""
    rule = next(rule for rule in invariants() if rule.code == code)
    with psycopg.connect(admin_url()) as connection, connection.cursor() as cursor:
        tables = cursor.execute(
            "SELECT DISTINCT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
            "WHERE NOT t.tgisinternal AND c.relnamespace = 'public'::regnamespace"
        ).fetchall()
        touched = " ".join(sql for sql, _ in statements)
        for (table,) in tables:
            if table in touched and "TRIGGER" not in touched.upper():
                cursor.execute(f'ALTER TABLE "{table}" DISABLE TRIGGER USER')
        for sql, params in statements:
            cursor.execute(sql, params or None)  # type: ignore[call-overload]  # tests write plain strings
        violations = [
            v
            for v in rule.check(cursor)  # type: ignore[arg-type]  # the same methods
            if v.code == code and v.tenant_id in ("", tenant_id)
        ]
        connection.rollback()
    return violations
