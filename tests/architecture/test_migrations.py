"""Migrations only grow: what has landed stays as it is, for it made databases that exist."""

from pathlib import Path

import pytest
from django.apps import apps
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddConstraint, AddField, AddIndex, CreateModel

from factory.evidence.schema.expected import expected
from factory.kernel.models.base import TenantModel
from tests.architecture.landed import hash_of, landed, main, migrations
from tests.architecture.source import ROOT

WALL = "((tenant_id)::text = NULLIF(current_setting('factory.tenant'::text, true), ''::text))"


def test_no_migration_that_has_landed_was_edited() -> None:
    found, known = migrations(), landed()
    edited = [path for path in known if path in found and found[path] != known[path]]
    gone = [path for path in known if path not in found]
    assert (edited, gone) == ([], []), "Put it back, and add a migration that changes what it made."


def test_every_migration_is_on_the_list() -> None:
    fresh = sorted(set(migrations()) - set(landed()))
    assert fresh == [], "Run `make schema` and commit what it writes."


def test_a_column_added_later_needs_no_word_of_the_release_before() -> None:
    """Its processes insert rows without it while the new release is already migrated to."""
    silent = [
        f"{migration.app_label}.{migration.name}: {operation.model_name}.{operation.name}"
        for migration in MigrationLoader(None, ignore_no_migrations=True).disk_migrations.values()
        for operation in migration.operations
        if isinstance(operation, AddField) and migration.name != "0001_initial"
        if Path(f"{migration.app_label}/migrations").exists()
        if not operation.field.null and not operation.field.has_db_default()
    ]
    assert silent == [], "Give it null=True or a db_default."


def test_no_index_or_check_is_built_while_a_table_that_exists_is_locked() -> None:
    """A CHECK is checked after the migration (`HoldsFromNowOn`), and an index is built while others write."""
    slow = [
        f"{migration.app_label}.{migration.name}: {operation.describe()}"
        for migration in MigrationLoader(None, ignore_no_migrations=True).disk_migrations.values()
        if migration.name != "0001_initial" and Path(f"{migration.app_label}/migrations").exists()
        for new in [{each.name_lower for each in migration.operations if isinstance(each, CreateModel)}]
        for operation in migration.operations
        if type(operation) in (AddConstraint, AddIndex) and operation.model_name_lower not in new
    ]
    assert slow == []


def test_the_list_is_of_the_migrations_that_are_run() -> None:
    on_disk = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    ours = {Path(migration.__module__.replace(".", "/") + ".py") for migration in on_disk.values()}
    assert {path for path in ours if (ROOT / path).exists() and path.parts[0] != "tests"} == {
        Path(path) for path in migrations()
    }


def test_an_import_may_move_and_nothing_else() -> None:
    before = "from factory.database import TenantWalls\nx = [TenantWalls('Run', scan=('id',))]\n"
    moved = (
        "import factory.kernel\n\n# moved\nx = [factory.kernel.database.TenantWalls(\n  'Run', scan=('id',))]"
    )
    other = before.replace("('id',)", "('id', 'state')")
    assert hash_of(before) == hash_of(moved) != hash_of(other)


def test_a_line_of_the_list_is_never_written_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tests.architecture import landed as module

    path = next(iter(migrations()))
    kept = ROOT / "var" / f"{tmp_path.name}.txt"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(f"{path} another\n")
    monkeypatch.setattr(module, "LIST", kept)
    try:
        main()
        lines = kept.read_text().splitlines()
    finally:
        kept.unlink()
    assert lines[0] == f"{path} another"
    assert len(lines) == len(migrations())


def test_every_table_of_tenants_has_its_wall() -> None:
    tables = {m._meta.db_table for m in apps.get_models() if issubclass(m, TenantModel)}
    want = f"for ALL to app using {WALL} with check {WALL}"
    assert {t for t in tables if expected().get(f"policy {t}.tenant_wall") != want} == set()
    forced = "row-level security forced"
    assert {t for t in tables if forced not in expected().get(f"table {t}", "")} == set()
