"""What time alone changes about runs: leases that nobody renews, and runs that take too long."""

from typing import ClassVar

from factory.context import Context
from factory.reconciling import Due, Reconciler
from runs.commands import enforce_deadline, expire_lease
from runs.operations.timing import grace

DEADLINE = "deadline"


class LeaseExpiryReconciler(Reconciler):
    """Settles lapsed leases (keyed by lease and token), and ends runs whose `maxMinutes` are over."""

    name: ClassVar[str] = "LeaseExpiryReconciler"
    every: ClassVar[str] = "*/1 * * * *"

    def find_sql(self) -> str:
        seconds = int(grace().total_seconds())
        return (
            "SELECT expires_at AS due_at, id, tenant_id, fencing_token::text AS key FROM runs_lease "
            "WHERE state IN ('Offered', 'Held') "
            f"AND expires_at + interval '{seconds} seconds' < clock_timestamp() "
            "AND NOT EXISTS (SELECT 1 FROM runs_run r WHERE r.id = run_id AND r.frozen_at IS NOT NULL "
            "AND r.state <> 'Cancelling') "
            f"UNION ALL SELECT deadline_at, id, tenant_id, '{DEADLINE}' FROM runs_run "
            "WHERE state = 'Running' AND frozen_at IS NULL AND deadline_at <= clock_timestamp()"
        )

    def repair(self, ctx: Context, due: Due) -> None:
        if due.key == DEADLINE:
            enforce_deadline(ctx, run_id=due.id)
        else:
            expire_lease(ctx, lease_id=due.id, fencing_token=int(due.key))
