"""The walls of runs: pins that cannot change, evidence that cannot be rewritten, tokens that only rise."""

from django.db import migrations

from factory.kernel.migration_operations import (
    AppendOnly,
    JournalRequired,
    MutableColumns,
    Retention,
    TenantWalls,
    role,
)

RUN_MOVES = (
    "state", "version", "budget_reservation_id", "started_at", "waiting_since", "deadline_at", "finished_at",
    "updated_at", "failure_class", "reason", "output", "output_hash", "frozen_at",
)  # fmt: skip
STEP_MOVES = (
    "state", "version", "next_dispatch_at", "attention", "failure_class", "reason", "output", "updated_at",
    "finished_at",
)  # fmt: skip
ATTEMPT_MOVES = (
    "state", "lease_id", "held_at", "approval_id", "checkpoint", "resume_at", "settled_at", "outcome_hash",
    "failure_class", "reason", "output",
)  # fmt: skip
TEMPLATE_MOVES = ("state", "version", "retired_at", "retired_by", "retire_reason")
LEASE_MOVES = ("state", "expires_at", "acquired_at", "closed_at")

FENCING = f"""
CREATE SEQUENCE runs_fencing_token AS bigint MAXVALUE 1099511627775;
GRANT USAGE ON SEQUENCE runs_fencing_token TO {role("app")};
GRANT SELECT ON runs_workerpool TO {role("scan")};
INSERT INTO runs_fencingepoch (id, epoch) VALUES (1, 1);
REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON runs_fencingepoch FROM {role("app")};
"""


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0001_initial"),
        ("factory", "0002_walls"),
        ("projects", "0002_walls"),
        ("approvals", "0002_walls"),
        ("registry", "0002_walls"),
    ]
    operations = [
        TenantWalls("Snapshot"),
        AppendOnly("Snapshot"),
        TenantWalls("RunTemplate"),
        MutableColumns("RunTemplate", columns=TEMPLATE_MOVES),
        JournalRequired("RunTemplate"),
        TenantWalls(
            "Run",
            scan=(
                "id",
                "tenant_id",
                "project_id",
                "release_id",
                "state",
                "deadline_at",
                "created_at",
                "frozen_at",
            ),
        ),
        Retention("Run", reads=("id", "tenant_id", "state", "finished_at")),
        MutableColumns("Run", columns=RUN_MOVES),
        JournalRequired("Run"),
        TenantWalls(
            "Step",
            scan=("id", "tenant_id", "run_id", "state", "next_dispatch_at", "agent_id", "skill_id"),
        ),
        MutableColumns("Step", columns=STEP_MOVES),
        JournalRequired("Step"),
        TenantWalls("Attempt", scan=("id", "tenant_id", "run_id", "step_id", "state", "resume_at")),
        MutableColumns("Attempt", columns=ATTEMPT_MOVES),
        JournalRequired("Attempt"),
        TenantWalls(
            "Lease",
            scan=(
                "id",
                "tenant_id",
                "run_id",
                "attempt_id",
                "worker_id",
                "fencing_token",
                "state",
                "expires_at",
            ),
        ),
        MutableColumns("Lease", columns=LEASE_MOVES),
        JournalRequired("Lease"),
        TenantWalls("CancellationIntent"),
        AppendOnly("CancellationIntent"),
        TenantWalls("Receipt"),
        AppendOnly("Receipt"),
        TenantWalls("Resolution"),
        AppendOnly("Resolution"),
        TenantWalls("Artifact"),
        AppendOnly("Artifact"),
        TenantWalls("TenantQuota", scan=("tenant_id", "open_attempts")),
        MutableColumns("TenantQuota", columns=("open_attempts", "reason", "changed_by", "changed_at")),
        TenantWalls("Freeze"),
        MutableColumns("Freeze", columns=("lifted_at", "lifted_by", "lift_reason")),
        migrations.RunSQL(FENCING, "DROP SEQUENCE runs_fencing_token"),
    ]
