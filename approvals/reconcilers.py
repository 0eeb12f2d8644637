"""What time alone changes: requests that nobody answered."""

from typing import ClassVar

from approvals.commands import expire_approval
from factory.context import Context
from factory.reconciling import Due, Reconciler


class ApprovalExpiryReconciler(Reconciler):
    """Expires overdue requests, each by its own command, keyed by id and version."""

    name: ClassVar[str] = "ApprovalExpiryReconciler"
    every: ClassVar[str] = "*/5 * * * *"

    def find_sql(self) -> str:
        return (
            "SELECT expires_at AS due_at, id, tenant_id, version::text AS key FROM approvals_approvalrequest "
            "WHERE state = 'Pending' AND expires_at <= clock_timestamp()"
        )

    def repair(self, ctx: Context, due: Due) -> None:
        expire_approval(ctx, approval_id=due.id, version=int(due.key))
