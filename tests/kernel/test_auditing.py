"""Each invariant of the kernel is proved by a corruption that it finds, and silent without one."""

import json
from dataclasses import replace
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from factory.evidence import auditor, schema_guards
from factory.evidence.auditor import CouldNotCheck, audit_all, invariants, verify
from factory.evidence.schema.comparing import compare
from factory.kernel.context import Context
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import Handlers

from .conftest import operator
from .damage import corrupt
from .doors.acts import build_door, paint_door, shut_and_open_door, shut_door

pytestmark = pytest.mark.slow

APP = f"{settings.FACTORY_ROLE_PREFIX}_app"
SCAN = f"{settings.FACTORY_ROLE_PREFIX}_scan"
AUDITOR = f"{settings.FACTORY_ROLE_PREFIX}_auditor"
OWNER = f"{settings.FACTORY_ROLE_PREFIX}_owner"

INHERIT = f"""
DO $$ BEGIN
    ALTER ROLE "{APP}" INHERIT;
    IF current_setting('server_version_num')::int >= 160000 THEN
        EXECUTE 'GRANT "{SCAN}" TO "{APP}" WITH INHERIT TRUE';
    END IF;
END $$
"""

CORRUPTIONS = {
    "A1": "UPDATE doors_door SET state = 'Open', shut_at = NULL WHERE {mine} AND state = 'Shut'",
    "A2": "DELETE FROM doors_handle WHERE {mine}; DELETE FROM doors_door WHERE {mine}",
    "A3": "DELETE FROM factory_journalentry WHERE {mine} AND sequence = 2",
    "A3b": "UPDATE factory_auditentry SET sequence = sequence + 7 WHERE {mine} AND sequence = 2",
    "A3c": "DELETE FROM factory_chainhead WHERE {mine}",
    "A4": "UPDATE factory_journalentry SET from_state = 'Shut' WHERE {mine} AND sequence = 2",
    "A5": "UPDATE factory_journalentry SET cause = 'Kicked' WHERE {mine} AND sequence = 2",
    "A6": "UPDATE factory_journalentry SET actor = 'eve' WHERE {mine} AND sequence = 2",
    "A6b": "UPDATE factory_auditentry SET outcome = 'refused' WHERE {mine} AND sequence = 1",
    "A8": "UPDATE factory_journalentry SET occurred_at = now() - interval '1 day' "
    "WHERE {mine} AND sequence = 2",
    "C1": "DELETE FROM factory_outboxevent WHERE {mine} AND sequence = 1",
    "C2": """UPDATE factory_outboxevent SET payload = payload || '{"colour": "gold"}'
             WHERE {mine} AND sequence = 1""",
    "C3": "UPDATE factory_outboxevent SET handled_at = NULL WHERE {mine} AND sequence = 1",
    "C4": """INSERT INTO factory_idempotencyrecord
                 (tenant_id, scope, operation, key, request_hash, result, created_at)
             VALUES (%(tenant)s, '', 'doors.hear', %(uuid)s, '', 'null', now())""",
    "F1": "ALTER TABLE doors_handle DROP CONSTRAINT doors_handle_door_id_tenant_fk; "
    "UPDATE doors_handle SET door_id = (SELECT id FROM doors_door WHERE tenant_id = %(other)s LIMIT 1) "
    "WHERE {mine}",
    "F3": """INSERT INTO factory_idempotencyrecord
                 (tenant_id, scope, operation, key, request_hash, created_at)
             VALUES (%(tenant)s, '', 'BuildDoor', 'k', '', now())""",
    "F4": """INSERT INTO factory_setting (name, value, reason, changed_by, changed_at)
             VALUES (%(tenant)s, 1, 'because', 'eve', now())""",
}

ENVELOPE = {
    "topic": "'doors.doors.v1.door-shut'",
    "schema_version": "9",
    "run_id": "gen_random_uuid()",
    "correlation_id": "gen_random_uuid()",
    "causation_id": "gen_random_uuid()",
    "traceparent": "'00-x'",
    "occurred_at": "occurred_at + interval '1 microsecond'",
}

OF_THE_WALLS = {
    "G1": [
        "ALTER TABLE doors_door DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE doors_door NO FORCE ROW LEVEL SECURITY",
        "ALTER TABLE doors_handle RENAME TO doors_knob",
        f"ALTER TABLE doors_door OWNER TO {APP}",
    ],
    "G2": [
        "DROP TRIGGER append_only_table ON factory_journalentry",
        "ALTER TABLE factory_auditentry ENABLE TRIGGER append_only_rows",
        "DROP TRIGGER journal_required ON doors_door",
        "DROP TRIGGER append_only_rows ON factory_journalentry; CREATE TRIGGER append_only_rows "
        "BEFORE DELETE ON factory_journalentry FOR EACH ROW "
        "EXECUTE FUNCTION factory_refuse_change('purgeable'); "
        "ALTER TABLE factory_journalentry ENABLE ALWAYS TRIGGER append_only_rows",
        "DROP TRIGGER pinned_columns ON factory_chainhead; CREATE TRIGGER pinned_columns BEFORE UPDATE "
        "ON factory_chainhead FOR EACH ROW WHEN (OLD.stream_id IS DISTINCT FROM NEW.stream_id) "
        "EXECUTE FUNCTION factory_refuse_change(); "
        "ALTER TABLE factory_chainhead ENABLE ALWAYS TRIGGER pinned_columns",
    ],
    "G3": [
        f"ALTER ROLE {APP} BYPASSRLS",
        f"GRANT pg_read_all_data TO {APP}",
        INHERIT,
        f"GRANT CREATE ON SCHEMA public TO {APP}",
        f"GRANT {SCAN} TO {AUDITOR}",
        f"ALTER ROLE {SCAN} BYPASSRLS",
    ],
    "G4": [
        "DROP POLICY tenant_wall ON doors_door",
        "DROP POLICY auditor_reads ON doors_door",
        "ALTER POLICY tenant_wall ON doors_door USING (true)",
        "ALTER POLICY tenant_wall ON doors_door WITH CHECK (true)",
        "CREATE POLICY another ON doors_door USING (true)",
        f"ALTER POLICY auditor_reads ON doors_door TO {APP}",
        f"ALTER POLICY scan_reads ON doors_door TO {APP}, {SCAN}",
    ],
    "G5": [
        "CREATE OR REPLACE FUNCTION factory_refuse_change() RETURNS trigger LANGUAGE plpgsql "
        "SET search_path = pg_catalog, public, pg_temp AS 'BEGIN RETURN OLD; END'",
        "ALTER FUNCTION factory_require_journal() RESET search_path",
    ],
    "G6": [
        f"GRANT DELETE ON factory_journalentry TO {APP}",
        f"GRANT UPDATE ON factory_auditentry TO {APP}",
        f"GRANT UPDATE (stream_id) ON factory_chainhead TO {APP}",
        "GRANT TRUNCATE ON factory_outboxevent TO PUBLIC",
        f"REVOKE UPDATE (hash) ON factory_chainhead FROM {APP}",
        f"GRANT INSERT ON factory_purge TO {APP}",
        f"GRANT SELECT ON factory_outboxevent TO {SCAN}",
        f"GRANT SELECT (payload) ON factory_outboxevent TO {SCAN}",
        f"ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} IN SCHEMA public GRANT SELECT ON TABLES TO {SCAN}",
        f"GRANT UPDATE ON SEQUENCE runs_fencing_token TO {SCAN}",
        "REVOKE EXECUTE ON FUNCTION projects_paused FROM PUBLIC",
    ],
    "G7": [
        "ALTER TABLE doors_door DROP CONSTRAINT door_shut_at",
        "ALTER TABLE doors_door DROP CONSTRAINT door_shut_at, ADD CONSTRAINT door_shut_at CHECK (true)",
        "ALTER TABLE factory_auditentry DROP CONSTRAINT audit_outcome_known, ADD CONSTRAINT "
        "audit_outcome_known CHECK (outcome IN ('done', 'refused', 'noted', 'forgotten'))",
        "DROP INDEX journal_sequence_once",
        "ALTER TABLE doors_handle DROP CONSTRAINT doors_handle_door_id_tenant_fk",
    ],
    "G8": [
        "DROP INDEX webhook_set_aside",
        "ALTER TABLE doors_door ADD COLUMN by_hand text",
        "ALTER SEQUENCE runs_fencing_token CYCLE",
    ],
}


@pytest.fixture
def history(ctx: Context) -> Context:
    """Two doors with a past, in two tenants, all of it delivered."""
    for each in (ctx, operator(f"{ctx.tenant_id}-x")):
        door_id = UUID(build_door(each)["doorId"])
        shut_and_open_door(each, door_id=door_id)
        paint_door(each, door_id=door_id, colour="blue")
        shut_door(each, door_id=door_id)
    drain(Handlers(), ctx.tenant_id)
    return ctx


def bound_values(ctx: Context, sql: str) -> tuple[str, dict]:
    sql = sql.replace("{mine}", "tenant_id = %(tenant)s")
    values = {"tenant": ctx.tenant_id, "other": f"{ctx.tenant_id}-x", "uuid": str(uuid4())}
    return sql, {k: v for k, v in values.items() if f"%({k})s" in sql}


@pytest.mark.parametrize("code", CORRUPTIONS)
def test_finds_a_corruption_of_the_evidence(history: Context, code: str) -> None:
    statements = [bound_values(history, sql) for sql in CORRUPTIONS[code].split(";")]
    assert corrupt(code, statements, tenant_id=history.tenant_id), f"{code} does not see it"


@pytest.mark.parametrize(("code", "sql"), [(c, sql) for c, each in OF_THE_WALLS.items() for sql in each])
def test_finds_a_breach_of_the_walls(history: Context, code: str, sql: str) -> None:
    assert corrupt(code, [(sql, ())], tenant_id=history.tenant_id), f"{code} does not see it"


@pytest.mark.parametrize("column", ENVELOPE)
def test_finds_an_event_whose_envelope_is_another(history: Context, column: str) -> None:
    sql = f"UPDATE factory_outboxevent SET {column} = {ENVELOPE[column]} WHERE {{mine}} AND sequence = 1"
    assert corrupt("C2", [bound_values(history, sql)], tenant_id=history.tenant_id)


def test_finds_the_tail_of_a_chain_cut_off(history: Context) -> None:
    cut = "DELETE FROM factory_journalentry WHERE tenant_id = %(tenant)s AND sequence = 5"
    for code in ("A1", "A3", "A6"):
        assert corrupt(code, [bound_values(history, cut)], tenant_id=history.tenant_id), code


def test_is_silent_about_what_is_sound(history: Context) -> None:
    tenants = {history.tenant_id, f"{history.tenant_id}-x"}
    assert [v for v in audit_all() if v.tenant_id in tenants] == []


def test_a_check_that_breaks_is_told_and_hides_nothing(history: Context, monkeypatch: Any) -> None:
    rule = next(rule for rule in invariants() if rule.code == "A4")

    def broken(cursor: Any) -> Any:
        cursor.execute("SELECT 1 / 0")
        yield from ()

    monkeypatch.setattr(auditor, "_invariants", auditor._invariants | {"A4": replace(rule, check=broken)})
    report = verify(["A3", "A4", "A5"])
    assert ([code for code, _ in report.unchecked], report.rules) == (["A4"], 3)
    with pytest.raises(CouldNotCheck, match="A4"):
        audit_all(["A3", "A4", "A5"])
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("verify", "A4", "A5", stdout=out)
    assert ended.value.code == 2
    assert "A4 could not be checked: DataError" in out.getvalue()


def test_rows_are_read_in_batches(history: Context) -> None:
    with auditor.snapshot() as cursor:
        batches = list(auditor.streamed(cursor, "SELECT generate_series(1, 7)", size=3))
        assert [len(batch) for batch in batches] == [3, 3, 1]


def test_every_invariant_of_the_kernel_has_a_corruption() -> None:
    ours = {
        r.code
        for r in invariants()
        if r.module in ("factory.evidence.invariants", "factory.evidence.schema_guards")
    } - {"A9"}
    assert ours <= set(CORRUPTIONS) | set(OF_THE_WALLS)


def test_the_command_prints_one_json_object(history: Context) -> None:
    out = StringIO()
    call_command("verify", "A3", "A6", "--json", stdout=out)
    report = json.loads(out.getvalue())
    assert report["ok"] is True
    assert report["violations"] == []


def test_the_command_names_an_unknown_invariant() -> None:
    with pytest.raises(CommandError, match="Z9"):
        call_command("verify", "Z9")


def test_one_verification_reads_the_catalogue_once(monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[Any] = []
    monkeypatch.setattr(schema_guards, "compare", lambda cursor: readings.append(cursor) or compare(cursor))
    heard: dict[str, int | None] = {}
    report = verify(schema_guards.TITLES, lambda rule, violations: heard.update({rule.code: violations}))
    assert (len(readings), report.rules, report.ok) == (1, 8, True)
    assert heard == dict.fromkeys(schema_guards.TITLES, 0)
