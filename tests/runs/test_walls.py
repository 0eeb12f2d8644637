"""What the database itself refuses, whatever the code above it does."""

import pytest
from django.db import DatabaseError, connection, transaction

from factory.kernel.tenancy import TenantNotSet
from runs.models import Run
from tests.support.receipts import receipt
from tests.support.running import House
from tests.support.world import second_world

pytestmark = pytest.mark.slow

PINNED = {
    "runs_run": (
        "release_id",
        "release_hash",
        "policy_revision",
        "model_profile_id",
        "snapshot_id",
        "limits",
    ),
    "runs_step": ("side_effect_class", "max_attempts", "node_key"),
    "runs_attempt": ("number", "step_id"),
    "runs_lease": ("fencing_token", "holder", "attempt_id"),
}


@pytest.fixture
def lived(house: House) -> House:
    """A house with a completed run in it, and a cancelled one."""
    from runs.commands import cancel_run

    house.run()
    worker = house.hand()
    worker.report(worker.take(), output=1, receipts=[receipt()])
    cancel_run(house.system, run_id=house.run(), reason="enough")
    return house


def execute(tenant: str, sql: str) -> int:
    """As the application's role, in a tenant's transaction, past every line of our code."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('factory.tenant', %s, true)", [tenant])
        cursor.execute(sql)
        return cursor.rowcount


@pytest.mark.requirement("RUN-06", "RUN-03", "ARC-16")
def test_pins_cannot_change(lived: House) -> None:
    for table, columns in PINNED.items():
        for column in columns:
            with pytest.raises(DatabaseError):
                execute(lived.tenant, f"UPDATE {table} SET {column} = {column}")


@pytest.mark.requirement("RUN-34")
@pytest.mark.parametrize(
    "table", ["runs_snapshot", "runs_receipt", "runs_cancellationintent", "runs_resolution"]
)
def test_evidence_is_only_added_to(lived: House, table: str) -> None:
    for statement in (
        f"UPDATE {table} SET tenant_id = tenant_id",
        f"DELETE FROM {table}",
        f"TRUNCATE {table}",
    ):
        with pytest.raises(DatabaseError):
            execute(lived.tenant, statement)


@pytest.mark.requirement("RUN-20", "RUN-01")
@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("runs_run", "state = 'Failed', failure_class = 'permanent', output_hash = ''"),
        ("runs_step", "state = 'Cancelled'"),
        ("runs_attempt", "state = 'Failed', failure_class = 'permanent'"),
        ("runs_lease", "state = 'Released'"),
    ],
)
def test_no_state_changes_without_its_journal_entry(lived: House, table: str, change: str) -> None:
    state = {"runs_run": "Completed", "runs_lease": "Settled"}.get(table, "Succeeded")
    with pytest.raises(DatabaseError) as refused:
        execute(lived.tenant, f"UPDATE {table} SET {change} WHERE state = '{state}'")
    assert "without a journal entry" in str(refused.value)


@pytest.mark.requirement("RUN-04", "STP-02")
def test_unknown_states_and_half_truths_are_refused(lived: House) -> None:
    for change in (
        "state = 'Escalated'",
        "finished_at = NULL",
        "failure_class = 'transient'",
        "output_hash = ''",
    ):
        with pytest.raises(DatabaseError):
            execute(lived.tenant, f"UPDATE runs_run SET {change} WHERE state = 'Completed'")


@pytest.mark.requirement("IDN-11", "STP-15")
def test_without_a_tenant_there_is_nothing(lived: House, tenant_id: str) -> None:
    with pytest.raises(TenantNotSet):
        Run.objects.count()
    other = second_world(tenant_id)
    for tenant in ("", other.tenant):
        for table in (*PINNED, "runs_snapshot", "runs_receipt"):
            assert execute(tenant, f"SELECT 1 FROM {table}") == 0


@pytest.mark.requirement("LSE-04")
def test_the_epoch_is_not_the_application_s_to_change(lived: House) -> None:
    for statement in ("UPDATE runs_fencingepoch SET epoch = 0", "DELETE FROM runs_fencingepoch"):
        with pytest.raises(DatabaseError):
            execute(lived.tenant, statement)
