"""Do the walls stand as the migrations built them? (G): policies, grants, triggers, functions, constraints.

What should be there is read from the migrations' own operations, so there is no second list to forget.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.apps import apps
from django.db import models
from django.db.backends.utils import CursorWrapper
from django.db.migrations.loader import MigrationLoader

from factory.auditing import check
from factory.database import (
    REQUIRE_JOURNAL,
    AppendOnly,
    JournalRequired,
    MutableColumns,
    Retention,
    TenantWalls,
    refuse_change,
    role,
)
from factory.hashing import digest_bytes
from factory.models.base import TenantForeignKey, TenantModel
from factory.tenancy import TENANT_SETTING

Rows = Iterator[tuple[Any, Any, Any]]
WALL = f"((tenant_id)::text = NULLIF(current_setting('{TENANT_SETTING}'::text, true), ''::text))"
WALLS = (TenantWalls, AppendOnly, Retention, MutableColumns, JournalRequired)
REFUSES, REQUIRES = "factory_refuse_change", "factory_require_journal"


def _name(part: str) -> str:
    return role(part).strip('"')


@dataclass(slots=True)
class Built:
    """What the migrations built around one table."""

    model: type[models.Model]
    policies: set[tuple[Any, ...]] = field(default_factory=set)
    grants: set[str] = field(default_factory=lambda: {"SELECT", "INSERT", "UPDATE", "DELETE"})
    columns: frozenset[str] = frozenset()
    triggers: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """By name: the function that it calls, and whether it lets retention through."""

    @property
    def table(self) -> str:
        return self.model._meta.db_table


def _tenant_walls(made: Built, operation: TenantWalls) -> None:
    made.grants = {"SELECT", "INSERT", "UPDATE"} | ({"DELETE"} if operation.deletable else set())
    made.policies |= {
        ("tenant_wall", _name("app"), "ALL", WALL, WALL),
        ("auditor_reads", _name("auditor"), "SELECT", "true", None),
    }
    if operation.scan:
        made.policies.add(("scan_reads", _name("scan"), "SELECT", "true", None))


def _append_only(made: Built, operation: AppendOnly) -> None:
    made.grants -= {"UPDATE", "DELETE", "TRUNCATE"}
    made.triggers |= {
        "append_only_rows": (REFUSES, operation.purgeable),
        "append_only_table": (REFUSES, False),
    }
    if operation.added_by != "app":
        made.grants -= {"INSERT"}
        made.policies |= {
            (f"{operation.added_by}_adds", _name(operation.added_by), "INSERT", None, "true"),
            (f"{operation.added_by}_reads", _name(operation.added_by), "SELECT", "true", None),
        }


def _retention(made: Built, operation: Retention) -> None:
    made.policies.add(("retention_reads", _name("retention"), "SELECT", "true", None))
    if operation.removes:
        made.policies.add(("retention_removes", _name("retention"), "DELETE", "true", None))


@cache
def built() -> dict[str, Built]:
    """By table, what the migrations of the installed apps built."""
    found: dict[str, Built] = {}
    migrations = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    for (app, _), migration in sorted(migrations.items(), key=lambda item: item[0]):
        for operation in migration.operations:
            if not isinstance(operation, WALLS):
                continue
            model = apps.get_model(app, operation.model_name)
            made = found.setdefault(model._meta.db_table, Built(model))
            if isinstance(operation, TenantWalls):
                _tenant_walls(made, operation)
            elif isinstance(operation, AppendOnly):
                _append_only(made, operation)
            elif isinstance(operation, Retention):
                _retention(made, operation)
            elif isinstance(operation, MutableColumns):
                made.grants -= {"UPDATE"}
                made.columns = frozenset(operation.columns)
                made.triggers["pinned_columns"] = (REFUSES, False)
            elif isinstance(operation, JournalRequired):
                made.triggers["journal_required"] = (REQUIRES, False)
    return found


def _tenants() -> list[str]:
    return [m._meta.db_table for m in apps.get_models() if issubclass(m, TenantModel)]


@check("G1", "Walls stand: row-level security is forced, and the application owns nothing")
def walls_stand(cursor: CursorWrapper) -> Rows:
    cursor.execute(
        """
        SELECT '', t.name, CASE WHEN c.oid IS NULL THEN 'the table is missing'
               WHEN NOT c.relrowsecurity THEN 'row-level security is off'
               WHEN NOT c.relforcerowsecurity THEN 'row-level security does not bind the owner'
               ELSE 'the application owns it' END
        FROM unnest(%s::text[]) AS t(name)
        LEFT JOIN pg_class c ON c.relnamespace = 'public'::regnamespace AND c.relname = t.name
        WHERE c.oid IS NULL OR NOT c.relrowsecurity OR NOT c.relforcerowsecurity
           OR pg_get_userbyid(c.relowner) = %s
        """,
        [_tenants(), _name("app")],
    )
    yield from cursor.fetchall()


@check("G2", "Triggers stand: evidence, pinned columns and journaled states refuse what they should")
def triggers_stand(cursor: CursorWrapper) -> Rows:
    cursor.execute(
        "SELECT c.relname, t.tgname, t.tgenabled, p.proname, t.tgnargs, pg_get_triggerdef(t.oid) "
        "FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid "
        "WHERE NOT t.tgisinternal AND c.relnamespace = 'public'::regnamespace"
    )
    standing = {(table, name): rest for table, name, *rest in cursor.fetchall()}
    for made in built().values():
        for name, (function, purgeable) in made.triggers.items():
            found = standing.get((made.table, name))
            if found is None or found[0] != "A":
                yield "", made.table, f"the trigger {name} is missing or can be switched off"
            elif (found[1], bool(found[2])) != (function, purgeable) or not _as_built(made, name, found[3]):
                yield "", made.table, f"the trigger {name} is not the one that was built"


_WHEN = {
    "append_only_rows": "BEFORE DELETE OR UPDATE ON",
    "append_only_table": "BEFORE TRUNCATE ON",
    "journal_required": "AFTER INSERT OR UPDATE OF state ON",
    "pinned_columns": "BEFORE UPDATE ON",
}
_COMPARED = re.compile(r'\(?old\."?(\w+)"?\)?(?:::text)? IS DISTINCT FROM \(?new\."?(\w+)"?\)?(?:::text)?')


def _as_built(made: Built, name: str, definition: str) -> bool:
    """Whether a trigger fires when it should, and compares exactly the columns that are pinned."""
    if _WHEN[name] not in definition:
        return False
    if name != "pinned_columns":
        return " WHEN " not in definition
    pinned = {f.column for f in made.model._meta.concrete_fields} - made.columns
    pairs = _COMPARED.findall(definition)
    return " AND " not in definition and {a for a, b in pairs if a == b} == pinned


@check("G3", "The application's role has no way around the walls")
def application_role_is_bound(cursor: CursorWrapper) -> Rows:
    app, scan = _name("app"), _name("scan")
    cursor.execute("SELECT rolsuper OR rolbypassrls OR rolcreaterole FROM pg_roles WHERE rolname = %s", [app])
    row = cursor.fetchone()
    if row is None or row[0]:
        yield "", app, "the role is missing, or may pass the walls"
    cursor.execute(
        "SELECT rolname, pg_has_role(%s::name, oid, 'USAGE') FROM pg_roles "
        "WHERE rolname <> %s AND pg_has_role(%s::name, oid, 'MEMBER')",
        [app, app, app],
    )
    for name, inherits in cursor.fetchall():
        if name != scan:
            yield "", app, f"it is a member of {name}"
        elif inherits:  # then the scan's policies, which see every tenant, would always be the application's
            yield "", app, f"it inherits from {name}"
    cursor.execute(
        "SELECT has_schema_privilege(%s::name, 'public', 'CREATE'), "
        "has_database_privilege(%s::name, current_database(), 'CREATE')",
        [app, app],
    )
    if any(cursor.fetchone()):
        yield "", app, "it may make objects of its own"


@check("G4", "Every tenant's table has exactly the policies that were built, and each says what it should")
def policies_say_what_they_should(cursor: CursorWrapper) -> Rows:
    cursor.execute(
        "SELECT tablename, policyname, permissive, roles::text[], cmd, qual, with_check FROM pg_policies "
        "WHERE schemaname = 'public'"
    )
    standing: dict[str, set[tuple[Any, ...]]] = {}
    for table, name, permissive, roles, *rest in cursor.fetchall():
        who = ",".join(roles) if permissive == "PERMISSIVE" else f"{permissive} {roles}"
        standing.setdefault(table, set()).add((name, who, *rest))
    for made in built().values():
        found = standing.get(made.table, set())
        for name, *_ in sorted(found - made.policies, key=str):
            yield "", made.table, f"the policy {name} is not one that was built"
        for name, *_ in sorted(made.policies - found, key=str):
            yield "", made.table, f"the policy {name} is missing, or is not as it was built"


@check("G5", "The functions behind the triggers are those that the migrations made")
def functions_as_made(cursor: CursorWrapper) -> Rows:
    cursor.execute(
        "SELECT proname, prosrc, proconfig, prosecdef FROM pg_proc "
        "WHERE pronamespace = 'public'::regnamespace AND proname = ANY(%s)",
        [[REFUSES, REQUIRES]],
    )
    standing = {name: rest for name, *rest in cursor.fetchall()}
    for name, source in ((REFUSES, refuse_change()), (REQUIRES, REQUIRE_JOURNAL)):
        found = standing.get(name)
        body = digest_bytes(source.split("$$")[1].encode())
        if found is None or digest_bytes(found[0].encode()) != body:
            yield "", name, "the function is missing, or does something else than it was made to"
        elif found[1] != ["search_path=pg_catalog, public, pg_temp"] or found[2]:
            yield "", name, "the function looks for tables elsewhere, or runs with its owner's rights"


@check("G6", "The application may do with each table, and with each column, what was granted and no more")
def grants_as_built(cursor: CursorWrapper) -> Rows:
    app = _name("app")
    cursor.execute(
        """
        SELECT t.name, array_agg(p.word) FILTER (WHERE has_table_privilege(%s::name, c.oid, p.word)) AS held
        FROM unnest(%s::text[]) AS t(name)
        JOIN pg_class c ON c.relnamespace = 'public'::regnamespace AND c.relname = t.name,
        unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS p(word) GROUP BY 1
        """,
        [app, list(built())],
    )
    for table, held in cursor.fetchall():
        for privilege in sorted(set(held or ()) ^ built()[table].grants):
            yield (
                "",
                table,
                f"the application {'may' if privilege in (held or ()) else 'may not'} {privilege}",
            )
    cursor.execute(
        """
        SELECT c.relname, array_agg(a.attname::text) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'public'::regnamespace AND c.relname = ANY(%s) AND a.attnum > 0
          AND NOT a.attisdropped AND has_column_privilege(%s::name, c.oid, a.attnum, 'UPDATE') GROUP BY 1
        """,
        [[t for t, made in built().items() if "UPDATE" not in made.grants], app],
    )
    writable = dict(cursor.fetchall())
    for table, made in built().items():
        for column in sorted(set(writable.get(table, ())) ^ made.columns):
            may = "may" if column in writable.get(table, ()) else "may not"
            yield "", f"{table}.{column}", f"the application {may} change it"


@check("G7", "Constraints stand: checks, uniqueness, and references that carry the tenant")
def constraints_stand(cursor: CursorWrapper) -> Rows:
    cursor.execute(
        "SELECT c.relname, k.conname, k.contype, k.convalidated, pg_get_constraintdef(k.oid) "
        "FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid "
        "WHERE k.connamespace = 'public'::regnamespace"
    )
    standing = {(table, name): rest for table, name, *rest in cursor.fetchall()}
    cursor.execute(
        "SELECT t.relname, i.relname, 'i', x.indisvalid AND x.indisunique, pg_get_indexdef(i.oid) "
        "FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid "
        "WHERE i.relnamespace = 'public'::regnamespace AND x.indisunique"
    )
    for table, name, *rest in cursor.fetchall():
        standing.setdefault((table, name), rest)
    for model in apps.get_models():
        if issubclass(model, TenantModel):
            yield from _constraints_of(model, standing)


def _constraints_of(model: type[TenantModel], standing: dict[tuple[str, str], Any]) -> Rows:
    table = model._meta.db_table
    for constraint in model._meta.constraints:
        found = standing.get((table, constraint.name))
        if found is None or not found[1]:
            yield "", table, f"the constraint {constraint.name} is missing or was never checked"
        elif isinstance(constraint, models.CheckConstraint) and not _says(model, constraint, found[2]):
            yield "", table, f"the constraint {constraint.name} says something else than it was built to"
    for field_ in model._meta.concrete_fields:
        if isinstance(field_, TenantForeignKey) and _leads_to_tenant(field_):
            name = f"{table}_{field_.column}_tenant_fk"
            found = standing.get((table, name))
            if found is None or not found[1] or "(tenant_id, " not in found[2]:
                yield "", table, f"the reference {name} is missing or does not carry the tenant"


def _leads_to_tenant(field_: Any) -> bool:
    return issubclass(field_.remote_field.model, TenantModel)


def _says(model: type[TenantModel], constraint: models.CheckConstraint, definition: str) -> bool:
    """Whether a CHECK speaks of the same columns and the same words as it does in the model."""
    columns: set[str] = set()
    words: set[str] = set()
    for lookup, value in _leaves(constraint.condition):
        columns.add(str(getattr(model._meta.get_field(lookup.split("__")[0]), "column", "")))
        words |= {str(v) for v in (value if isinstance(value, list | tuple | set | frozenset) else [value])
                  if isinstance(v, str)}  # fmt: skip
    found = set(re.findall(r"'((?:[^']|'')*)'(?:::)", definition))
    if not all(re.search(rf"\b{re.escape(column)}\b", definition) for column in columns):
        return False
    return words <= found | {""} and found - words <= {"", "{}", "[]"}


def _leaves(condition: Any) -> Iterator[tuple[str, Any]]:
    for child in getattr(condition, "children", ()):
        if isinstance(child, tuple):
            yield child
        else:
            yield from _leaves(child)
