"""Setting money aside before anything of a run starts."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from factory.kernel import clock
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.ids import uuid7
from factory.kernel.locking import lock_many
from factory.kernel.recording import record
from usage.events import BudgetReservationDenied, BudgetReserved
from usage.models import Budget, Reservation, ReservationHold
from usage.operations.ledger import Posting, post
from usage.operations.serial import one_at_a_time
from usage.pricing.money import amount_of, text_of
from usage.pricing.periods import label, month_of
from usage.selectors import ReservationView, in_scope, reservation_view, uncovered
from usage.states import Account, Movement, ReservationState

LIFETIME = timedelta(hours=24)
"""How long money waits for a run that does not dispatch."""


@operation
def reserve(ctx: Context, *, run_id: UUID, project_id: UUID, amount: Decimal | None) -> ReservationView:
    """Set `amount` aside in every budget over the project in the present month, or deny it with a reason.

    Exactly one reservation per run: asked again, it answers with the one that stands. The caller holds the
    run's lock. Emits BudgetReserved or BudgetReservationDenied; a denial is an answer, not an error. Raises
    `InvalidInput` for what is no amount of money.
    """
    one_at_a_time("reservation", [run_id])
    present = Reservation.objects.filter(run_id=run_id).first()
    if present is not None:
        return reservation_view(present)
    if amount is not None:
        amount = amount_of(amount, "/limits/maxCostUsd")
    budgets, at = lock_in_scope(project_id)
    reason = why_not(budgets, amount, at)
    facts = {"run_id": run_id, "project_id": project_id, "amount": amount, "created_at": at}
    if reason or amount is None:
        return _deny(ctx, facts, reason)
    return _set_aside(ctx, facts, budgets, amount)


def lock_in_scope(project_id: UUID) -> tuple[list[Budget], datetime]:
    """Return the locked budgets of the month that it is once they are locked: a wait may cross its end."""
    one_at_a_time("budgets", ["of the tenant"], shared=True)  # none is created between the look and the lock
    at = clock.now()
    while True:
        budgets = lock_many(in_scope(project_id, month_of(at)))
        held_at = clock.now()
        if month_of(held_at) == month_of(at):
            return budgets, held_at
        at = held_at


def why_not(budgets: Sequence[Budget], amount: Decimal | None, at: datetime) -> str:
    """Return why the amount cannot be set aside, and what to do about it; empty when it can."""
    if amount is None:
        return (
            "Neither the submission nor the policy says what the run may cost. "
            "Submit it again with limits.maxCostUsd."
        )
    if lacks := uncovered(budgets, month_of(at)):
        return (
            f"{lacks} Somebody with the grant finance, or an administrator, can create one "
            "(POST /factory/budgets); then submit the run again."
        )
    fault = not_enough(budgets, amount)
    advice = "Have the budget raised, or submit the run again with a lower limits.maxCostUsd."
    return f"{fault} {advice}" if fault else ""


def not_enough(budgets: Sequence[Budget], amount: Decimal) -> str:
    """Return which budget does not cover the amount, in a sentence; empty when all do."""
    for budget in budgets:
        if budget.available < amount:
            month = label(budget.period_start)
            whose = "project" if budget.project_id else "tenant"
            return (
                f"The {whose}'s budget for {month} has {text_of(budget.available)} {budget.currency} left, "
                f"and the run asks for {text_of(amount)}."
            )
    return ""


def _deny(ctx: Context, facts: dict[str, Any], reason: str) -> ReservationView:
    denied = Reservation(state=ReservationState.DENIED, reason=reason, closed_at=facts["created_at"], **facts)
    event = BudgetReservationDenied(
        reservation_id=denied.id,
        run_id=denied.run_id,
        tenant_id=ctx.tenant_id,
        project_id=denied.project_id,
        reason=reason,
    )
    record(ctx, denied, "BudgetDenied", event)
    return reservation_view(denied)


def _set_aside(
    ctx: Context, facts: dict[str, Any], budgets: Sequence[Budget], amount: Decimal
) -> ReservationView:
    expires_at = facts["created_at"] + LIFETIME
    made = Reservation(state=ReservationState.RESERVED, expires_at=expires_at, due_at=expires_at, **facts)
    event = reserved(ctx, made, expires_at)
    record(ctx, made, "BudgetReserved", event, detail={"budgets": [str(b.id) for b in budgets]})
    posting = Posting(uuid7(), Movement.RESERVED, facts["created_at"], made.id)
    ReservationHold.objects.bulk_create(
        ReservationHold(tenant_id=ctx.tenant_id, reservation_id=made.id, budget_id=budget.id)
        for budget in budgets
    )
    post(budgets, {Account.AVAILABLE: -amount, Account.COMMITTED: amount}, posting, covered=True)
    return reservation_view(made)


def reserved(ctx: Context, reservation: Reservation, expires_at: datetime) -> BudgetReserved:
    """Return the event of all that is set aside for a run."""
    return BudgetReserved(
        reservation_id=reservation.id,
        run_id=reservation.run_id,
        tenant_id=ctx.tenant_id,
        project_id=reservation.project_id,
        amount_usd=reservation.total,
        expires_at=expires_at,
    )
