"""What rules say, in the words that pages, warnings and the terminal share."""

import re
from datetime import timedelta

from approvals.policy.patterns import ANYWHERE, where
from approvals.states import Effect, OnExpiry, UnknownUsage

SHORT = {
    Effect.ALLOW: "happens without asking",
    Effect.REQUIRE_APPROVAL: "a person decides first",
    Effect.DENY: "is refused",
}
BEFORE = {
    Effect.ALLOW: "it happened without asking",
    Effect.REQUIRE_APPROVAL: "a person decided first",
    Effect.DENY: "it was refused",
}
THEN = {OnExpiry.FAIL: "then it fails", OnExpiry.RE_REQUEST: "then it is asked once more"}
"""What becomes of a request that nobody answers."""
UNKNOWN = {
    UnknownUsage.FAIL: "fails",
    UnknownUsage.ASK: "asks a person whether it may go on",
    UnknownUsage.IGNORE: "goes on, as if it had cost nothing",
}
UNKNOWN_BEFORE = {
    UnknownUsage.FAIL: "it failed",
    UnknownUsage.ASK: "it asked a person whether it may go on",
    UnknownUsage.IGNORE: "it went on",
}
"""What becomes of a run that has used something of unknown cost."""
_ANYWHERE = re.compile(rf"(?<=rule )(\d+: [a-z-]+) in {re.escape(ANYWHERE)}(?=[;)]|$)")
"""A rule for every environment, as verdicts and the records of requests name it."""
_NOBODY = re.compile(
    r"(?:\d+ people, each )?nobody: the rules and the node name no role in common, of the project, "
    r"never who(?:ever)? asked for it"
)
"""Where no role is left that could decide, as they say it by the pattern of all others."""


def format_rule(told: str) -> str:
    """Return a text that names rules as records do, for people; records and the API keep it as it is."""
    told = _NOBODY.sub("nobody, for the rules and the node name no role in common", told)
    return _ANYWHERE.sub(rf"\1 {where(ANYWHERE)}", told)


def duration(time: timedelta) -> str:
    """Return how long a request waits, or an approval holds: whole days from two on, else hours."""
    hours = time.total_seconds() / 3600
    return f"{hours / 24:g} days" if hours >= 48 and hours % 24 == 0 else f"{hours:g} h"


def hours(count: float) -> str:
    """Return `duration` of so many hours, as documents write them."""
    return duration(timedelta(hours=count))
