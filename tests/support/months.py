"""The month in which the tests are. A budget is of one, and another may begin at any moment.

No test begins in the last seconds of a month, or of a day: what it does would be of two. Who lives longer
than one test, as a house that a whole module shares, has money in the month that follows, too.
"""

import time
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from factory.kernel.context import Context
from usage.commands import create_budget
from usage.pricing.periods import month_of

BEFORE_A_MONTH, BEFORE_A_DAY = timedelta(seconds=45), timedelta(seconds=5)
"""Longer than a test takes that looks at money, or at the day."""
BEFORE_A_MODULE = timedelta(minutes=4)
"""And longer than a module whose tests share what was made on its day (mark `one_day`)."""


def wait_past_a_boundary(*, module_of_one_day: bool = False) -> None:
    """Let a month, or a day, that is about to end be over first."""
    at = datetime.now(UTC)
    tomorrow = (at + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    needed = BEFORE_A_MONTH if tomorrow.day == 1 else BEFORE_A_DAY
    if tomorrow - at < (BEFORE_A_MODULE if module_of_one_day else needed):
        time.sleep((tomorrow - at).total_seconds() + 0.5)


class Funded:
    """A project that has its budget in whatever month it is asked for."""

    def __init__(self, ctx: Context, project_id: UUID, amount: str) -> None:
        self._ctx, self._project_id, self._amount = ctx, project_id, Decimal(amount)
        self._months = set[date]()
        self.keep()

    def keep(self) -> None:
        month = month_of(datetime.now(UTC))
        if month not in self._months:
            self._months.add(month)
            create_budget(self._ctx, project_id=self._project_id, month=month, amount=self._amount)
