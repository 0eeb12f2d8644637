"""What time alone changes: requests that nobody answered, and waivers whose time is over."""

from typing import ClassVar

from approvals.commands import expire_approval, expire_waiver
from factory.kernel.context import Context
from factory.kernel.reconciling import DueItem, Reconciler


class ApprovalExpiryReconciler(Reconciler):
    """Expires overdue requests, each by its own command, keyed by id and version."""

    name: ClassVar[str] = "ApprovalExpiryReconciler"
    every: ClassVar[str] = "*/5 * * * *"

    def find_sql(self) -> str:
        return (
            "SELECT expires_at AS due_at, id, tenant_id, version::text AS key FROM approvals_approvalrequest "
            "WHERE state = 'Pending' AND expires_at <= clock_timestamp()"
        )

    def repair(self, ctx: Context, due: DueItem) -> None:
        expire_approval(ctx, approval_id=due.id, version=int(due.key))


class WaiverExpiryReconciler(Reconciler):
    """Records the ends of waivers, each by its own command, keyed by id and version."""

    name: ClassVar[str] = "WaiverExpiryReconciler"
    every: ClassVar[str] = "*/5 * * * *"

    def find_sql(self) -> str:
        return (
            "SELECT expires_at AS due_at, id, tenant_id, version::text AS key FROM approvals_waiver "
            "WHERE state = 'Active' AND expires_at <= clock_timestamp()"
        )

    def repair(self, ctx: Context, due: DueItem) -> None:
        expire_waiver(ctx, waiver_id=due.id, version=int(due.key))
