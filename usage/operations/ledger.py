"""The one place where money moves: entries that sum to 0, and the budget's figures in the same breath."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db.models import F

from usage.models import Budget, LedgerEntry
from usage.pricing.money import ZERO, total
from usage.states import Account, Movement

Deltas = Mapping[Account, Decimal]


@dataclass(frozen=True, slots=True)
class Posting:
    """Say why and when money moves, and for which reservation; one transaction over all its budgets."""

    transaction_id: UUID
    movement: Movement
    at: datetime
    reservation_id: UUID | None = None


class BudgetMoved(RuntimeError):
    """A budget was not as its lock showed it, or would be overdrawn: a defect of the caller."""


class Unbalanced(RuntimeError):
    """A movement that creates or loses money: a defect of the caller."""


def post(budgets: Sequence[Budget], deltas: Deltas, posting: Posting, *, covered: bool = False) -> None:
    """Move the same money between the accounts of each of these locked budgets.

    With `covered` the statement that takes from what is available takes it only if it is there.
    """
    moves = {account: delta for account, delta in deltas.items() if delta}
    if total(moves.values()) != 0:
        raise Unbalanced(f"{posting.movement}: the entries sum to {total(moves.values())}.")
    if not moves:
        return
    entries: list[LedgerEntry] = []
    for budget in budgets:
        _move_figures(budget, moves, covered)
        entries += _entries(budget, moves, posting)
    LedgerEntry.objects.bulk_create(entries)


def balance(budget: Budget, account: Account) -> Decimal:
    """Return what an account of the budget holds; the grant stands against its amount."""
    value: Decimal = -budget.amount if account == Account.GRANTED else getattr(budget, account.value)
    return value


def _move_figures(budget: Budget, moves: Deltas, covered: bool) -> None:
    figures = {_column(account): _signed(account, delta) for account, delta in moves.items()}
    rows = Budget.objects.filter(pk=budget.pk, entries=budget.entries)
    if covered:
        rows = rows.filter(available__gte=-moves.get(Account.AVAILABLE, ZERO))
    changes = {name: F(name) + delta for name, delta in figures.items()}
    if rows.update(**changes, entries=F("entries") + len(moves)) != 1:
        raise BudgetMoved(f"Budget {budget.pk} is not as its lock showed it.")
    for name, delta in figures.items():
        setattr(budget, name, getattr(budget, name) + delta)
    budget.entries += len(moves)
    budget.remember()


def _entries(budget: Budget, moves: Deltas, posting: Posting) -> list[LedgerEntry]:
    first = budget.entries - len(moves) + 1
    return [
        LedgerEntry(
            tenant_id=budget.tenant_id,
            transaction_id=posting.transaction_id,
            budget_id=budget.pk,
            sequence=sequence,
            account=account,
            amount=delta,
            balance=balance(budget, account),
            movement=posting.movement,
            reservation_id=posting.reservation_id,
            posted_at=posting.at,
        )
        for sequence, (account, delta) in enumerate(moves.items(), start=first)
    ]


def _column(account: Account) -> str:
    return "amount" if account == Account.GRANTED else account.value


def _signed(account: Account, delta: Decimal) -> Decimal:
    return -delta if account == Account.GRANTED else delta
