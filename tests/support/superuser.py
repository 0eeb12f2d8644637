"""The database's superuser: who can do what nobody of the house can, to show that it is found out."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from django.db import connections

from factory.embedded.provision import with_database
from factory.kernel.hashing import digest_bytes
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


@contextmanager
def swapped_proposal(approval_id: UUID, content: bytes) -> Iterator[None]:
    """For the while, other bytes lie behind a request, with a hash of their own: all that a CHECK can see."""
    assert plugin.session is not None
    url = with_database(plugin.session.admin_url, connections["default"].settings_dict["NAME"])
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT p.id, p.content FROM approvals_proposal p JOIN approvals_approvalrequest a "
            "ON a.proposal_id = p.id WHERE a.id = %s",
            [approval_id],
        ).fetchone()
        assert row is not None
        _put(connection, row[0], content)
        try:
            yield
        finally:
            _put(connection, row[0], row[1])


def _put(connection: "psycopg.Connection[Any]", proposal_id: UUID, content: bytes) -> None:
    with connection.transaction():
        connection.execute("ALTER TABLE approvals_proposal DISABLE TRIGGER append_only_rows")
        connection.execute(
            "UPDATE approvals_proposal SET content = %s, size = %s, hash = %s WHERE id = %s",
            [content, len(content), digest_bytes(content), proposal_id],
        )
        connection.execute("ALTER TABLE approvals_proposal ENABLE ALWAYS TRIGGER append_only_rows")
    connection.commit()
