"""What this app tells: money set aside, refused, given back, and usage that was paid for."""

from datetime import datetime
from decimal import Decimal
from typing import Literal
from uuid import UUID

from factory.kernel.events import Event, event
from usage import states


@event(states.BUDGET_RESERVED)
class BudgetReserved(Event):
    """Every budget in the run's scope holds the amount for it until `expiresAt`, or until it dispatches.

    Told again, with the whole amount, when more is set aside for a run that has begun.
    """

    reservation_id: UUID
    run_id: UUID
    tenant_id: str
    project_id: UUID
    amount_usd: Decimal
    expires_at: datetime


@event(states.BUDGET_DENIED)
class BudgetReservationDenied(Event):
    """No money was set aside for the run; `reason` says why, and what a person can do."""

    reservation_id: UUID
    run_id: UUID
    tenant_id: str
    project_id: UUID
    reason: str


@event(states.RESERVATION_SETTLED)
class ReservationSettled(Event):
    """A reservation ended. `committedUsd` became spending, `heldUsd` stays set aside for usage of unknown
    cost, and `releasedUsd` went back to the budgets."""

    reservation_id: UUID
    run_id: UUID
    tenant_id: str
    state: Literal["Settled", "Released", "Expired"]
    committed_usd: Decimal
    released_usd: Decimal
    held_usd: Decimal


@event(states.USAGE_RECORDED)
class UsageRecorded(Event):
    """A receipt became usage. A cost that nobody knows is null, never zero."""

    usage_id: UUID
    run_id: UUID
    tenant_id: str
    project_id: UUID
    step_id: UUID
    attempt_id: UUID
    receipt_id: str
    kind: str
    provider: str
    name: str
    state: Literal["Estimated", "Confirmed", "Uncertain"]
    amount_usd: Decimal | None
    pricing_revision: str | None
    occurred_at: datetime


@event(states.USAGE_RECONCILED)
class UsageReconciled(Event):
    """The cost of usage became known after it was recorded, and is final; `by` says from whom."""

    usage_id: UUID
    run_id: UUID
    tenant_id: str
    project_id: UUID
    receipt_id: str
    state: Literal["Confirmed"]
    amount_usd: Decimal
    by: Literal["person"]


@event(states.BUDGET_ENDING)
class BudgetEnding(Event):
    """A budget that runs draw on ends, and no budget covers the month after it: `nextMonth`, such as 2026-12.

    Told once for a budget, seven days before its end. A null `projectId` is that of the whole tenant.
    """

    budget_id: UUID
    tenant_id: str
    project_id: UUID | None
    next_month: str
    ends_at: datetime
