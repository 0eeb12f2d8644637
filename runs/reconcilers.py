"""What time alone changes about runs, and what was ordered over many of them, one by one."""

from typing import ClassVar

from factory.kernel.context import Context
from factory.kernel.reconciling import DueItem, Reconciler
from runs.commands import (
    cancel_killed_run,
    enforce_deadline,
    expire_lease,
    finish_kill_switch,
    follow_withdrawal,
    withdraw_from_frozen,
)
from runs.operations.timing import grace

DEADLINE, FROZEN = "deadline", "frozen"


class LeaseExpiryReconciler(Reconciler):
    """Settles lapsed leases (keyed by lease and token), ends runs whose `maxMinutes` are over, and takes back
    what is offered of frozen runs."""

    name: ClassVar[str] = "LeaseExpiryReconciler"
    every: ClassVar[str] = "*/1 * * * *"

    def find_sql(self) -> str:
        seconds = int(grace().total_seconds())
        return (
            "SELECT expires_at AS due_at, id, tenant_id, fencing_token::text AS key FROM runs_lease "
            "WHERE state IN ('Offered', 'Held') "
            f"AND expires_at < statement_timestamp() - interval '{seconds} seconds' "
            "AND NOT EXISTS (SELECT 1 FROM runs_run r WHERE r.id = run_id AND r.frozen_at IS NOT NULL "
            "AND r.state <> 'Cancelling') "
            f"UNION ALL SELECT r.deadline_at, r.id, r.tenant_id, '{DEADLINE}' FROM runs_run r "
            "JOIN projects_project p ON p.id = r.project_id WHERE r.state = 'Running' AND p.state = 'Active' "
            "AND r.clock_because = '{}' AND r.deadline_at <= statement_timestamp() "
            f"UNION ALL SELECT l.expires_at, l.id, l.tenant_id, '{FROZEN}' FROM runs_lease l "
            "JOIN runs_run f ON f.id = l.run_id WHERE l.state = 'Offered' AND f.frozen_at IS NOT NULL"
        )

    def repair(self, ctx: Context, due: DueItem) -> None:
        if due.key == DEADLINE:
            enforce_deadline(ctx, run_id=due.id)
        elif due.key == FROZEN:
            withdraw_from_frozen(ctx, lease_id=due.id)
        else:
            expire_lease(ctx, lease_id=due.id, fencing_token=int(due.key))


class WithdrawalReconciler(Reconciler):
    """Fails or cancels open runs of releases that were taken out of use with `block` or `cancel`."""

    name: ClassVar[str] = "ReleaseDecreeReconciler"
    every: ClassVar[str] = "*/1 * * * *"
    batch: ClassVar[int] = 50

    def find_sql(self) -> str:
        return (
            "SELECT r.created_at AS due_at, r.id, r.tenant_id, '' AS key "
            "FROM runs_run r JOIN registry_release p ON p.id = r.release_id "
            "WHERE r.state IN ('Accepted', 'Running', 'WaitingForApproval') AND "
            "(p.in_flight IN ('block', 'cancel') OR EXISTS ("
            "SELECT 1 FROM registry_closuredependency d JOIN registry_release n ON n.id = d.release_id "
            "WHERE d.closure_id = p.closure_id AND n.state = 'Revoked' AND n.in_flight IN ('block', 'cancel')"
            "))"
        )

    def repair(self, ctx: Context, due: DueItem) -> None:
        follow_withdrawal(ctx, run_id=due.id)


class KillSwitchReconciler(Reconciler):
    """Cancels the open runs of projects whose kill switch was thrown, and notes when none is left."""

    name: ClassVar[str] = "KillSwitchReconciler"
    every: ClassVar[str] = "*/1 * * * *"
    batch: ClassVar[int] = 50

    def find_sql(self) -> str:
        return (
            "SELECT p.killing_since AS due_at, r.id, r.tenant_id, 'run' AS key "
            "FROM projects_project p JOIN runs_run r ON r.project_id = p.id "
            "WHERE p.killing_since IS NOT NULL "
            "AND r.state IN ('Accepted', 'Running', 'WaitingForApproval') "
            "UNION ALL SELECT killing_since + interval '1 millisecond', id, tenant_id, 'project' "
            "FROM projects_project WHERE killing_since IS NOT NULL"
        )

    def repair(self, ctx: Context, due: DueItem) -> None:
        if due.key == "run":
            cancel_killed_run(ctx, run_id=due.id)
        else:
            finish_kill_switch(ctx, project_id=due.id)
