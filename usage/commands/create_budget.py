from datetime import date
from decimal import Decimal
from uuid import UUID

from factory import clock
from factory.commanding import command
from factory.context import Context
from factory.errors import NotFound
from factory.ids import uuid7
from factory.recording import record
from projects.selectors import project
from usage.errors import BudgetExists
from usage.models import Budget
from usage.operations.ledger import Posting, post
from usage.operations.serial import one_at_a_time
from usage.periods import label, next_month
from usage.permissions import require_over_money
from usage.states import Account, Movement


@command("CreateBudget")
def create_budget(ctx: Context, *, project_id: UUID | None, month: date, amount: Decimal) -> str:
    """Open a budget for one calendar month: of a project, or of the whole tenant when it is None.

    Guards: the project is in the caller's scope (404); the grant finance or an administrator's role there
    (403); one budget per scope and month (`BudgetExists`, 409). What was reserved before the budget existed
    is not drawn from it. Emits nothing; answers with the budget's id.
    """
    if project_id is not None and ctx.project_id not in (None, project_id):
        raise NotFound("There is no such project here.")
    require_over_money(ctx, whole_tenant=project_id is None or ctx.project_id is None)
    if project_id is not None and project(project_id) is None:
        raise NotFound("There is no such project here.")
    one_at_a_time("budgets", ["of the tenant"])
    if Budget.objects.filter(project_id=project_id, period_start=month).exists():
        raise BudgetExists(f"There is already a budget for {label(month)} here. Change its amount instead.")
    at = clock.now()
    budget = Budget(
        project_id=project_id,
        period_start=month,
        period_end=next_month(month),
        created_by=ctx.actor.subject,
        created_at=at,
        updated_at=at,
    )
    record(ctx, budget, "BudgetCreated", detail={"amount": amount})
    granted = {Account.GRANTED: -amount, Account.AVAILABLE: amount}
    post([budget], granted, Posting(uuid7(), Movement.GRANTED, at))
    return str(budget.id)
