"""What was used in a time, added up by one thing: one look at an index of sums, whatever the number of calls.

Not the calls are read but their sums by run, model and day, and of those about `MOST_SUMS` at most, which
takes a fraction of a second: of a longer time only the last days are answered, and the answer says from when
on. The newest day on which anything was used is answered whole, even where it alone is more than that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from operator import itemgetter
from typing import Any
from uuid import UUID

from django.db import connection

from factory.kernel.tenancy import active

MOST_SUMS = 100_000
MOST_GROUPS = 200
LONGEST = 366
"""Days of one question."""

KEYS: dict[str, tuple[str, ...]] = {
    "model": ("kind", "provider", "name"),
    "workflow": ("workflow_id",),
    "release": ("release_id",),
    "project": ("project_id",),
    "day": (),
}

_FIGURES = ("calls", "uncertain", "cost", "estimated", "input_tokens", "output_tokens")
_ADDED = ", ".join(f"sum({name}) AS {name}" for name in _FIGURES)
_SUMS = """
SELECT {keys}day, {has_key} AS has_key, grouping(day) = 0 AS has_day, {added}
FROM (
    SELECT {keys}day, {added} FROM usage_usagesum
    WHERE tenant_id = %(tenant)s AND day >= %(start)s AND day < %(end)s {project} GROUP BY {keys}day
) by_day
GROUP BY GROUPING SETS ({sets}(day), ())
ORDER BY has_key, sum(cost) DESC, sum(calls) DESC {ties} LIMIT %(most)s
"""
"""Each row is added up once, by key and day; by one of the two, and in all, only what came of that."""
_TOO_FAR_BACK = """
WITH sums AS NOT MATERIALIZED (
    SELECT day FROM usage_usagesum
    WHERE tenant_id = %(tenant)s AND day >= %(start)s AND day < %(end)s {project}
)
SELECT day, (SELECT max(day) FROM sums) FROM sums ORDER BY day DESC OFFSET %(most)s LIMIT 1
"""
"""The day on which the bound is passed, going back, and the newest on which anything was used."""
_OF_ONE = "AND project_id = %(project)s"


@dataclass(frozen=True, slots=True)
class Used:
    """Sums of calls. `cost` is what is known, `estimated` the part of it that no statement confirmed;
    `uncertain` counts the calls whose cost nobody knows."""

    calls: int
    uncertain: int
    cost: Decimal
    estimated: Decimal
    input_tokens: Decimal
    output_tokens: Decimal


NOTHING = Used(0, 0, Decimal(0), Decimal(0), Decimal(0), Decimal(0))


@dataclass(frozen=True, slots=True)
class Explored:
    """The answer, for the days in `[start, end)`: `start` is later than asked for where it was too much.

    `groups` begin with what cost most, and are at most `MOST_GROUPS` (`more` says that there are others);
    `days` are those on which anything was used. `crowded` says that the first day shown has more sums than
    are read at once by intention, and is shown whole all the same.
    """

    start: date
    end: date
    groups: Sequence[tuple[tuple[Any, ...], Used]]
    days: Sequence[tuple[date, Used]]
    total: Used
    more: bool
    crowded: bool


def explore(by: str, project_id: UUID | None, start: date, end: date) -> Explored:
    """Sum what calls on the days (UTC) in `[start, end)` used: by one of `KEYS`, by the day, and in all."""
    scope = {"tenant": active().tenant_id, "project": project_id, "end": end}
    crowded = False
    with connection.cursor() as cursor:
        bounded = _TOO_FAR_BACK.format(project=_OF_ONE if project_id is not None else "")
        cursor.execute(bounded, scope | {"start": start, "most": MOST_SUMS})
        cut = cursor.fetchone()
        if cut is not None:
            passed, newest = cut
            crowded = passed == newest
            start = min(passed + timedelta(days=1), newest)
        most = 1 + LONGEST + MOST_GROUPS + 1
        cursor.execute(_statement(by, project_id), scope | {"start": start, "most": most})
        return _explored(by, start, end, cursor.fetchall(), crowded=crowded)


def _statement(by: str, project_id: UUID | None) -> str:
    """Only words of ours are put into it."""
    keys = ", ".join(KEYS[by])
    return _SUMS.format(
        added=_ADDED,
        keys=f"{keys}, " if keys else "",
        has_key=f"grouping({KEYS[by][0]}) = 0" if keys else "false",
        project=_OF_ONE if project_id is not None else "",
        sets=f"({keys}), " if keys else "",
        ties=f", {keys}" if keys else "",
    )


def _explored(by: str, start: date, end: date, rows: Sequence[tuple[Any, ...]], *, crowded: bool) -> Explored:
    width = len(KEYS[by])
    groups: list[tuple[tuple[Any, ...], Used]] = []
    days: list[tuple[date, Used]] = []
    total = NOTHING
    for row in rows:
        key, (day, has_key, has_day, calls, uncertain, *rest) = row[:width], row[width:]
        if calls is None:
            continue  # the sum of nothing
        used = Used(int(calls), int(uncertain), *rest)
        if has_key:
            groups.append((key, used))
        elif has_day:
            days.append((day, used))
        else:
            total = used
    days.sort(key=itemgetter(0))
    return Explored(start, end, groups[:MOST_GROUPS], days, total, len(groups) > MOST_GROUPS, crowded)
