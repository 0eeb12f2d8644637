"""How money comes back after a restore: reservations as the journal says, budgets as the ledger does."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from factory.evidence.journal_replay import Recorded, repairs, why
from factory.evidence.recovery import Leave, follows
from factory.kernel.bulkhead import Bulkhead
from factory.kernel.context import system
from factory.kernel.tenancy import scanning
from usage.commands import date_holds
from usage.models import Budget, LedgerEntry, Reservation, UsageRecord
from usage.pricing.money import ZERO
from usage.pricing.periods import NOTICE, begins_at
from usage.states import TERMINAL, Account

_SEEN_TO = ("NextMonthSeenTo", "NextMonthMissing")
_HOLD_ENDS = ("HoldReleased", "HoldExpired")


def _reservation(row: Reservation, recorded: Recorded) -> Mapping[str, Any]:
    """Return what it cost, as journaled with its end, and by how much that moved since."""
    ended, over = recorded.entered, recorded.state in TERMINAL
    adjusted = [entry.data for entry in recorded.story if entry.cause in ("UsageAdjusted", *_HOLD_ENDS)]
    freed = recorded.last(*_HOLD_ENDS) if over else None
    return {
        "extended": _sum(entry.data.get("by") for entry in recorded.story if entry.cause == "BudgetExtended"),
        "spent": _sum([ended.data["committedUsd"], *(data["spent"] for data in adjusted)]) if over else ZERO,
        "held": _sum([ended.data["heldUsd"], *(data["held"] for data in adjusted)]) if over else ZERO,
        "closed_at": (row.closed_at or ended.at) if over else None,
        "due_at": None if over else row.due_at,
        "hold_due_at": None if freed else row.hold_due_at,
        "hold_ended_at": freed.at if freed else None,
        "hold_ended_by": freed.actor if freed else "",
    }


def _usage(row: UsageRecord, recorded: Recorded) -> Mapping[str, Any]:
    """Return what it cost, where a person said so later; why, and by what evidence, stays theirs to say."""
    settled = recorded.last("UsageSettled")
    if settled is None:
        return {}
    return {
        "cost": Decimal(settled.data["amountUsd"]),
        "settled_at": settled.at,
        "settled_by": settled.actor,
    }


def _budget(row: Budget, recorded: Recorded) -> Mapping[str, Any]:
    """Return the ledger's figures: what each account held after its last entry."""
    entries = LedgerEntry.objects.filter(budget_id=row.id).order_by("sequence")
    held = {entry.account: entry.balance for entry in entries}
    figures = (Account.AVAILABLE, Account.COMMITTED, Account.SPENT, Account.HELD)
    granted = held.get(Account.GRANTED.value, ZERO)
    return {
        **{account.value: held.get(account.value, ZERO) for account in figures},
        "amount": -granted,
        "entries": len(entries),
        **_next_month(row, recorded),
    }


def _next_month(row: Budget, recorded: Recorded) -> Mapping[str, Any]:
    """Return whether it recurs, and when the month after it is seen to, unless that was done."""
    last = recorded.last("BudgetCreated", "BudgetRenewed", "RecurrenceChanged", *_SEEN_TO)
    changed = recorded.last("BudgetCreated", "BudgetRenewed", "RecurrenceChanged")
    updated = recorded.last("BudgetCreated", "BudgetRenewed", "RecurrenceChanged", "BudgetAmountChanged")
    done = last is not None and last.cause in _SEEN_TO
    return {
        "recurs": bool(changed.data.get("recurs", False)) if changed else row.recurs,
        "next_due_at": None if done else begins_at(row.period_end) - NOTICE,
        "updated_at": updated.at if updated else row.updated_at,
    }


def _sum(amounts: Any) -> Decimal:
    return sum((Decimal(amount) for amount in amounts if amount), ZERO)


# A closed reservation stays in its state whatever it comes to hold: its figures are those that were journaled
# with its end, and all by which they moved since.
_FIGURES = """
SELECT FROM factory_journalentry x WHERE x.entity_id = e.id HAVING count(x.detail->>'committedUsd') = 1 AND (
    sum(coalesce(x.detail->>'committedUsd', x.detail->>'spent', '0')::numeric),
    sum(coalesce(x.detail->>'heldUsd', x.detail->>'held', '0')::numeric)
) <> (e.spent, e.held)
"""


def date_open_holds(leave: Leave) -> int:
    """Date every open hold by the policy that came back: when one ends is no fact of the journal."""
    with scanning() as cursor:
        cursor.execute("SELECT DISTINCT tenant_id FROM usage_reservation")
        tenants = [tenant for (tenant,) in cursor.fetchall()]
    dated, alone = 0, Bulkhead("recover")
    for tenant in tenants:

        def tell(fault: Exception, told: str = f"holds of {tenant} have no date") -> None:
            leave(f"{told}: {why(fault)}")

        with alone.item(tenant, tenant, tell=tell):
            dated += date_holds(system(tenant, "Recovery"))
    return dated


def register() -> None:
    """Register what a restore of this app needs: how its rows come back."""
    repairs(
        "journal",
        Budget,
        _budget,
        behind="e.entries <> (SELECT count(*) FROM usage_ledgerentry l WHERE l.budget_id = e.id)",
    )
    repairs(
        "journal",
        Reservation,
        _reservation,
        behind="e.extended <> (SELECT coalesce(sum((x.detail->>'by')::numeric), 0) "
        "FROM factory_journalentry x WHERE x.entity_id = e.id AND x.cause = 'BudgetExtended') "
        f"OR EXISTS ({_FIGURES})",
    )
    repairs("journal", UsageRecord, _usage)
    follows("releases", "open holds, dated by the policy in force", date_open_holds)
