"""The clock of a run, by which `maxMinutes` counts: it runs, or it stands still because of something.

Several things may stop it at once, beginning and ending in any order. What the run itself knows of
(`because`) is noted when it changes; the suspensions of its project are looked up.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

APPROVAL, FROZEN, OPERATOR, SUSPENDED = "approval", "frozen", "operator", "suspended"
NOTHING = timedelta(0)

Span = tuple[datetime, datetime | None]
"""From when to when a project was suspended; without an end it still is."""


@dataclass(frozen=True, slots=True)
class Stop:
    """That a clock stands still: since when, and all that stops it, in order."""

    since: datetime
    because: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Clock:
    """Everything up to `since` is counted in `due`. From then on it stands still if there is a `because`,
    and otherwise whenever the project is suspended (`suspensions`, oldest first, none within another)."""

    due: datetime
    since: datetime
    because: tuple[str, ...] = ()
    suspensions: Sequence[Span] = ()

    def due_at(self, at: datetime) -> datetime:
        """Return when the time is over, as it stands at `at`: later by as long as the clock stood still."""
        if self.because:
            return self.due + max(at - self.since, NOTHING)
        return self.due + sum((_within(span, self.since, at) for span in self.suspensions), NOTHING)

    def left(self, at: datetime) -> timedelta:
        """Return how much time was left at `at`; negative once it is over."""
        return self.due_at(at) - at

    def is_over(self, at: datetime) -> bool:
        """Return whether the time is over. What is over stays over, whatever stops the clock afterwards."""
        return self.left(at) <= NOTHING

    def stop(self, at: datetime) -> Stop | None:
        """Return why the clock stands still at `at`, and since when; None while it runs."""
        suspended = self._suspended(at)
        if not self.because:
            return Stop(suspended, (SUSPENDED,)) if suspended is not None else None
        if suspended is None:
            return Stop(self.since, self.because)
        return Stop(min(self.since, suspended), tuple(sorted({*self.because, SUSPENDED})))

    def changed(self, because: Iterable[str], at: datetime) -> "Clock":
        """Return the same clock from `at` on, when this and no more stops it."""
        reasons = tuple(sorted(because))
        if reasons and self.because:  # it stands still as before, and nothing is to be counted
            return replace(self, because=reasons)
        return replace(self, due=self.due_at(at), since=at, because=reasons)

    def _suspended(self, at: datetime) -> datetime | None:
        for begin, end in self.suspensions:
            if begin <= at and (end is None or at < end):
                return begin
        return None


def _within(span: Span, since: datetime, until: datetime) -> timedelta:
    begin, end = span
    return max(min(end or until, until) - max(begin, since), NOTHING)
