"""What time alone changes here: delegations whose end has come."""

from typing import ClassVar

from factory.kernel.context import Context
from factory.kernel.reconciling import DueItem, Reconciler
from projects.commands import expire_delegation


class DelegationExpiryReconciler(Reconciler):
    """Records the end of delegations, keyed by id and end. They gave nothing since that moment anyway."""

    name: ClassVar[str] = "DelegationExpiryReconciler"
    every: ClassVar[str] = "*/10 * * * *"

    def find_sql(self) -> str:
        return (
            "SELECT expires_at AS due_at, id, tenant_id, '' AS key FROM projects_delegation "
            "WHERE state = 'Active' AND expires_at <= clock_timestamp()"
        )

    def repair(self, ctx: Context, due: DueItem) -> None:
        expire_delegation(ctx, delegation_id=due.id, expires_at=due.due_at)
