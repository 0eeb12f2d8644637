"""What finds candidates whose closure is due, however the hint about them fared."""

from typing import ClassVar

from factory.kernel.context import Context
from factory.kernel.reconciling import DueItem, Reconciler
from registry.publication.resolving import resolve


class ClosureResolver(Reconciler):
    """Drafts whose commit is still to be fetched, the first time or again."""

    name: ClassVar[str] = "ClosureResolver"
    every: ClassVar[str] = "*/1 * * * *"
    batch: ClassVar[int] = 20

    def find_sql(self) -> str:
        return (
            "SELECT next_resolution_at AS due_at, id, tenant_id, '' AS key FROM registry_release "
            "WHERE next_resolution_at <= clock_timestamp()"
        )

    def repair(self, ctx: Context, due: DueItem) -> None:
        resolve(due.tenant_id, due.id)
