"""Indexes and unique keys of a table in use are built beside it, also after an interruption."""

from collections.abc import Iterator

import pytest
from django.db import DatabaseError, NotSupportedError, connections, models, transaction
from django.db.migrations.loader import MigrationLoader

from factory.kernel.migration_operations import IndexWhileInUse, UniqueWhileInUse
from tests.support.running import House

NAME = "probe_of_a_migration"


@pytest.fixture
def rows(tenant_id: str) -> Iterator[House]:
    house = House(tenant_id)
    house.accept()
    house.accept()
    yield house
    with connections["owner"].cursor() as cursor:
        cursor.execute(f"ALTER TABLE runs_run DROP CONSTRAINT IF EXISTS {NAME}")
        cursor.execute(f"DROP INDEX IF EXISTS {NAME}")


def apply(operation: IndexWhileInUse | UniqueWhileInUse, *, atomic: bool = False) -> None:
    before = MigrationLoader(None, ignore_no_migrations=True).project_state()
    after = before.clone()
    operation.state_forwards("runs", after)
    with connections["owner"].schema_editor(atomic=atomic) as editor:
        operation.database_forwards("runs", editor, before, after)


def interrupted() -> None:
    """Leave a half-built index: no tenant has one run alone."""
    with pytest.raises(DatabaseError), connections["owner"].cursor() as cursor:
        cursor.execute(f"CREATE UNIQUE INDEX CONCURRENTLY {NAME} ON runs_run (tenant_id)")
    assert valid() is False


def valid() -> bool | None:
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [NAME])
        found = cursor.fetchone()
        return found[0] if found else None


def test_an_index_that_was_left_half_built_is_built_anew(rows: House) -> None:
    interrupted()
    operation = IndexWhileInUse("run", models.Index(fields=["tenant_id"], name=NAME))
    apply(operation)
    assert valid() is True
    apply(operation)
    assert valid() is True, "what stands is left alone"


def test_a_unique_key_that_was_left_half_built_is_built_anew(rows: House) -> None:
    interrupted()
    key = models.UniqueConstraint(fields=["tenant_id", "id", "version"], name=NAME)
    for _ in range(2):
        apply(UniqueWhileInUse("run", key))
        assert valid() is True
        with connections["owner"].cursor() as cursor:
            cursor.execute("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", [NAME])
            assert cursor.fetchone() == ("UNIQUE (tenant_id, id, version)",)
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("2s",)


def test_neither_is_built_in_a_transaction(rows: House) -> None:
    key = models.UniqueConstraint(fields=["tenant_id", "id", "version"], name=NAME)
    with transaction.atomic(using="owner"), pytest.raises(NotSupportedError):
        apply(UniqueWhileInUse("run", key), atomic=True)
    assert valid() is None
