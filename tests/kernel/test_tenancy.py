"""Two walls: a manager that fails closed, and row-level security that holds for any SQL."""

from uuid import UUID

import pytest
from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, connection, transaction

from factory.evidence.invariants import tenant_models
from factory.kernel.context import Context
from factory.kernel.models import JournalEntry
from factory.kernel.tenancy import TenantNotSet, bound, reading, scanning

from .conftest import operator
from .doors.acts import build_door
from .doors.models import Door, Handle


@pytest.mark.requirement("IDN-11")
def test_every_tenant_table_shows_nothing_without_a_tenant(ctx: Context) -> None:
    build_door(ctx)
    with connection.cursor() as cursor:
        for model in tenant_models():
            cursor.execute(f'SELECT count(*) FROM "{model._meta.db_table}"')
            assert cursor.fetchone()[0] == 0, model


@pytest.mark.requirement("IDN-10")
def test_every_table_of_the_product_belongs_to_a_tenant_or_says_why_not() -> None:
    platform = {
        "factory.User", "factory.RevokedToken", "runs.Worker", "runs.WorkerPool", "runs.PoolTenant",
        "runs.FencingEpoch", "factory.Verification", "factory.Setting",
    }  # fmt: skip
    ours = [m for m in apps.get_models() if m.__module__.split(".")[0] in _HOUSE]
    walled = set(tenant_models())
    assert {m._meta.label for m in ours if m not in walled} <= platform


_HOUSE = {"factory", "projects", "approvals", "registry", "usage", "notifications", "runs"}


def test_one_connection_carries_no_tenant_to_the_next_caller(ctx: Context) -> None:
    build_door(ctx)
    stranger = operator(f"{ctx.tenant_id}-x")
    with reading(ctx):
        assert Door.objects.count() == 1
    with reading(stranger):
        assert Door.objects.count() == 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM doors_door")
        assert cursor.fetchone()[0] == 0


def test_raw_sql_cannot_write_into_another_tenant(ctx: Context) -> None:
    stranger = operator(f"{ctx.tenant_id}-x")
    door_id = UUID(build_door(ctx)["doorId"])
    with pytest.raises(DatabaseError, match="row-level security"), bound(stranger):
        Handle(tenant_id=ctx.tenant_id, door_id=door_id).save(force_insert=True)
    with bound(stranger), connection.cursor() as cursor:
        cursor.execute("UPDATE doors_door SET colour = 'stolen'")
        assert cursor.rowcount == 0


def test_a_reference_cannot_leave_its_tenant(ctx: Context) -> None:
    stranger = operator(f"{ctx.tenant_id}-x")
    door_id = UUID(build_door(ctx)["doorId"])
    with pytest.raises(DatabaseError, match="foreign key"), bound(stranger):
        Handle(tenant_id=stranger.tenant_id, door_id=door_id).save(force_insert=True)


def test_a_read_writes_nothing(ctx: Context) -> None:
    with pytest.raises(DatabaseError, match="read-only"), reading(ctx):
        Door(tenant_id=ctx.tenant_id, colour="red").save(force_insert=True)


def test_reading_joins_its_own_tenant_and_refuses_another(ctx: Context) -> None:
    with reading(ctx), reading(ctx):
        assert Door.objects.count() == 0
    with reading(ctx), pytest.raises(TenantNotSet), reading(operator(f"{ctx.tenant_id}-x")):
        pass


@pytest.mark.parametrize("inside", [False, True])
def test_the_scan_role_sees_ids_and_due_times_of_all_tenants_and_no_content(
    ctx: Context, inside: bool
) -> None:
    door_id = UUID(build_door(ctx)["doorId"])

    def scan(sql: str) -> list:
        if inside:
            with bound(operator(f"{ctx.tenant_id}-x")), scanning() as cursor:
                cursor.execute(sql, [ctx.tenant_id])
                return cursor.fetchall()
        with scanning() as cursor:
            cursor.execute(sql, [ctx.tenant_id])
            return cursor.fetchall()

    assert scan("SELECT id FROM doors_door WHERE tenant_id = %s") == [(door_id,)]
    for forbidden in (
        "SELECT colour FROM doors_door WHERE tenant_id = %s",
        "SELECT payload FROM factory_outboxevent WHERE tenant_id = %s",
        "SELECT count(*) FROM factory_journalentry WHERE tenant_id = %s",
        "UPDATE doors_door SET shut_at = NULL WHERE tenant_id = %s",
    ):
        with pytest.raises(DatabaseError, match=r"permission denied|read-only"):
            scan(forbidden)


def test_the_scan_role_is_given_back_at_the_end_of_the_block(ctx: Context) -> None:
    build_door(ctx)
    with bound(ctx):
        with scanning() as cursor:
            cursor.execute("SELECT current_user")
            assert cursor.fetchone()[0].endswith("_scan")
        assert JournalEntry.objects.count() == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone()[0].endswith("_app")


@pytest.mark.requirement("JRN-03", "SEC-09")
@pytest.mark.parametrize("table", ["factory_journalentry", "factory_auditentry"])
@pytest.mark.parametrize(
    "act", ["UPDATE {} SET actor = 'x'", "DELETE FROM {}", "TRUNCATE {}", "DROP TABLE {}"]
)
def test_evidence_can_only_be_added_to(ctx: Context, table: str, act: str) -> None:
    build_door(ctx)
    with pytest.raises(DatabaseError), bound(ctx), connection.cursor() as cursor:
        cursor.execute(act.format(table))


@pytest.mark.parametrize(
    "escape",
    [
        "SET ROLE {prefix}_owner",
        "SET ROLE {prefix}_auditor",
        "ALTER TABLE factory_journalentry DISABLE TRIGGER ALL",
        "ALTER TABLE factory_journalentry DISABLE ROW LEVEL SECURITY",
        "SET session_replication_role = replica",
        "CREATE POLICY mine ON factory_journalentry USING (true)",
        "CREATE OR REPLACE FUNCTION factory_refuse_change() RETURNS trigger LANGUAGE sql AS 'SELECT NULL'",
    ],
)
def test_the_application_role_cannot_take_the_walls_down(ctx: Context, escape: str) -> None:
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(escape.format(prefix=settings.FACTORY_ROLE_PREFIX))


def test_the_application_role_can_grant_itself_nothing(ctx: Context) -> None:
    build_door(ctx)
    with connection.cursor() as cursor:
        cursor.execute(f"GRANT DELETE ON factory_journalentry TO {settings.FACTORY_ROLE_PREFIX}_app")
    with pytest.raises(DatabaseError, match="permission denied"), bound(ctx), connection.cursor() as cursor:
        cursor.execute("DELETE FROM factory_journalentry")
