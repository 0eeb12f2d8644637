"""The words of notifications: what is told, by which way, and where one stands."""

from typing import Final

from django.db.models import TextChoices

from factory.kernel.colours import Colour, ColouredChoices

BUDGET_ENDING: Final = "cost-usage.budgets.v1.budget-ending"
"""The news of a budget that ends with none after it. Its app stands beside this one."""
OVER_MONEY: Final = "finance"
"""The grant by which one decides over money; administrators do without it."""
SEND: Final = "notifications.send"
"""The job that sends what is due now; the schedule does it too if the hint is lost."""


class Kind(TextChoices):
    """Name the kinds of message. All but the last three are about one request for an approval."""

    REQUESTED = "requested"
    EXPIRING = "expiring"
    DECIDED = "decided"
    BREAK_GLASS = "break-glass"
    TOO_FEW = "too-few"
    BUDGET_ENDING = "budget-ending"
    TEST = "test"
    SIGN_IN = "sign-in"


ABOUT_NO_REQUEST: Final = (Kind.TEST, Kind.SIGN_IN, Kind.BUDGET_ENDING)
"""What somebody asked for (a test for themselves, or an administrator a member's way to a password), and
that a month has no budget."""


CHOOSABLE: Final = (
    Kind.REQUESTED,
    Kind.EXPIRING,
    Kind.DECIDED,
    Kind.BREAK_GLASS,
    Kind.TOO_FEW,
    Kind.BUDGET_ENDING,
)
"""What a person may do without, one by one. A test they ask for themselves."""

FOR_OPERATORS: Final = frozenset({Kind.TOO_FEW})
"""What nobody but an Operator is ever told of."""

ABOUT: Final = {
    Kind.REQUESTED: "A request waits for you: you may decide it",
    Kind.EXPIRING: "A request that you may decide has a quarter of its time left",
    Kind.DECIDED: "What you asked for was decided, or nobody answered in time",
    Kind.BREAK_GLASS: "A PlatformAdmin decided past you",
    Kind.TOO_FEW: "A request was opened that too few people can decide; only operators are told",
    Kind.BUDGET_ENDING: "No budget covers the coming month of your runs; only who can open one is told",
}


class Medium(TextChoices):
    EMAIL = "email"
    SERVICE = "service"


class NotificationState(ColouredChoices):
    """Name the states of a notification."""

    WAITING = "Waiting", Colour.WAIT
    SENT = "Sent", Colour.GOOD
    SET_ASIDE = "Set aside", Colour.BAD
    DROPPED = "Dropped", Colour.PLAIN
