"""Opening budgets, and what the one of a month has to do with that of the month before it."""

from datetime import date
from decimal import Decimal
from uuid import UUID

from factory.kernel import clock
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.ids import uuid7
from factory.kernel.locking import lock_many
from factory.kernel.recording import record
from usage.models import Budget
from usage.operations.ledger import Posting, post
from usage.operations.serial import one_at_a_time
from usage.pricing.periods import NOTICE, begins_at, next_month
from usage.states import Account, Movement


def one_budget_at_a_time() -> None:
    """Until the end of the command nobody else opens a budget, or reserves while there is none."""
    one_at_a_time("budgets", ["of the tenant"])


@operation
def open_budget(
    ctx: Context, *, project_id: UUID | None, month: date, amount: Decimal, recurs: bool, cause: str
) -> Budget:
    """Open a budget of a month that has none. The caller keeps others out (`one_budget_at_a_time`)."""
    at = clock.now()
    budget = Budget(
        project_id=project_id,
        period_start=month,
        period_end=next_month(month),
        recurs=recurs,
        next_due_at=begins_at(next_month(month)) - NOTICE,
        created_by=ctx.actor.subject,
        created_at=at,
        updated_at=at,
    )
    record(ctx, budget, cause, detail={"amount": amount, "recurs": recurs})
    granted = {Account.GRANTED: -amount, Account.AVAILABLE: amount}
    post([budget], granted, Posting(uuid7(), Movement.GRANTED, at))
    return budget


def waiting_before(project_id: UUID | None, month: date) -> list[Budget]:
    """Return, locked, the budgets of a scope before a month whose next month was not seen to yet."""
    rows = Budget.objects.filter(project_id=project_id, period_start__lt=month, next_due_at__isnull=False)
    return lock_many(rows)


@operation
def continued(ctx: Context, budget: Budget) -> None:
    """Note of a locked budget that nothing is left to do about the month after it."""
    budget.see_to_next_month()
    record(ctx, budget, "NextMonthSeenTo")
