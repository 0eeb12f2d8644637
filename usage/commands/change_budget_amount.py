from decimal import Decimal
from uuid import UUID

from factory.kernel import clock
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import NotFound, VersionMismatch
from factory.kernel.ids import uuid7
from factory.kernel.locking import lock
from factory.kernel.recording import record
from usage.errors import BudgetBelowCommitments
from usage.models import Budget
from usage.operations.ledger import Posting, post
from usage.permissions import require_over_money
from usage.pricing.money import text_of
from usage.states import Account, Movement


@command("ChangeBudgetAmount")
def change_budget_amount(ctx: Context, *, budget_id: UUID, amount: Decimal, version: int) -> str:
    """Raise or lower a budget to `amount`.

    Guards: it is in the caller's scope (404); the grant finance or an administrator's role there (403);
    `version` is the current one (`VersionMismatch`, 409); the amount covers what is committed, spent and
    held (`BudgetBelowCommitments`, 422). Emits nothing; the ledger carries the movement.
    """
    budget = lock(Budget, budget_id, missing=NotFound("There is no such budget here."))
    if ctx.project_id is not None and budget.project_id not in (None, ctx.project_id):
        raise NotFound("There is no such budget here.")
    require_over_money(ctx, whole_tenant=None in (budget.project_id, ctx.project_id))
    if version != budget.version:
        raise VersionMismatch(f"The budget is at version {budget.version}, not {version}.")
    promised = budget.committed + budget.spent + budget.held
    if amount < promised:
        raise BudgetBelowCommitments(f"{text_of(promised)} {budget.currency} are already spent or promised.")
    at, more = clock.now(), amount - budget.amount
    post(
        [budget],
        {Account.GRANTED: -more, Account.AVAILABLE: more},
        Posting(uuid7(), Movement.AMOUNT_CHANGED, at),
    )
    budget.change_amount(at=at)
    record(ctx, budget, "BudgetAmountChanged", detail={"amount": amount})
    return str(budget.id)
