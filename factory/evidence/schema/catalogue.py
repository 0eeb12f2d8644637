"""Read the schema from the catalogue as facts, a line each: the same on PostgreSQL 15 to 18.

Roles are called by their part (app, scan, …), whatever prefix an installation gives them. What belongs to
an extension is left out, and so is what the owner of a thing may do with it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from factory.kernel.hashing import digest_bytes

PARTS = ("owner", "app", "scan", "auditor", "retention")
RIGHTS_OF_OWNER = {"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"}
_OURS = "relnamespace = 'public'::regnamespace"
_NO_EXTENSION = (
    "NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = {0}.oid AND d.classid = '{1}'::regclass "
    "AND d.deptype = 'e')"
)
_RELATION = f"c.{_OURS} AND {_NO_EXTENSION.format('c', 'pg_class')}"
_FUNCTION = f"p.pronamespace = 'public'::regnamespace AND {_NO_EXTENSION.format('p', 'pg_proc')}"


@dataclass(frozen=True, slots=True)
class SchemaFact:
    """One thing that the schema has: `key` names it, `value` says how it is, `owner` whose it is by name."""

    owner: str
    key: str
    value: str = ""

    @property
    def line(self) -> str:
        """Return the fact as one line."""
        return f"{self.key}: {self.value}" if self.value else self.key


def _on_one_line(fact: SchemaFact) -> SchemaFact:
    return replace(fact, key=" ".join(fact.key.split()), value=" ".join(fact.value.split()))


class Catalogue:
    """The facts of the database that a cursor is connected to."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor
        self._roles: dict[int, str] = {}

    def facts(self) -> list[SchemaFact]:
        """Return every fact, each once; inside a transaction only.

        The search path is the catalogue's meanwhile, so that every name comes qualified.
        """
        [(path,)] = self._rows("SELECT current_setting('search_path')")
        self._rows("SELECT set_config('search_path', 'pg_catalog', true)")
        self._roles = self._names()
        reads = (
            self._tables, self._views, self._columns, self._indexes, self._constraints, self._policies,
            self._triggers, self._rules, self._functions, self._sequences, self._roles_of_ours,
            self._relation_grants, self._column_grants, self._other_grants, self._default_grants,
            self._publications, self._event_triggers, self._settings, self._functions_elsewhere,
        )  # fmt: skip
        found = sorted((_on_one_line(fact) for read in reads for fact in read()), key=lambda fact: fact.line)
        self._rows("SELECT set_config('search_path', %s, true)", [path])
        return found

    def _rows(self, query: str, params: list[Any] | None = None) -> list[Any]:
        self._cursor.execute(query, params)
        return list(self._cursor.fetchall())

    def _names(self) -> dict[int, str]:
        prefix = settings.FACTORY_ROLE_PREFIX
        ours = {f"{prefix}_{part}": part for part in PARTS}
        found = self._rows("SELECT oid::bigint, rolname FROM pg_roles")
        return {0: "PUBLIC"} | {oid: ours.get(name, f'the role "{name}"') for oid, name in found}

    def _role(self, oid: int) -> str:
        return self._roles.get(oid, f"a role that is gone ({oid})")

    def _tables(self) -> Iterator[SchemaFact]:
        for name, owner, secured, forced, logged in self._rows(
            "SELECT c.relname, c.relowner::bigint, c.relrowsecurity, c.relforcerowsecurity, "
            f"c.relpersistence = 'p' FROM pg_class c WHERE c.relkind IN ('r', 'p') AND {_RELATION}"
        ):
            security = "forced" if secured and forced else "on, its owner is free of it" if secured else "off"
            value = f"owned by {self._role(owner)}, row-level security {security}"
            yield SchemaFact(
                name, f"table {name}", value + ("" if logged else ", lost in a crash (UNLOGGED)")
            )

    def _views(self) -> Iterator[SchemaFact]:
        for name, definition in self._rows(
            "SELECT c.relname, coalesce(pg_get_viewdef(c.oid), 'foreign') FROM pg_class c "
            f"WHERE c.relkind IN ('v', 'm', 'f') AND {_RELATION}"
        ):
            yield SchemaFact(name, f"view {name}", definition)

    def _columns(self) -> Iterator[SchemaFact]:
        for table, name, kind, required, default, identity, generated, collation in self._rows(
            "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, "
            "pg_get_expr(d.adbin, d.adrelid), a.attidentity, a.attgenerated, "
            "CASE WHEN a.attcollation <> t.typcollation THEN a.attcollation::regcollation::text END "
            "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid "
            "LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
            f"WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p') AND {_RELATION}"
        ):
            value = kind + (f" collate {collation}" if collation else "") + (" not null" if required else "")
            if identity:
                value += " generated as identity" if identity == "d" else " always generated as identity"
            elif default is not None:
                value += f" generated as {default}" if generated else f" default {default}"
            yield SchemaFact(table, f"column {table}.{name}", value)

    def _indexes(self) -> Iterator[SchemaFact]:
        for table, name, unique, definition, valid in self._rows(
            "SELECT t.relname, c.relname, x.indisunique, pg_get_indexdef(c.oid), "
            "x.indisvalid AND x.indisready FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid "
            f"JOIN pg_class t ON t.oid = x.indrelid WHERE {_RELATION} "
            "AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = c.oid AND k.contype IN "
            "('p', 'u', 'x'))"
        ):
            kind = "unique index" if unique else "index"
            yield SchemaFact(table, f"{kind} {name}", definition + ("" if valid else ", NOT VALID"))

    def _constraints(self) -> Iterator[SchemaFact]:
        # From 18 on NOT NULL is a constraint too; here it is the column's.
        for table, name, definition, broken in self._rows(
            "SELECT c.relname, k.conname, pg_get_constraintdef(k.oid), "
            "EXISTS (SELECT 1 FROM pg_trigger g WHERE g.tgconstraint = k.oid AND g.tgenabled = 'D') "
            "OR EXISTS (SELECT 1 FROM pg_index x WHERE x.indexrelid = k.conindid AND NOT x.indisvalid) "
            "FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid "
            f"WHERE k.contype IN ('c', 'f', 'p', 'u', 'x') AND {_RELATION}"
        ):
            yield SchemaFact(
                table, f"constraint {table}.{name}", definition + (", NOT ENFORCED" if broken else "")
            )

    def _policies(self) -> Iterator[SchemaFact]:
        verbs = {"r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE", "*": "ALL"}
        for table, name, permissive, verb, roles, using, checked in self._rows(
            "SELECT c.relname, p.polname, p.polpermissive, p.polcmd, p.polroles::bigint[], "
            "pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid) "
            f"FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid WHERE {_RELATION}"
        ):
            who = ", ".join(sorted(self._role(oid) for oid in roles))
            value = f"{'' if permissive else 'restrictive '}for {verbs[verb]} to {who}"
            value += (f" using {using}" if using else "") + (f" with check {checked}" if checked else "")
            yield SchemaFact(table, f"policy {table}.{name}", value)

    def _triggers(self) -> Iterator[SchemaFact]:
        states = {"A": "always", "O": "enabled", "D": "DISABLED", "R": "replicas only"}
        for table, name, state, definition in self._rows(
            "SELECT c.relname, t.tgname, t.tgenabled, pg_get_triggerdef(t.oid) FROM pg_trigger t "
            f"JOIN pg_class c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal AND {_RELATION}"
        ):
            yield SchemaFact(table, f"trigger {table}.{name}", f"{states[state]}, {definition}")

    def _rules(self) -> Iterator[SchemaFact]:
        for table, name, definition in self._rows(
            "SELECT c.relname, r.rulename, pg_get_ruledef(r.oid) FROM pg_rewrite r "
            f"JOIN pg_class c ON c.oid = r.ev_class WHERE r.rulename <> '_RETURN' AND {_RELATION}"
        ):
            yield SchemaFact(table, f"rule {table}.{name}", definition)

    def _functions(self) -> Iterator[SchemaFact]:
        for name, arguments, owner, returns, language, definer, how, options, source in self._rows(
            "SELECT p.proname, pg_get_function_identity_arguments(p.oid), p.proowner::bigint, "
            "pg_get_function_result(p.oid), l.lanname, p.prosecdef, "
            "CASE WHEN p.proisstrict THEN ', STRICT' ELSE '' END || CASE p.provolatile WHEN 'i' "
            "THEN ', IMMUTABLE' WHEN 's' THEN ', STABLE' ELSE '' END, p.proconfig, "
            "coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) "
            f"FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE {_FUNCTION}"
        ):
            for part in PARTS:  # a body may name a role
                source = source.replace(f"{settings.FACTORY_ROLE_PREFIX}_{part}", f"factory_{part}")
            value = f"returns {returns}, {language}, owned by {self._role(owner)}"
            value += ", WITH ITS OWNER'S RIGHTS" if definer else ""
            value += how
            value += "".join(f", {option}" for option in options or ())
            yield SchemaFact(
                name, f"function {name}({arguments})", f"{value}, body {digest_bytes(source.encode())}"
            )

    def _functions_elsewhere(self) -> Iterator[SchemaFact]:
        """Find what our roles may call in other schemas with its owner's rights."""
        ours = [oid for oid, name in self._roles.items() if name in PARTS]
        for schema, name, arguments, owner in self._rows(
            "SELECT n.nspname, p.proname, pg_get_function_identity_arguments(p.oid), p.proowner::bigint "
            "FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.prosecdef "
            "AND n.nspname NOT IN ('public', 'pg_catalog', 'information_schema') "
            f"AND {_NO_EXTENSION.format('p', 'pg_proc')} AND EXISTS (SELECT 1 FROM unnest(%s::bigint[]) r "
            "WHERE has_schema_privilege(r::oid, n.oid, 'USAGE') "
            "AND has_function_privilege(r::oid, p.oid, 'EXECUTE'))",
            [ours],
        ):
            value = f"WITH ITS OWNER'S RIGHTS, owned by {self._role(owner)}"
            yield SchemaFact("", f"function {schema}.{name}({arguments})", value)

    def _publications(self) -> Iterator[SchemaFact]:
        for name, everything, tables in self._rows(
            "SELECT p.pubname, p.puballtables, (SELECT string_agg(t.tablename, ', ' ORDER BY t.tablename) "
            "FROM pg_publication_tables t WHERE t.pubname = p.pubname) FROM pg_publication p"
        ):
            yield SchemaFact(
                "", f"publication {name}", "of every table" if everything else f"of {tables or 'nothing'}"
            )

    def _event_triggers(self) -> Iterator[SchemaFact]:
        for name, event, function in self._rows(
            "SELECT e.evtname, e.evtevent, e.evtfoid::regproc::text FROM pg_event_trigger e "
            f"WHERE {_NO_EXTENSION.format('e', 'pg_event_trigger')}"
        ):
            yield SchemaFact("", f"event trigger {name}", f"on {event} {function}")

    def _settings(self) -> Iterator[SchemaFact]:
        """Find what is set, for this database or everywhere, for one of our roles or for all."""
        ours = [0, *(oid for oid, name in self._roles.items() if name in PARTS)]
        for role, everywhere, setting in self._rows(
            "SELECT s.setrole::bigint, s.setdatabase = 0, unnest(s.setconfig) FROM pg_db_role_setting s "
            "WHERE s.setrole::bigint = ANY(%s) AND (s.setdatabase = 0 OR s.setdatabase = "
            "(SELECT oid FROM pg_database WHERE datname = current_database()))",
            [ours],
        ):
            name, _, value = setting.partition("=")
            where = "everywhere" if everywhere else "in this database"
            yield SchemaFact("", f"setting {name} of {self._role(role)} {where}", value)

    def _sequences(self) -> Iterator[SchemaFact]:
        for name, owner, kind, start, step, least, most, cycles in self._rows(
            "SELECT c.relname, c.relowner::bigint, format_type(s.seqtypid, NULL), s.seqstart, "
            "s.seqincrement, s.seqmin, s.seqmax, s.seqcycle "
            f"FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid WHERE {_RELATION}"
        ):
            value = f"{kind} from {start} by {step}, {least} to {most}" + (", CYCLES" if cycles else "")
            yield SchemaFact(name, f"sequence {name}", f"{value}, owned by {self._role(owner)}")

    def _roles_of_ours(self) -> Iterator[SchemaFact]:
        rights = {
            "rolsuper": "is a superuser", "rolbypassrls": "passes row-level security",
            "rolcreaterole": "makes roles", "rolcreatedb": "makes databases", "rolreplication": "replicates",
        }  # fmt: skip
        found = self._rows(f"SELECT oid::bigint, {', '.join(rights)} FROM pg_roles")
        ours = [(self._role(oid), oid, has) for oid, *has in found if self._role(oid) in PARTS]
        for part, _, has in ours:
            yield SchemaFact("", f"role {part}")
            yield from (
                SchemaFact("", f"role {part} {says}")
                for says, yes in zip(rights.values(), has, strict=True)
                if yes
            )
        yield from self._memberships([oid for _, oid, has in ours if not has[0]])

    def _memberships(self, bound: list[int]) -> Iterator[SchemaFact]:
        """Return what our roles may become, and who else may become one of them but administrators."""
        [(release,)] = self._rows("SELECT current_setting('server_version_num')::int")
        may_set = "SET" if release >= 160000 else "MEMBER"
        for member, role, inherits in self._rows(
            "SELECT m.oid::bigint, r.oid::bigint, pg_has_role(m.oid, r.oid, 'USAGE') "
            "FROM pg_roles m, pg_roles r WHERE m.oid::bigint = ANY(%s) AND r.oid <> m.oid "
            "AND r.rolname <> 'pg_database_owner' "
            "AND (pg_has_role(m.oid, r.oid, 'USAGE') OR pg_has_role(m.oid, r.oid, %s))",
            [bound, may_set],
        ):
            how = "always" if inherits else "by SET ROLE"
            yield SchemaFact("", f"role {self._role(member)} acts as {self._role(role)} {how}")
        ours = [oid for oid, name in self._roles.items() if name in PARTS]
        for member, role in self._rows(
            "SELECT m.member::bigint, m.roleid::bigint FROM pg_auth_members m "
            "JOIN pg_roles r ON r.oid = m.member WHERE m.roleid::bigint = ANY(%s) "
            "AND NOT m.member::bigint = ANY(%s) AND NOT r.rolsuper AND NOT r.rolcreaterole",
            [ours, ours],
        ):
            yield SchemaFact("", f"role {self._role(role)} is also of {self._role(member)}")

    def _grant(self, owner: str, right: str, on: str, to: int, passes_on: bool) -> SchemaFact:
        how = "may be passed on" if passes_on else ""
        return SchemaFact(owner, f"grant {right} on {on} to {self._role(to)}", how)

    def _relation_grants(self) -> Iterator[SchemaFact]:
        rows = self._rows(
            "SELECT c.relname, CASE c.relkind WHEN 'S' THEN 'sequence' WHEN 'r' THEN 'table' WHEN 'p' "
            "THEN 'table' ELSE 'view' END, c.relowner::bigint, a.grantee::bigint, a.privilege_type, "
            "a.is_grantable FROM pg_class c LEFT JOIN LATERAL aclexplode(coalesce(c.relacl, "
            "acldefault(CASE c.relkind WHEN 'S' THEN 's'::\"char\" ELSE 'r'::\"char\" END, c.relowner))) a "
            f"ON true WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND {_RELATION}"
        )
        kept: dict[str, set[str]] = {}
        for name, kind, owner, to, right, passes_on in rows:
            if kind == "table":
                kept.setdefault(name, set())
            if to == owner and kind == "table":
                kept[name].add(right)
            elif to is not None and to != owner:
                yield self._grant(name, right, f"{kind} {name}", to, passes_on)
        for name, rights in kept.items():  # an owner who may not read a table cannot check its references
            for right in sorted(RIGHTS_OF_OWNER - rights):
                yield SchemaFact(name, f"grant {right} on table {name} is taken from its owner")

    def _column_grants(self) -> Iterator[SchemaFact]:
        for table, column, to, right, passes_on in self._rows(
            "SELECT c.relname, a.attname, x.grantee::bigint, x.privilege_type, x.is_grantable "
            "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid, LATERAL aclexplode(a.attacl) x "
            f"WHERE a.attnum > 0 AND NOT a.attisdropped AND x.grantee <> c.relowner AND {_RELATION}"
        ):
            yield self._grant(table, right, f"column {table}.{column}", to, passes_on)

    def _other_grants(self) -> Iterator[SchemaFact]:
        for name, arguments, to, right, passes_on in self._rows(
            "SELECT p.proname, pg_get_function_identity_arguments(p.oid), a.grantee::bigint, "
            "a.privilege_type, a.is_grantable FROM pg_proc p, "
            "LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a "
            f"WHERE a.grantee <> p.proowner AND {_FUNCTION}"
        ):
            yield self._grant(name, right, f"function {name}({arguments})", to, passes_on)
        for to, right, passes_on in self._rows(
            "SELECT a.grantee::bigint, a.privilege_type, a.is_grantable FROM pg_namespace n, "
            "LATERAL aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a "
            "WHERE n.nspname = 'public' AND a.grantee <> n.nspowner "
            "AND NOT (a.grantee = 0 AND a.privilege_type = 'USAGE')"  # ours have it by name
        ):
            if self._role(to) != "owner":
                yield self._grant("", right, "schema public", to, passes_on)
        for to, right, passes_on in self._rows(
            "SELECT a.grantee::bigint, a.privilege_type, a.is_grantable FROM pg_database d, "
            "LATERAL aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a "
            "WHERE d.datname = current_database() AND a.grantee <> d.datdba AND a.privilege_type = 'CREATE'"
        ):
            if self._role(to) != "owner":
                yield self._grant("", right, "the database", to, passes_on)

    def _default_grants(self) -> Iterator[SchemaFact]:
        kinds = {"r": "tables", "S": "sequences", "f": "functions", "T": "types", "n": "schemas"}
        for maker, kind, to, right, passes_on in self._rows(
            "SELECT d.defaclrole::bigint, d.defaclobjtype, a.grantee::bigint, a.privilege_type, "
            "a.is_grantable FROM pg_default_acl d, LATERAL aclexplode(d.defaclacl) a "
            "WHERE d.defaclnamespace IN (0, 'public'::regnamespace) AND a.grantee <> d.defaclrole"
        ):
            on = f"later {kinds.get(kind, kind)} of {self._role(maker)}"
            yield self._grant("", right, on, to, passes_on)
