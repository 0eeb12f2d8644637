"""Migration operations that build the walls: tenants, append-only tables, journaled states, retention.

They are SQL that Django's schema editor has no word for. Each names a model of the migrated app;
`TenantWalls` comes before the others.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    NotInTransactionMixin,
)
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import AddConstraint
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from factory.kernel.models.base import TenantForeignKey as _TenantForeignKey
from factory.kernel.tenancy import TENANT_SETTING

CURRENT_TENANT = f"nullif(current_setting('{TENANT_SETTING}', true), '')"
"""After a transaction the setting reads '' and not NULL; either way it matches no tenant."""


def role(name: str) -> str:
    """The quoted name of one of the control plane's database roles: app, scan, auditor, retention, owner."""
    return f'"{settings.FACTORY_ROLE_PREFIX}_{name}"'


class _Statements(Operation):
    """An operation that is a list of SQL statements about one model's table."""

    reduces_to_sql = True
    reversible = True

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """The tables' walls are not part of Django's model state."""

    def statements(self, model: Any) -> Iterable[str]:
        raise NotImplementedError

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        for statement in self.statements(model):
            schema_editor.execute(statement, params=None)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        """Walls fall with their tables: a migration is only undone together with the tables' own."""

    def describe(self) -> str:
        return f"{type(self).__name__} of {self.model_name}"


class TenantWalls(_Statements):
    """Forced row-level security, composite references, and the grants of a tenant's table.

    `scan` names the columns that `factory_scan` may read across tenants (ids and due times, never
    content). `deletable` lets the application delete rows; evidence and entities never are. `later` names
    the references to tables whose walls do not stand yet: each follows as a `TenantReference`.
    """

    def __init__(
        self,
        model_name: str,
        *,
        scan: Sequence[str] = (),
        deletable: bool = False,
        later: Sequence[str] = (),
    ) -> None:
        super().__init__(model_name)
        self.scan = tuple(scan)
        self.deletable = deletable
        self.later = tuple(later)

    def statements(self, model: Any) -> Iterable[str]:
        table, pk = model._meta.db_table, model._meta.pk.column
        yield f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY'
        yield f'ALTER TABLE "{table}" FORCE ROW LEVEL SECURITY'
        wall = f"tenant_id = {CURRENT_TENANT}"
        yield (f'CREATE POLICY tenant_wall ON "{table}" TO {role("app")} USING ({wall}) WITH CHECK ({wall})')
        yield f'CREATE POLICY auditor_reads ON "{table}" FOR SELECT TO {role("auditor")} USING (true)'
        yield f'REVOKE ALL ON "{table}" FROM {role("app")}, {role("scan")}'
        writes = "SELECT, INSERT, UPDATE, DELETE" if self.deletable else "SELECT, INSERT, UPDATE"
        yield f'GRANT {writes} ON "{table}" TO {role("app")}'
        yield f'GRANT SELECT ON "{table}" TO {role("auditor")}'
        if self.scan:
            columns = ", ".join(f'"{name}"' for name in self.scan)
            yield f'CREATE POLICY scan_reads ON "{table}" FOR SELECT TO {role("scan")} USING (true)'
            yield f'GRANT SELECT ({columns}) ON "{table}" TO {role("scan")}'
        if pk != "tenant_id":
            yield f'ALTER TABLE "{table}" ADD CONSTRAINT "{table}_tenant_key" UNIQUE (tenant_id, "{pk}")'
        yield from self._references(model)

    def _references(self, model: Any) -> Iterable[str]:
        for field in model._meta.concrete_fields:
            if isinstance(field, _TenantForeignKey) and field.name not in self.later:
                yield _reference(model, field)


class TenantReference(_Statements):
    """The composite reference of one field, where two tables name each other and neither can be first."""

    def __init__(self, model_name: str, field_name: str) -> None:
        super().__init__(model_name)
        self.field_name = field_name

    def statements(self, model: Any) -> Iterable[str]:
        yield _reference(model, model._meta.get_field(self.field_name))


def _reference(model: Any, field: Any) -> str:
    table, target = model._meta.db_table, field.remote_field.model._meta
    return (
        f'ALTER TABLE "{table}" ADD CONSTRAINT "{table}_{field.column}_tenant_fk" '
        f'FOREIGN KEY (tenant_id, "{field.column}") '
        f'REFERENCES "{target.db_table}" (tenant_id, "{target.pk.column}")'
    )


class AppendOnly(_Statements):
    """Rows are added and read, and that is all: by grants, and by triggers that also bind the owner.

    Of a `purgeable` table the retention role alone may remove what is older than a day; how much older
    it has to be, the purge decides. `added_by` names the one role that adds rows, if it is not the
    application.
    """

    def __init__(self, model_name: str, *, purgeable: bool = False, added_by: str = "app") -> None:
        super().__init__(model_name)
        self.purgeable, self.added_by = purgeable, added_by

    def statements(self, model: Any) -> Iterable[str]:
        table = model._meta.db_table
        yield f'REVOKE UPDATE, DELETE, TRUNCATE ON "{table}" FROM {role("app")}'
        if self.added_by != "app":
            adder = role(self.added_by)
            yield f'REVOKE INSERT ON "{table}" FROM {role("app")}'
            yield f'GRANT SELECT, INSERT ON "{table}" TO {adder}'
            yield f'CREATE POLICY {self.added_by}_adds ON "{table}" FOR INSERT TO {adder} WITH CHECK (true)'
            yield f'CREATE POLICY {self.added_by}_reads ON "{table}" FOR SELECT TO {adder} USING (true)'
        argument = "'purgeable'" if self.purgeable else ""
        yield (
            f'CREATE TRIGGER append_only_rows BEFORE UPDATE OR DELETE ON "{table}" '
            f"FOR EACH ROW EXECUTE FUNCTION factory_refuse_change({argument})"
        )
        yield (
            f'CREATE TRIGGER append_only_table BEFORE TRUNCATE ON "{table}" '
            "FOR EACH STATEMENT EXECUTE FUNCTION factory_refuse_change()"
        )
        for trigger in ("append_only_rows", "append_only_table"):
            yield f'ALTER TABLE "{table}" ENABLE ALWAYS TRIGGER {trigger}'


class Retention(_Statements):
    """Grant what the retention role may do with a tenant's table: read, and remove if it says so."""

    def __init__(self, model_name: str, *, reads: Sequence[str] = (), removes: bool = False) -> None:
        super().__init__(model_name)
        self.reads, self.removes = tuple(reads), removes

    def statements(self, model: Any) -> Iterable[str]:
        table, retention = model._meta.db_table, role("retention")
        columns = ", ".join(f'"{name}"' for name in self.reads)
        yield f'GRANT SELECT{f" ({columns})" if columns else ""} ON "{table}" TO {retention}'
        yield f'CREATE POLICY retention_reads ON "{table}" FOR SELECT TO {retention} USING (true)'
        if self.removes:
            yield f'GRANT DELETE ON "{table}" TO {retention}'
            yield f'CREATE POLICY retention_removes ON "{table}" FOR DELETE TO {retention} USING (true)'


class MutableColumns(_Statements):
    """Of these rows the application may change only the named columns; the rest is pinned."""

    def __init__(self, model_name: str, *, columns: Sequence[str]) -> None:
        super().__init__(model_name)
        self.columns = tuple(columns)

    def statements(self, model: Any) -> Iterable[str]:
        table = model._meta.db_table
        known = {field.column for field in model._meta.concrete_fields}
        unknown = set(self.columns) - known
        if unknown:
            raise ValueError(f"{table} has no column {', '.join(sorted(unknown))}.")
        pinned = sorted(known - set(self.columns))
        columns = ", ".join(f'"{name}"' for name in self.columns)
        yield f'REVOKE UPDATE ON "{table}" FROM {role("app")}'
        yield f'GRANT UPDATE ({columns}) ON "{table}" TO {role("app")}'
        compared = " OR ".join(f'OLD."{name}" IS DISTINCT FROM NEW."{name}"' for name in pinned)
        yield (
            f'CREATE TRIGGER pinned_columns BEFORE UPDATE ON "{table}" FOR EACH ROW WHEN ({compared}) '
            "EXECUTE FUNCTION factory_refuse_change()"
        )
        yield f'ALTER TABLE "{table}" ENABLE ALWAYS TRIGGER pinned_columns'


class HoldsFromNowOn(AddConstraintNotValid):
    """A CHECK of rows that only ever come: new ones obey it, those that break it already stay on record.

    It binds every later change of an old row as well, whatever column that changes: a row that still has to
    end takes `RefusedFromNowOn` instead.

    `migrate` tries afterwards to have every row checked; until that succeeds the auditor says that the
    constraint was never checked.
    """


class IndexWhileInUse(AddIndexConcurrently):
    """An index that is built while others go on writing; for a migration that is not atomic.

    What an interrupted migration has left of it is built anew.
    """

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        self._ensure_not_in_transaction(schema_editor)
        if not _index_stands(schema_editor, self.index.name):
            with _unhurried(schema_editor):
                super().database_forwards(app_label, schema_editor, from_state, to_state)


class UniqueWhileInUse(NotInTransactionMixin, AddConstraint):
    """A unique key whose index is built while others go on writing; for a migration that is not atomic.

    What an interrupted migration has left of it is built anew.
    """

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        self._ensure_not_in_transaction(schema_editor)
        key: Any = self.constraint
        model = to_state.apps.get_model(app_label, self.model_name)
        table, create = model._meta.db_table, "CREATE UNIQUE INDEX "
        statement = str(key.create_sql(model, schema_editor))
        constrains = not statement.startswith(create)
        if constrains:
            columns = ", ".join(f'"{model._meta.get_field(name).column}"' for name in key.fields)
            statement = f'{create}"{key.name}" ON "{table}" ({columns})'
        if not _index_stands(schema_editor, key.name):
            with _unhurried(schema_editor):
                schema_editor.execute(statement.replace(create, f"{create}CONCURRENTLY ", 1), params=None)
        if constrains and not _constraint_stands(schema_editor, key.name):
            schema_editor.execute(
                f'ALTER TABLE "{table}" ADD CONSTRAINT "{key.name}" UNIQUE USING INDEX "{key.name}"',
                params=None,
            )


@contextmanager
def _unhurried(schema_editor: BaseDatabaseSchemaEditor) -> Iterator[None]:
    """Let it wait for transactions that are older than it, such as the auditor's: nobody waits behind it."""
    schema_editor.execute("SET lock_timeout = 0", params=None)
    try:
        yield
    finally:
        schema_editor.execute("RESET lock_timeout", params=None)


def _index_stands(schema_editor: BaseDatabaseSchemaEditor, name: str) -> bool:
    """Return whether an index is there; one that was left half-built is removed."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [f'"{name}"'])
        found = cursor.fetchone()
    if found == (False,):
        schema_editor.execute(f'DROP INDEX CONCURRENTLY "{name}"', params=None)
    return bool(found == (True,))


def _constraint_stands(schema_editor: BaseDatabaseSchemaEditor, name: str) -> bool:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT 1 FROM pg_constraint WHERE conname = %s)", [name])
        return bool(cursor.fetchone()[0])


class RefusedFromNowOn(_Statements):
    """Refuse what no new row may say, and what none of the named columns may be changed to from now on.

    `says` is a condition on NEW. A row from before that meets it stays on record, and can still end: a change
    of its other columns passes.
    """

    def __init__(self, model_name: str, *, name: str, columns: Sequence[str], says: str) -> None:
        super().__init__(model_name)
        self.name, self.columns, self.says = name, tuple(columns), says

    def statements(self, model: Any) -> Iterable[str]:
        table = model._meta.db_table
        changed = " OR ".join(f'OLD."{name}" IS DISTINCT FROM NEW."{name}"' for name in self.columns)
        yield REFUSE_ROW
        for event, when in (("INSERT", self.says), ("UPDATE", f"({changed}) AND ({self.says})")):
            name = f"{self.name}_{event.lower()}"
            yield (
                f'CREATE TRIGGER {name} BEFORE {event} ON "{table}" FOR EACH ROW WHEN ({when}) '
                f"EXECUTE FUNCTION factory_refuse_row('{self.name}')"
            )
            yield f'ALTER TABLE "{table}" ENABLE ALWAYS TRIGGER {name}'


def unchecked_constraints(cursor: Any) -> list[tuple[str, str]]:
    """Return the tables and names of the CHECKs that not every row is known to obey."""
    cursor.execute(
        "SELECT conrelid::regclass::text, quote_ident(conname) FROM pg_constraint "
        "WHERE contype = 'c' AND NOT convalidated AND connamespace = 'public'::regnamespace ORDER BY 1, 2"
    )
    found: list[tuple[str, str]] = cursor.fetchall()
    return found


class WiderColumns(MutableColumns):
    """Other columns than before may be changed from now on; the list is the whole one."""

    def statements(self, model: Any) -> Iterable[str]:
        yield f'DROP TRIGGER pinned_columns ON "{model._meta.db_table}"'
        yield from super().statements(model)


class Amendable(MutableColumns):
    """Of rows that were append-only the named columns may be changed from now on; none is ever removed."""

    def statements(self, model: Any) -> Iterable[str]:
        table = model._meta.db_table
        yield f'DROP TRIGGER append_only_rows ON "{table}"'
        yield (
            f'CREATE TRIGGER never_removed BEFORE DELETE ON "{table}" '
            "FOR EACH ROW EXECUTE FUNCTION factory_refuse_change()"
        )
        yield f'ALTER TABLE "{table}" ENABLE ALWAYS TRIGGER never_removed'
        yield from super().statements(model)


class ScanColumns(_Statements):
    """Let `factory_scan` read these columns too, across tenants: ids and due times, never content."""

    def __init__(self, model_name: str, *, columns: Sequence[str]) -> None:
        super().__init__(model_name)
        self.columns = tuple(columns)

    def statements(self, model: Any) -> Iterable[str]:
        table, scan = model._meta.db_table, role("scan")
        columns = ", ".join(f'"{name}"' for name in self.columns)
        yield f'DROP POLICY IF EXISTS scan_reads ON "{table}"'
        yield f'CREATE POLICY scan_reads ON "{table}" FOR SELECT TO {scan} USING (true)'
        yield f'GRANT SELECT ({columns}) ON "{table}" TO {scan}'


class JournalRequired(_Statements):
    """A new state must have been journaled in the same transaction, or the commit fails."""

    def statements(self, model: Any) -> Iterable[str]:
        table = model._meta.db_table
        yield (
            f'CREATE CONSTRAINT TRIGGER journal_required AFTER INSERT OR UPDATE OF state ON "{table}" '
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION factory_require_journal()"
        )
        yield f'ALTER TABLE "{table}" ENABLE ALWAYS TRIGGER journal_required'


class KernelFunctions(Operation):
    """The trigger functions, and what the application may do with tables of no tenant.

    Comes first of all: later tables of the owner are granted to the application by default,
    so that sessions and accounts work; `TenantWalls` takes that back for tenants' tables.
    """

    reduces_to_sql = True
    reversible = True

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Functions are not part of Django's model state."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        for statement in (refuse_change(), REQUIRE_JOURNAL, *_default_grants()):
            schema_editor.execute(statement, params=None)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        for name in ("factory_refuse_change", "factory_require_journal"):
            schema_editor.execute(f"DROP FUNCTION IF EXISTS {name}() CASCADE", params=None)

    def describe(self) -> str:
        return "The kernel's trigger functions and default grants"


def _default_grants() -> Iterable[str]:
    writes = "SELECT, INSERT, UPDATE, DELETE"
    parts = ", ".join(role(part) for part in ("app", "scan", "auditor", "retention"))
    yield f"GRANT USAGE ON SCHEMA public TO {parts}"
    yield f"GRANT {writes} ON ALL TABLES IN SCHEMA public TO {role('app')}"
    yield f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role('app')}"
    yield f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role('auditor')}"
    yield f"REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM {role('app')}"
    yield f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT {writes} ON TABLES TO {role('app')}"
    yield f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {role('app')}"
    yield f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {role('auditor')}"


def refuse_change() -> str:
    """The function that refuses. It knows this installation's retention role by name."""
    retention = role("retention").strip('"')
    return f"""
CREATE OR REPLACE FUNCTION factory_refuse_change() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' AND TG_NARGS = 1 AND current_user = '{retention}' THEN
        IF OLD.occurred_at < clock_timestamp() - interval '1 day' THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION '% on % is refused: what it would change is evidence', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END $$
"""


REFUSE_ROW = """
CREATE OR REPLACE FUNCTION factory_refuse_row() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    RAISE EXCEPTION '% on % is refused: it breaks %', TG_OP, TG_TABLE_NAME, TG_ARGV[0]
        USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = TG_ARGV[0];
END $$
"""


# Without a search path of its own the function would find a caller's temporary table of the journal's name.
# After a restore a row may lag behind the journal: to come back to what
# the journal says last is no new state.
REQUIRE_JOURNAL = """
CREATE OR REPLACE FUNCTION factory_require_journal() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tx bigint := pg_current_xact_id()::text::bigint;
    was text := 'None';
BEGIN
    IF TG_OP = 'UPDATE' THEN
        was := OLD.state;
        IF OLD.state IS NOT DISTINCT FROM NEW.state THEN
            RETURN NULL;
        END IF;
    END IF;
    IF EXISTS (SELECT 1 FROM factory_journalentry
               WHERE entity_id = NEW.id AND transaction_id = tx AND from_state = was)
       AND EXISTS (SELECT 1 FROM factory_journalentry
                   WHERE entity_id = NEW.id AND transaction_id = tx AND to_state = NEW.state) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.state = (SELECT to_state FROM factory_journalentry
                   WHERE entity_id = NEW.id ORDER BY sequence DESC LIMIT 1)
       AND NOT EXISTS (SELECT 1 FROM factory_journalentry
                       WHERE entity_id = NEW.id AND transaction_id = tx) THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'the state of % % went from % to % without a journal entry',
        TG_TABLE_NAME, NEW.id, was, NEW.state USING ERRCODE = 'integrity_constraint_violation';
END $$
"""
