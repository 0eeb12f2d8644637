"""What tests of money share: a world with budgets, and the operations under commands of their own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from factory.kernel.commanding import Command
from factory.kernel.context import Context
from factory.kernel.ids import uuid7
from factory.kernel.tenancy import reading
from tests.support.world import World, world
from usage import operations, selectors
from usage.commands import create_budget, establish_pricing
from usage.models import Budget, LedgerEntry
from usage.pricing.periods import month_of
from usage.selectors import ReservationView

P = ParamSpec("P")
R = TypeVar("R")
RELEASE = UUID("0190" + 28 * "0")
STARTED = datetime.now(UTC) - timedelta(seconds=1)


def in_a_command(body: Callable[Concatenate[Context, P], R]) -> Command[P, R]:
    """A command that stands in for those of the app above. It joins no registry, and borrows a permission."""
    return Command("ExpireReservation", body, audited=True, strict=True)


@in_a_command
def reserve(ctx: Context, *, run_id: UUID, project_id: UUID, amount: Decimal | None) -> ReservationView:
    return operations.reserve(ctx, run_id=run_id, project_id=project_id, amount=amount)


@in_a_command
def confirm_live(ctx: Context, *, run_id: UUID) -> ReservationView:
    return operations.confirm_live(ctx, run_id)


@in_a_command
def extend(ctx: Context, *, run_id: UUID, to: Decimal) -> str:
    return operations.extend(ctx, run_id=run_id, to=to)


@in_a_command
def settle(ctx: Context, *, run_id: UUID) -> ReservationView | None:
    return operations.settle(ctx, run_id)


@in_a_command
def release(
    ctx: Context, *, run_id: UUID, cause: str = "CancelRequestedBeforeDispatch"
) -> ReservationView | None:
    return operations.release(ctx, run_id, cause)


@in_a_command
def record_receipts(ctx: Context, /, **where: Any) -> int:
    receipts = [
        operations.read_receipt(each, f"/{index}") for index, each in enumerate(where.pop("receipts"))
    ]
    return operations.record_receipts(ctx, receipts=receipts, **where)


@dataclass
class Money:
    """A tenant with prices, and one project whose runs cost something."""

    world: World
    project: UUID = field(init=False)
    ctx: Context = field(init=False)

    def __post_init__(self) -> None:
        self.project = self.world.project
        self.ctx = self.world.system("test")

    def budget(self, amount: str, *, tenant_wide: bool = False, month: date | None = None) -> UUID:
        project = None if tenant_wide else self.project
        made = create_budget(
            self.ctx, project_id=project, month=month or this_month(), amount=Decimal(amount)
        )
        return UUID(made)

    def reserve(self, amount: str | None, run_id: UUID | None = None) -> ReservationView:
        wanted = None if amount is None else Decimal(amount)
        return reserve(self.ctx, run_id=run_id or uuid7(), project_id=self.project, amount=wanted)

    def dispatched(self, amount: str) -> UUID:
        """A run whose money is set aside and that has begun."""
        reservation = self.reserve(amount)
        confirm_live(self.ctx, run_id=reservation.run_id)
        return reservation.run_id

    def extend(self, run_id: UUID, to: str) -> str:
        return extend(self.ctx, run_id=run_id, to=Decimal(to))

    def receive(self, run_id: UUID, receipts: Sequence[Any], **times: Any) -> int:
        where: dict[str, Any] = {"run_id": run_id, "project_id": self.project, "agent_id": "assessor"}
        where |= {"step_id": uuid7(), "attempt_id": uuid7(), "receipts": receipts}
        where |= {"workflow_id": "repository-assessment", "release_id": RELEASE}
        where |= {"dispatched_at": STARTED, "settled_at": None}
        return record_receipts(self.ctx, **where | times)

    def settle(self, run_id: UUID) -> ReservationView | None:
        return settle(self.ctx, run_id=run_id)

    def figures(self, budget_id: UUID) -> tuple[str, ...]:
        """available, committed, spent and held, as text."""
        with reading(self.ctx):
            row = Budget.objects.get(pk=budget_id)
            return tuple(str(v.normalize() + 0) for v in (row.available, row.committed, row.spent, row.held))

    def ledger(self, budget_id: UUID) -> list[tuple[str, str, str]]:
        with reading(self.ctx):
            rows = LedgerEntry.objects.filter(budget_id=budget_id).order_by("sequence")
            return [(row.movement, row.account, f"{row.amount.normalize():+f}") for row in rows]

    def reservation(self, run_id: UUID) -> ReservationView | None:
        with reading(self.ctx):
            return selectors.reservation_of(run_id)


def money(tenant_id: str) -> Money:
    made = Money(world(tenant_id))
    establish_pricing(made.ctx)
    return made


def this_month() -> date:
    return month_of(datetime.now(UTC))


def receipt(**changes: Any) -> dict[str, Any]:
    """A call of a priced tool: 0.000100 for the call and 0.000020 for a second."""
    usual: dict[str, Any] = {
        "receiptId": str(uuid7()),
        "kind": "tool",
        "provider": "factory-tools",
        "name": "git-log",
    }
    usual |= {"quantities": {"calls": 1, "seconds": 2.5}, "occurredAt": datetime.now(UTC).isoformat()}
    return usual | {"details": {}} | changes


def costing(amount: str, **changes: Any) -> dict[str, Any]:
    """A call whose provider itself named its price."""
    return receipt(cost={"amount": amount, "currency": "USD"}, quantities=None, **changes)
