"""The ledger of a budget in plain words: one line for each movement, the newest first."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from factory.kernel.amounts import number, usd
from usage.models import Budget, LedgerEntry
from usage.permissions import is_visible
from usage.pricing.money import ZERO
from usage.states import ACCOUNT_WORDS, Account, Movement

ENTRIES = 60
MOST_OF_ONE = 4
"""No movement has more entries than there are accounts that it can touch at once."""


@dataclass(frozen=True, slots=True)
class MovementLine:
    """One movement: what happened, what was left after it (where it touched that), and its signed entries.

    A run that the reader is not told of is one `elsewhere`, which draws on the same money.
    """

    at: datetime
    words: str
    run_id: UUID | None
    elsewhere: bool
    left: Decimal | None
    entries: str
    sequence: int


@dataclass(frozen=True, slots=True)
class MovementPage:
    """A page of movements; `before` leads to the older ones, and is None at the first movement of all."""

    lines: Sequence[MovementLine]
    before: int | None


def movements(budget: Budget, project_id: UUID | None, before: int | None = None) -> MovementPage:
    """The newest movements of a budget, or those before an entry: one range of an index, however many."""
    rows = LedgerEntry.objects.filter(budget=budget)
    if before is not None:
        rows = rows.filter(sequence__lt=before)
    found = list(rows.select_related("reservation").order_by("-sequence")[: ENTRIES + MOST_OF_ONE])
    by_movement: dict[UUID, list[LedgerEntry]] = defaultdict(list)
    for row in found:
        by_movement[row.transaction_id].append(row)
    groups = list(by_movement.values())
    if len(found) == ENTRIES + MOST_OF_ONE:
        groups.pop()  # it may be cut
    lines = [_line(group[::-1], project_id) for group in groups]
    last = lines[-1].sequence if lines else None
    return MovementPage(lines, last if last is not None and last > 1 else None)


def _line(entries: Sequence[LedgerEntry], project_id: UUID | None) -> MovementLine:
    first = entries[0]
    run = first.reservation
    elsewhere = run is not None and not is_visible(run.project_id, project_id)
    moved = {Account(each.account): each.amount for each in entries}
    left = next((each.balance for each in entries if each.account == Account.AVAILABLE), None)
    told = ", ".join(f"{ACCOUNT_WORDS[account]} {_signed(amount)}" for account, amount in moved.items())
    return MovementLine(
        at=first.posted_at,
        words=words(Movement(first.movement), moved, entries),
        run_id=run.run_id if run and not elsewhere else None,
        elsewhere=elsewhere,
        left=left,
        entries=told,
        sequence=first.sequence,
    )


def _signed(amount: Decimal) -> str:
    return f"{'+' if amount > 0 else '−'}{number(abs(amount))}"


def words(movement: Movement, moved: dict[Account, Decimal], entries: Sequence[Any]) -> str:
    """Return what happened, in a sentence."""
    more = moved.get(Account.AVAILABLE, ZERO)
    spent, held = moved.get(Account.SPENT, ZERO), moved.get(Account.HELD, ZERO)
    if movement == Movement.GRANTED:
        return f"The budget was opened with {usd(more)}."
    if movement == Movement.AMOUNT_CHANGED:
        whole = next((-each.balance for each in entries if each.account == Account.GRANTED), ZERO)
        return f"The budget was {'raised' if more > 0 else 'lowered'} by {usd(abs(more))} to {usd(whole)}."
    if movement == Movement.RESERVED:
        return f"{usd(-more)} were set aside for a run."
    if movement == Movement.EXTENDED:
        return f"{usd(-more)} more were set aside for a run."
    if movement == Movement.ADJUSTED:
        return _adjusted(spent, held)
    if movement == Movement.HOLD_ENDED:
        return f"{usd(-held)} are not kept back any more: the cost of some calls stays unknown."
    return _ended(movement, spent, held, more)


_ENDS = {
    Movement.SETTLED: "A run ended",
    Movement.RELEASED: "A run ended before it began",
    Movement.EXPIRED: "No worker took a run in time",
}


def _ended(movement: Movement, spent: Decimal, held: Decimal, more: Decimal) -> str:
    """The end of a reservation: where its money went."""
    parts = [f"{usd(spent)} spent"] if spent or movement == Movement.SETTLED else []
    parts += [f"{usd(held)} kept back for calls of unknown cost"] if held else []
    parts += [f"{usd(more)} free again"] if more > 0 else []
    parts += [f"{usd(-more)} more than was set aside"] if more < 0 else []
    return f"{_ENDS[movement]}: {', '.join(parts)}."


def _adjusted(spent: Decimal, held: Decimal) -> str:
    """Return what came after the end of a run."""
    parts = [f"{usd(abs(spent))} {'more' if spent > 0 else 'less'} spent"] if spent else []
    parts += [f"{usd(abs(held))} {'more' if held > 0 else 'no longer'} kept back"] if held else []
    return f"Usage of a run became known after its end: {', '.join(parts) or 'nothing changed'}."
