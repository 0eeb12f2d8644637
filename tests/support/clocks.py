"""Time that a test moves by hand: days pass in a moment, and an end is met to the microsecond."""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

NAMES = ("factory.kernel.clock", "projects.commands.suspension")
"""Where the time of approvals, reservations and suspensions is read."""
INSTANT = timedelta(microseconds=1)


@dataclass
class Watch:
    """What the house takes for the time."""

    at: datetime

    def now(self) -> datetime:
        return self.at

    def pass_(self, **by: float) -> datetime:
        self.at += timedelta(**by)
        return self.at


def watch(monkeypatch: pytest.MonkeyPatch, at: datetime) -> Watch:
    """The house's clock stands at `at` until it is moved; queries that read the time themselves are right."""
    made = Watch(at)
    for name in NAMES:
        monkeypatch.setattr(sys.modules[name], "now", made.now)
    return made


def application_clock(seconds: float) -> "time_machine.travel":
    """In the block this machine's own clock is ahead of the database's by so much, or behind it."""
    return time_machine.travel(datetime.now(UTC) + timedelta(seconds=seconds), tick=True)
