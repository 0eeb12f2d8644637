"""The one place where money moves: entries that sum to 0, and the budget's figures in the same breath."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db.models import F

from factory.errors import Busy
from usage.models import Budget, LedgerEntry
from usage.money import ZERO, total
from usage.states import Account, Movement

Deltas = Mapping[Account, Decimal]


@dataclass(frozen=True, slots=True)
class Posting:
    """Why and when money moves, and for which reservation; one transaction over all its budgets."""

    transaction_id: UUID
    movement: Movement
    at: datetime
    reservation_id: UUID | None = None


class Unbalanced(RuntimeError):
    """A movement that creates or loses money: a defect of the caller."""


def post(budget: Budget, deltas: Deltas, posting: Posting, *, covered: bool = False) -> bool:
    """Move money between the accounts of a locked budget.

    With `covered`, only if what is available covers it, judged in the statement that takes it; says
    whether it moved.
    """
    moves = {account: delta for account, delta in deltas.items() if delta}
    if total(moves.values()) != 0:
        raise Unbalanced(f"{posting.movement}: the entries sum to {total(moves.values())}.")
    if not moves:
        return True
    if not _move_figures(budget, moves, covered):
        return False
    LedgerEntry.objects.bulk_create(_entries(budget, moves, posting))
    return True


def balance(budget: Budget, account: Account) -> Decimal:
    """What an account of the budget holds; the grant stands against its amount."""
    value: Decimal = -budget.amount if account == Account.GRANTED else getattr(budget, account.value)
    return value


def _move_figures(budget: Budget, moves: Deltas, covered: bool) -> bool:
    figures = {_column(account): _signed(account, delta) for account, delta in moves.items()}
    rows = Budget.objects.filter(pk=budget.pk, entries=budget.entries)
    if covered:
        rows = rows.filter(available__gte=-moves.get(Account.AVAILABLE, ZERO))
    changes = {name: F(name) + delta for name, delta in figures.items()}
    if rows.update(**changes, entries=F("entries") + len(moves)) != 1:
        if covered:
            return False
        raise Busy("The budget moved on while it was being written.")
    for name, delta in figures.items():
        setattr(budget, name, getattr(budget, name) + delta)
    budget.entries += len(moves)
    budget.remember()
    return True


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
