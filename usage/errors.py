"""What this app refuses."""

from factory.kernel.errors import Conflict, Forbidden, Unprocessable


class BudgetExists(Conflict):
    """One budget per scope and month: change its amount instead."""

    code = "budget-exists"
    title = "There is already a budget for this month"


class BudgetBelowCommitments(Unprocessable):
    """A budget cannot fall below what it has already spent or promised."""

    code = "budget-below-commitments"
    title = "The amount is below what is already spent or promised"


class NotOverMoney(Forbidden):
    """The caller holds neither the grant `finance` nor an administrator's role here."""

    code = "insufficient-role"
    title = "The caller has no say over money here"
    audited = True


class ReservationNotLive(Conflict):
    """The run has no money set aside any more, so nothing of it may start."""

    code = "reservation-not-live"
    title = "The run's budget reservation is not live"


class PriceInThePast(Unprocessable):
    """Prices hold from now on or later: what was already priced is never priced again."""

    code = "price-in-the-past"
    title = "A pricing revision cannot begin in the past"


class RunNotEnded(Conflict):
    """Refuse to settle what is set aside for a run at work: that is no hold yet."""

    code = "run-not-ended"
    title = "The run has not ended"


class HoldOver(Conflict):
    """Nothing is held, or left to settle: it was ended before, or there never was anything."""

    code = "hold-over"
    title = "Nothing is left to settle here"


class UsageOfSeveralModels(Unprocessable):
    """A figure is that of one model or tool, so that each call gets a share of what its own kind cost."""

    code = "usage-of-several-models"
    title = "The usage is of several models or tools"


class NextMonthOpen(Conflict):
    """Recurrence goes from month to month: it is that of the newest one."""

    code = "next-month-open"
    title = "A later month is open already"
