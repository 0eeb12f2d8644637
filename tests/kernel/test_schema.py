"""The schema's fingerprint: what the migrations make is committed, and whatever differs is found by name."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connections, transaction

from factory.evidence.auditor import verify
from factory.evidence.schema import readiness
from factory.evidence.schema.catalogue import Catalogue
from factory.evidence.schema.comparing import Comparison, Difference, compare
from factory.evidence.schema.expected import expected, written
from factory.evidence.schema_guards import KINDS, rule_of
from tests.kernel.damage import admin_url
from tests.support.client import Client

PARTS = ("app", "scan", "auditor", "retention", "owner")
APP, SCAN, AUDITOR, RETENTION, OWNER = (f"{settings.FACTORY_ROLE_PREFIX}_{part}" for part in PARTS)
TOKEN = "runs_fencing_token"
MISSING = {
    "DROP INDEX journal_sequence_once": "unique index journal_sequence_once",
    "DROP INDEX webhook_set_aside": "index webhook_set_aside",
    f"REVOKE SELECT ON runs_run FROM {APP}": "grant SELECT on table runs_run to app",
    f"REVOKE SELECT (id) ON runs_step FROM {SCAN}": "grant SELECT on column runs_step.id to scan",
    f"REVOKE USAGE ON SEQUENCE {TOKEN} FROM {APP}": "grant USAGE on sequence runs_fencing_token to app",
    "ALTER TABLE runs_run DROP CONSTRAINT runs_run_pkey CASCADE": "constraint runs_run.runs_run_pkey",
    "ALTER TABLE runs_run DROP COLUMN waiting_since": "column runs_run.waiting_since",
    "DROP POLICY tenant_wall ON runs_run": "policy runs_run.tenant_wall",
    "DROP SEQUENCE runs_fencing_token": "sequence runs_fencing_token",
}
OTHERWISE = {
    "ALTER TABLE runs_run DISABLE TRIGGER pinned_columns": "trigger runs_run.pinned_columns",
    "ALTER TABLE runs_run ENABLE TRIGGER pinned_columns": "trigger runs_run.pinned_columns",
    "ALTER TABLE runs_run DISABLE ROW LEVEL SECURITY": "table runs_run",
    "ALTER TABLE runs_run NO FORCE ROW LEVEL SECURITY": "table runs_run",
    f"ALTER TABLE runs_run OWNER TO {AUDITOR}": "table runs_run",
    "ALTER TABLE factory_purge SET UNLOGGED": "table factory_purge",
    "ALTER POLICY tenant_wall ON runs_run USING (true)": "policy runs_run.tenant_wall",
    f"ALTER POLICY auditor_reads ON runs_run TO {APP}": "policy runs_run.auditor_reads",
    "ALTER TABLE runs_run ALTER COLUMN workflow_id DROP NOT NULL": "column runs_run.workflow_id",
    "ALTER TABLE factory_purge ALTER COLUMN kind TYPE text": "column factory_purge.kind",
    "ALTER TABLE runs_run ALTER COLUMN workflow_id SET DEFAULT 'x'": "column runs_run.workflow_id",
    "ALTER FUNCTION factory_require_journal() SECURITY DEFINER": "function factory_require_journal()",
    "ALTER FUNCTION factory_require_journal() STRICT": "function factory_require_journal()",
    "ALTER FUNCTION factory_require_journal() IMMUTABLE": "function factory_require_journal()",
    f"ALTER ROLE {APP} SET lock_timeout = '9s'": "setting lock_timeout of app everywhere",
    "ALTER SEQUENCE runs_fencing_token CYCLE": "sequence runs_fencing_token",
    "ALTER TABLE doors_door DROP CONSTRAINT door_shut_at, ADD CONSTRAINT door_shut_at CHECK (true)":
        "constraint doors_door.door_shut_at",
    "UPDATE pg_trigger SET tgenabled = 'D' WHERE tgisinternal AND tgrelid = 'factory_user_groups'::regclass":
        "constraint factory_user_groups.",
    f"GRANT SELECT ON runs_run TO {APP} WITH GRANT OPTION": "grant SELECT on table runs_run to app",
}  # fmt: skip
MORE = {
    "ALTER TABLE runs_run ADD COLUMN by_hand text": "column runs_run.by_hand",
    "CREATE INDEX by_hand ON runs_run (state)": "index by_hand",
    f"GRANT SELECT ON factory_outboxevent TO {SCAN}": "grant SELECT on table factory_outboxevent to scan",
    f"GRANT SELECT (payload) ON factory_outboxevent TO {SCAN}":
        "grant SELECT on column factory_outboxevent.payload to scan",
    f"GRANT INSERT ON runs_run TO {AUDITOR}": "grant INSERT on table runs_run to auditor",
    f"GRANT DELETE ON runs_run TO {RETENTION}": "grant DELETE on table runs_run to retention",
    "GRANT SELECT ON runs_run TO PUBLIC": "grant SELECT on table runs_run to PUBLIC",
    "GRANT SELECT ON runs_run TO pg_monitor": 'grant SELECT on table runs_run to the role "pg_monitor"',
    f"GRANT UPDATE ON SEQUENCE {TOKEN} TO {APP}": "grant UPDATE on sequence runs_fencing_token to app",
    f"GRANT CREATE ON SCHEMA public TO {SCAN}": "grant CREATE on schema public to scan",
    "CREATE POLICY more ON runs_run TO PUBLIC USING (true)": "policy runs_run.more",
    "CREATE RULE quiet AS ON INSERT TO runs_run DO INSTEAD NOTHING": "rule runs_run.quiet",
    "CREATE VIEW every_run AS SELECT * FROM runs_run": "view every_run",
    "CREATE TABLE by_hand (n int)": "table by_hand",
    f"ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} IN SCHEMA public GRANT SELECT ON TABLES TO {SCAN}":
        "grant SELECT on later tables of owner to scan",
    f"GRANT {OWNER} TO {APP}": "role app acts as owner by SET ROLE",
    f"GRANT pg_read_all_data TO {SCAN}": 'role scan acts as the role "pg_read_all_data" by SET ROLE',
    f"ALTER ROLE {SCAN} BYPASSRLS": "role scan passes row-level security",
    f"ALTER ROLE {APP} SUPERUSER": "role app is a superuser",
    f"GRANT {SCAN} TO {AUDITOR}": "role auditor acts as scan by SET ROLE",
    f"REVOKE SELECT ON runs_run FROM {OWNER}": "grant SELECT on table runs_run is taken from its owner",
    f"CREATE ROLE stranger; GRANT {OWNER} TO stranger": 'role owner is also of the role "stranger"',
    "CREATE FUNCTION by_hand() RETURNS int LANGUAGE sql AS 'SELECT 1'": "function by_hand()",
}  # fmt: skip

HARMLESS = ("ADD COLUMN", "CREATE INDEX", "CREATE VIEW", "CREATE TABLE", "CREATE FUNCTION")
ELSEWHERE = {
    "CREATE PUBLICATION everything FOR ALL TABLES": "publication everything",
    "CREATE FUNCTION noticed() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; "
    "CREATE EVENT TRIGGER noticing ON ddl_command_end EXECUTE FUNCTION noticed()": "event trigger noticing",
    f"ALTER ROLE {APP} SET row_security = off": "setting row_security of app everywhere",
    "CREATE SCHEMA side; GRANT USAGE ON SCHEMA side TO PUBLIC; CREATE FUNCTION side.all_of() RETURNS int "
    "LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'": "function side.all_of()",
}


@contextmanager
def changed(sql: str) -> Iterator[Any]:
    """A cursor of the administrator after a change that is undone at the end."""
    with psycopg.connect(admin_url()) as connection, connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(sql)  # type: ignore[call-overload]  # tests write plain strings
        yield cursor
        connection.rollback()


def differences(sql: str) -> list[Difference]:
    with changed(sql) as cursor:
        return compare(cursor).differences


def test_what_the_migrations_make_is_what_is_committed() -> None:
    with transaction.atomic(), connections["default"].cursor() as cursor:
        wanted = written(Catalogue(cursor).facts())
        differing = [str(each) for each in compare(cursor).differences]
    assert differing == [], "Run `make schema`, and commit what it writes."
    stale = [str(path) for path, text in wanted.items() if path.read_text() != text]
    assert stale == [] or connections["default"].pg_version < 180000, "Run `make schema`."


@pytest.mark.parametrize(("sql", "key"), MISSING.items())
def test_what_is_missing_is_named(sql: str, key: str) -> None:
    [found] = [each for each in differences(sql) if each.key == key]
    assert (found.fault, found.is_extra) == ("is missing", False)


@pytest.mark.parametrize(("sql", "key"), OTHERWISE.items())
def test_what_is_otherwise_is_named_with_how_it_should_be(sql: str, key: str) -> None:
    found = [each for each in differences(sql) if each.key.startswith(key)]
    assert found
    assert all(each.fault.startswith("is “") and " should be “" in each.fault for each in found)
    assert not any(each.is_extra for each in found)


@pytest.mark.parametrize(("sql", "key"), MORE.items())
def test_what_is_more_is_named(sql: str, key: str) -> None:
    [found] = [each for each in differences(sql) if each.key == key]
    assert found.is_extra


@pytest.mark.parametrize("sql", MORE)
def test_more_is_a_fault_where_it_opens_a_wall_or_refuses_what_is_written(sql: str) -> None:
    with changed(sql) as cursor:
        found = compare(cursor)
    keys = [each.key for each in found.faults]
    assert keys == [] if any(word in sql for word in HARMLESS) else MORE[sql] in keys


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE runs_run ADD CONSTRAINT no_more CHECK (workflow_id <> 'x')",
        "CREATE UNIQUE INDEX once ON runs_run (tenant_id, id, state)",
        "CREATE FUNCTION more() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
        "CREATE POLICY less ON runs_run AS RESTRICTIVE USING (false)",
        "CREATE TRIGGER quiet BEFORE INSERT ON runs_run EXECUTE FUNCTION factory_refuse_change()",
    ],
)
def test_more_that_refuses_what_is_written_is_a_fault(sql: str) -> None:
    with changed(sql) as cursor:
        assert len(compare(cursor).faults) == 1


def test_a_table_of_ones_own_is_no_fault_with_its_key_and_its_grants() -> None:
    with changed(f"CREATE TABLE by_hand (n int PRIMARY KEY); GRANT SELECT ON by_hand TO {AUDITOR}") as cursor:
        assert compare(cursor).faults == []


@pytest.mark.parametrize(("sql", "key"), ELSEWHERE.items())
def test_what_was_made_around_the_schema_is_named(sql: str, key: str) -> None:
    [found] = [each for each in differences(sql) if each.key == key]
    assert found.is_harmless_extra


def test_another_spelling_is_no_fault_on_a_server_newer_than_any_tested() -> None:
    spelled = Difference("policy runs_run.tenant_wall", "for ALL using (a)", "for ALL using ((a))")
    off = Difference("trigger runs_run.pinned", "always, CREATE …", "DISABLED, CREATE …")
    missing = Difference("index by_tenant", "CREATE INDEX …", None)
    unsafe = Difference("table runs_run", "row-level security forced", "row-level security off")
    every = [spelled, off, missing, unsafe]
    assert Comparison(every, server=18).faults == every
    assert Comparison(every, server=19).faults == [off, missing, unsafe]


def test_the_auditor_has_a_rule_for_each_difference() -> None:
    keys = [*expected(), *MISSING.values(), *OTHERWISE.values(), *MORE.values(), *ELSEWHERE.values()]
    assert {rule_of(key) for key in keys} == set(KINDS) == {f"G{n}" for n in range(1, 9)}


def test_the_search_path_is_afterwards_what_it_was() -> None:
    with transaction.atomic(), connections["default"].cursor() as cursor:
        compare(cursor)
        cursor.execute("SHOW search_path")
        assert cursor.fetchone() == ('"$user", public',)


def test_what_was_restored_from_a_dump_says_the_same() -> None:
    from factory.evidence.schema.comparing import _same

    made = "CHECK (((state)::text = ANY ((ARRAY['A'::character varying, 'B c'::character varying])::text[])))"
    each = "('A'::character varying)::text, ('B c'::character varying)::text"
    restored = f"CHECK (((state)::text = ANY (ARRAY[{each}])))"
    assert _same(made, restored)
    assert not _same(made, restored.replace("'A'", "'C'"))
    assert not _same("CHECK (((a OR b) AND c))", "CHECK ((a OR (b AND c)))")


@pytest.fixture
def asked_anew() -> Iterator[None]:
    """Probes of this test remember nothing from before, and leave nothing behind."""
    readiness._remembered = (0.0, "")
    yield
    readiness._remembered = (0.0, "")


@contextmanager
def damaged(database: str, sql: str) -> Iterator[None]:
    """The test's own database with a change that stays."""
    with psycopg.connect(admin_url(), autocommit=True) as connection:
        connection.execute(sql)  # type: ignore[call-overload]
    yield


def test_is_not_ready_while_something_is_missing_and_names_it(own_database: str, asked_anew: None) -> None:
    assert Client().get("/readyz").json()["checks"]["schema"] == "ok"
    with damaged(own_database, "DROP INDEX webhook_set_aside"):
        assert Client().get("/readyz").json()["checks"]["schema"] == "ok"  # remembered for a minute
        readiness._remembered = (0.0, "")
        answer = Client().get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["checks"]["schema"] == (
            "not what the migrations make: index webhook_set_aside is missing"
        )


def test_a_probe_reads_the_catalogue_once_a_minute(asked_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(readiness, "compared", lambda: asked.append(1) or Comparison())
    assert [readiness.schema_state() for _ in range(5)] == ["ok"] * 5
    assert len(asked) == 1
    monkeypatch.setattr(readiness.time, "monotonic", lambda: readiness._remembered[0] + 0.1)
    readiness.schema_state()
    assert len(asked) == 2


def test_what_is_there_besides_stops_nobody(own_database: str, asked_anew: None) -> None:
    with damaged(own_database, "ALTER TABLE runs_run ADD COLUMN by_hand text"):
        readiness.require_schema()
        assert Client().get("/readyz").json()["checks"]["schema"] == "ok"
        err = StringIO()
        call_command("migrate", verbosity=0, stderr=err)
        assert (
            "column runs_run.by_hand is there, and no migration of this release makes it." in err.getvalue()
        )


def test_a_process_of_the_release_before_goes_on_while_a_newer_one_has_migrated(
    own_database: str, asked_anew: None
) -> None:
    newer = (
        "INSERT INTO django_migrations (app, name, applied) VALUES ('runs', '9999_contract', now()); "
        "DROP INDEX webhook_set_aside; ALTER TABLE runs_run ADD COLUMN of_the_next text"
    )
    with damaged(own_database, newer):
        readiness.require_schema()
        assert Client().get("/readyz").json()["checks"]["schema"] == "ok"
        found = readiness.compared()
        assert (found.newer, found.faults) == (["runs.9999_contract"], [])
        report = verify(["G8"])
        assert "runs.9999_contract: run verify of the release that has them" in report.unchecked[0][1]


def test_migrate_fails_when_all_is_applied_and_something_is_missing(own_database: str) -> None:
    with damaged(own_database, f"REVOKE SELECT ON runs_run FROM {APP}"):
        with pytest.raises(CommandError, match="grant SELECT on table runs_run to app is missing"):
            call_command("migrate", verbosity=0)
        out = StringIO()
        with pytest.raises(SystemExit):
            call_command("schema_fingerprint", stdout=out)
        assert "as it should be: grant SELECT on table runs_run to app" in out.getvalue()


STARTS = {
    "web": ["-c", "import config.wsgi"],
    "stream": ["-c", "import config.asgi"],
    "relay": ["manage.py", "relay"],
    "reconcile": ["manage.py", "reconcile", "--loop"],
    "job": ["-m", "celery", "-A", "config", "worker", "--concurrency", "1", "--pool", "solo"],
    "beat": ["-m", "celery", "-A", "config", "beat", "--pidfile=", "-s", "SCHEDULE"],
}


@pytest.mark.slow
@pytest.mark.parametrize("process", STARTS)
def test_no_process_starts_without_what_it_needs(own_database: str, process: str, tmp_path: Path) -> None:
    # Beat removes the file of its schedule and makes it anew: it is given one of the test's own, always.
    command = [str(tmp_path / "schedule") if part == "SCHEDULE" else part for part in STARTS[process]]
    trigger = "ALTER TABLE factory_journalentry DISABLE TRIGGER append_only_rows"
    with damaged(own_database, trigger):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=Path(settings.BASE_DIR),
            env={**os.environ, "FACTORY_PROCESS": "command" if process == "reconcile" else process},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    told = done.stdout + done.stderr
    assert done.returncode != 0
    assert "trigger factory_journalentry.append_only_rows is “DISABLED" in told, told[-2000:]
    assert "Run manage.py migrate of this release" in told


def test_every_line_is_of_one_thing() -> None:
    assert len(expected()) > 2000
    assert all(key == key.strip() and " " in key for key in expected())
