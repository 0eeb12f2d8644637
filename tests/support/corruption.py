"""Damage that no path of the product can do, to show that the auditor sees it.

The tables' owner takes the walls down inside one transaction, does the damage, asks the auditor's own
query, and rolls everything back: no other test ever meets it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connections, transaction

from factory.evidence.auditor import invariants

_CONSTRAINTS = """
SELECT quote_ident(conname) FROM pg_constraint c
WHERE conrelid = %(table)s::regclass AND contype IN ('c', 'u', 'f')
  AND NOT EXISTS (SELECT 1 FROM pg_constraint r WHERE r.contype = 'f' AND r.conindid = c.conindid
                  AND r.oid <> c.oid AND c.contype = 'u')
"""
_INDEXES = """
SELECT indexrelid::regclass::text FROM pg_index
WHERE indrelid = %(table)s::regclass AND indisunique AND NOT indisprimary
  AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid)
"""


@contextmanager
def walls_down(*tables: str) -> Iterator[Any]:
    """A cursor of the owner for whom these tables have no row security, triggers, checks or unique keys."""
    with transaction.atomic(using="owner"), connections["owner"].cursor() as cursor:
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY, DISABLE TRIGGER USER")
            _drop(cursor, table, _CONSTRAINTS, "ALTER TABLE {table} DROP CONSTRAINT {name}")
            _drop(cursor, table, _INDEXES, "DROP INDEX {name}")
        yield cursor
        transaction.set_rollback(True, using="owner")


def _drop(cursor: Any, table: str, query: str, statement: str) -> None:
    cursor.execute(query, {"table": table})
    for (name,) in cursor.fetchall():
        cursor.execute(statement.format(table=table, name=name))


def found_by(code: str, cursor: Any, tenant_id: str) -> Sequence[tuple[str, str]]:
    """(subject, detail) of what one invariant finds in a tenant."""
    [rule] = [rule for rule in invariants() if rule.code == code]
    return [(v.subject, v.detail) for v in rule.check(cursor) if v.tenant_id == tenant_id]
