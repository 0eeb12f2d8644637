"""The month after that of a budget: opened by itself where it recurs, and told of where nothing covers it."""

from datetime import date, datetime
from uuid import UUID

from factory.kernel import clock
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import NotFound, VersionMismatch
from factory.kernel.locking import lock
from factory.kernel.recording import record
from usage.errors import NextMonthOpen
from usage.events import BudgetEnding
from usage.models import Budget, ReservationHold
from usage.operations.opening import continued, one_budget_at_a_time, open_budget
from usage.permissions import require_over_money
from usage.pricing.periods import NOTICE, begins_at, label, month_of
from usage.selectors import in_scope, uncovered


@command("SeeToNextMonth")
def see_to_next_month(ctx: Context, *, budget_id: UUID, due_at: datetime) -> str | None:
    """Open the month after that of a budget that recurs, with its amount; the new budget's id, if any.

    Of months that passed meanwhile only the present one is opened. A budget that somebody opened for it keeps
    its amount, and recurs from then on. Where the budget does not recur, runs draw on it, and nothing covers
    the month after it, that is told once: BudgetEnding. Judged again under the lock that opening takes, so
    that two at once make one.
    """
    one_budget_at_a_time()
    budget = lock(Budget, budget_id, missing=NotFound("There is no such budget here."))
    if budget.next_due_at != due_at or clock.now() < due_at:
        return None
    if budget.recurs:
        return _open_next(ctx, budget)
    _tell_if_missing(ctx, budget)
    return None


@command("ChangeRecurrence")
def change_recurrence(ctx: Context, *, budget_id: UUID, recurs: bool, version: int) -> str:
    """Let a budget open the next month by itself from now on, or not any more.

    Guards: it is in the caller's scope (404); the grant finance or an administrator's role there (403);
    `version` is the current one (`VersionMismatch`, 409); the month after it is not open yet
    (`NextMonthOpen`, 409). Emits nothing; answers with the budget's id.
    """
    one_budget_at_a_time()
    budget = lock(Budget, budget_id, missing=NotFound("There is no such budget here."))
    if ctx.project_id is not None and budget.project_id not in (None, ctx.project_id):
        raise NotFound("There is no such budget here.")
    require_over_money(ctx, whole_tenant=None in (budget.project_id, ctx.project_id))
    if version != budget.version:
        raise VersionMismatch(f"The budget is at version {budget.version}, not {version}.")
    if Budget.objects.filter(project_id=budget.project_id, period_start__gte=budget.period_end).exists():
        month = label(budget.period_end)
        raise NextMonthOpen(f"A later month than this, such as {month}, is open: let the newest one recur.")
    due_at = begins_at(budget.period_end) - NOTICE
    budget.change_recurrence(at=clock.now(), recurs=recurs, due_at=due_at)
    record(ctx, budget, "RecurrenceChanged", detail={"recurs": recurs})
    return str(budget.id)


def _open_next(ctx: Context, budget: Budget) -> str:
    month = max(budget.period_end, month_of(clock.now()))
    there = Budget.objects.filter(project_id=budget.project_id, period_start=month).first()
    if there is None:
        there = open_budget(
            ctx,
            project_id=budget.project_id,
            month=month,
            amount=budget.amount,
            recurs=True,
            cause="BudgetRenewed",
        )
    elif not there.recurs:
        _pass_on(ctx, there.id)
    continued(ctx, budget)
    return str(there.id)


def _pass_on(ctx: Context, budget_id: UUID) -> None:
    """Let a budget that somebody opened before its turn go on recurring."""
    there = lock(Budget, budget_id)
    due_at = begins_at(there.period_end) - NOTICE
    there.change_recurrence(at=clock.now(), recurs=True, due_at=due_at)
    record(ctx, there, "RecurrenceChanged", detail={"recurs": True})


def _tell_if_missing(ctx: Context, budget: Budget) -> None:
    used = ReservationHold.objects.filter(budget_id=budget.id).exists()
    if not used or not _misses(budget, budget.period_end):
        continued(ctx, budget)
        return
    event = BudgetEnding(
        budget_id=budget.id,
        tenant_id=ctx.tenant_id,
        project_id=budget.project_id,
        next_month=label(budget.period_end),
        ends_at=begins_at(budget.period_end),
    )
    budget.see_to_next_month()
    record(ctx, budget, "NextMonthMissing", event)


def _misses(budget: Budget, month: date) -> bool:
    """Return whether nothing covers a month of the budget's project, or of the whole tenant."""
    if budget.project_id is not None:
        return bool(uncovered(in_scope(budget.project_id, month), month))
    return not Budget.objects.filter(project=None, period_start=month).exists()
