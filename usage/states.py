"""What budgets, reservations, prices and usage can be, and how they move."""

from enum import StrEnum

from factory.kernel.colours import Colour, ColouredChoices
from factory.kernel.lifecycle import Edge, Lifecycle

BUDGET_RESERVED = "cost-usage.reservations.v1.budget-reserved"
BUDGET_DENIED = "cost-usage.reservations.v1.budget-reservation-denied"
RESERVATION_SETTLED = "cost-usage.reservations.v1.reservation-settled"
USAGE_RECORDED = "cost-usage.usage.v1.usage-recorded"
BUDGET_ENDING = "cost-usage.budgets.v1.budget-ending"
USAGE_RECONCILED = "cost-usage.usage.v1.usage-reconciled"


class BudgetState(ColouredChoices):
    OPEN = "Open", Colour.BUSY


class PricingState(ColouredChoices):
    PUBLISHED = "Published", Colour.GOOD


class ReservationState(ColouredChoices):
    RESERVED = "Reserved", Colour.BUSY
    DENIED = "Denied", Colour.BAD
    SETTLED = "Settled", Colour.GOOD
    RELEASED = "Released", Colour.PLAIN
    EXPIRED = "Expired", Colour.BAD


class UsageState(ColouredChoices):
    ESTIMATED = "Estimated", Colour.BUSY
    CONFIRMED = "Confirmed", Colour.GOOD
    UNCERTAIN = "Uncertain", Colour.DOUBT


class Account(StrEnum):
    """List where a budget's money can be. `granted` is its source: it stands at minus the budget's amount."""

    GRANTED = "granted"
    AVAILABLE = "available"
    COMMITTED = "committed"
    SPENT = "spent"
    HELD = "held"


ACCOUNT_WORDS = {
    Account.GRANTED: "granted",
    Account.AVAILABLE: "left",
    Account.COMMITTED: "reserved",
    Account.SPENT: "spent",
    Account.HELD: "held",
}
"""What people call the accounts, as the parts of a budget are called on its page."""


class Movement(StrEnum):
    """List why money moved between the accounts of a budget."""

    GRANTED = "Granted"
    AMOUNT_CHANGED = "AmountChanged"
    RESERVED = "Reserved"
    EXTENDED = "Extended"
    SETTLED = "Settled"
    RELEASED = "Released"
    EXPIRED = "Expired"
    ADJUSTED = "Adjusted"
    HOLD_ENDED = "HoldEnded"


class ReceiptKind(StrEnum):
    MODEL = "model"
    TOOL = "tool"
    EFFECT = "effect"


ACTIVE = frozenset({ReservationState.RESERVED})
TERMINAL = frozenset(ReservationState) - ACTIVE
FUNDED = frozenset(ReservationState) - {ReservationState.DENIED}
"""States of a reservation that holds, or has held, money of budgets."""

BUDGET = Lifecycle(
    "budget",
    edges=(
        Edge("", BudgetState.OPEN, causes=("BudgetCreated", "BudgetRenewed")),
        Edge(
            BudgetState.OPEN,
            BudgetState.OPEN,
            causes=("BudgetAmountChanged", "RecurrenceChanged", "NextMonthSeenTo"),
        ),
        Edge(BudgetState.OPEN, BudgetState.OPEN, causes=("NextMonthMissing",), events=(BUDGET_ENDING,)),
    ),
)
PRICING = Lifecycle(
    "pricing-revision", edges=(Edge("", PricingState.PUBLISHED, causes=("PricingRevisionPublished",)),)
)
RESERVATION = Lifecycle(
    "reservation",
    edges=(
        Edge("", ReservationState.RESERVED, causes=("BudgetReserved",), events=(BUDGET_RESERVED,)),
        Edge(
            ReservationState.RESERVED,
            ReservationState.RESERVED,
            causes=("BudgetExtended",),
            events=(BUDGET_RESERVED,),
        ),
        Edge("", ReservationState.DENIED, causes=("BudgetDenied",), events=(BUDGET_DENIED,)),
        Edge(
            ReservationState.RESERVED,
            ReservationState.SETTLED,
            causes=("RunEnded",),
            events=(RESERVATION_SETTLED,),
        ),
        Edge(
            ReservationState.RESERVED,
            ReservationState.RELEASED,
            causes=("RunEndedBeforeDispatch",),
            events=(RESERVATION_SETTLED,),
        ),
        Edge(
            ReservationState.RESERVED,
            ReservationState.EXPIRED,
            causes=("ReservationExpired",),
            events=(RESERVATION_SETTLED,),
        ),
        *(
            Edge(state, state, causes=("UsageAdjusted", "HoldReleased", "HoldExpired"))
            for state in (ReservationState.SETTLED, ReservationState.RELEASED, ReservationState.EXPIRED)
        ),
    ),
)
USAGE = Lifecycle(
    "usage-record",
    edges=(
        *(Edge("", state, causes=("ReceiptRecorded",), events=(USAGE_RECORDED,)) for state in UsageState),
        Edge(
            UsageState.UNCERTAIN, UsageState.CONFIRMED, causes=("UsageSettled",), events=(USAGE_RECONCILED,)
        ),
    ),
)
