"""What time alone changes about money."""

from factory.kernel.context import Context
from factory.kernel.reconciling import DueItem, Reconciler
from usage.commands import expire_hold, expire_reservation, see_to_next_month


class ReservationExpiryWorker(Reconciler):
    """Gives back the money of runs that never dispatched; the run is failed by who hears of it."""

    name = "ReservationExpiryWorker"
    every = "*/15 * * * *"

    def find_sql(self) -> str:
        return (
            "SELECT due_at, id, tenant_id, '' AS key FROM usage_reservation WHERE due_at <= clock_timestamp()"
        )

    def repair(self, ctx: Context, due: DueItem) -> None:
        expire_reservation(ctx, reservation_id=due.id, expires_at=due.due_at)


class HoldExpiryWorker(Reconciler):
    """Frees what is held for usage of unknown cost once it is as old as the policy lets it become."""

    name = "HoldExpiryWorker"
    every = "23 * * * *"

    def find_sql(self) -> str:
        return (
            "SELECT hold_due_at AS due_at, id, tenant_id, '' AS key FROM usage_reservation "
            "WHERE hold_due_at <= clock_timestamp()"
        )

    def repair(self, ctx: Context, due: DueItem) -> None:
        expire_hold(ctx, reservation_id=due.id, due_at=due.due_at)


class NextMonthWorker(Reconciler):
    """Opens the next month of budgets that recur, and tells of months that nothing covers, in good time."""

    name = "NextMonthWorker"
    every = "*/30 * * * *"

    def find_sql(self) -> str:
        return (
            "SELECT next_due_at AS due_at, id, tenant_id, '' AS key FROM usage_budget "
            "WHERE next_due_at <= clock_timestamp()"
        )

    def repair(self, ctx: Context, due: DueItem) -> None:
        see_to_next_month(ctx, budget_id=due.id, due_at=due.due_at)
