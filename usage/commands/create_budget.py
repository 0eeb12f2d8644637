from datetime import date
from decimal import Decimal
from uuid import UUID

from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import NotFound
from projects.selectors import project
from usage.errors import BudgetExists
from usage.models import Budget
from usage.operations.opening import continued, one_budget_at_a_time, open_budget, waiting_before
from usage.permissions import require_over_money
from usage.pricing.periods import label


@command("CreateBudget")
def create_budget(
    ctx: Context, *, project_id: UUID | None, month: date, amount: Decimal, recurs: bool | None = None
) -> str:
    """Open a budget for one calendar month: of a project, or of the whole tenant when it is None.

    One that `recurs` opens the next month by itself; without a word it does so if the one that it follows
    did. Guards: the project is in the caller's scope (404); the grant finance or an administrator's role
    there (403); one budget per scope and month (`BudgetExists`, 409). What was reserved before the budget
    existed is not drawn from it. Emits nothing; answers with the budget's id.
    """
    if project_id is not None and ctx.project_id not in (None, project_id):
        raise NotFound("There is no such project here.")
    require_over_money(ctx, whole_tenant=project_id is None or ctx.project_id is None)
    if project_id is not None and project(project_id) is None:
        raise NotFound("There is no such project here.")
    one_budget_at_a_time()
    if Budget.objects.filter(project_id=project_id, period_start=month).exists():
        raise BudgetExists(f"There is already a budget for {label(month)} here. Change its amount instead.")
    before = [row for row in waiting_before(project_id, month) if row.period_end == month]
    wanted = any(row.recurs for row in before) if recurs is None else recurs
    budget = open_budget(
        ctx, project_id=project_id, month=month, amount=amount, recurs=wanted, cause="BudgetCreated"
    )
    for row in before:
        continued(ctx, row)
    return str(budget.id)
