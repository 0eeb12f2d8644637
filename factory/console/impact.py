"""What an act would touch, row by row: the apps above say it of their own things, before it is done.

`factory.kernel.impact` counts for the API; here stands what a person looks at before they press the button.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from django.db.models import QuerySet

from factory.kernel.context import Context

MOST = 100
"""So many are counted: more is no more of a warning."""
SHOWN = 12

Kind = Literal["release"]


@dataclass(frozen=True, slots=True)
class ImpactRow:
    """One thing that the reader may open: how it stands, what it is, and what becomes of it."""

    state: str
    words: str
    url: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Touched:
    """Things of one sort. `rows` are those within the reader's place; `elsewhere` says how many are not."""

    name: str
    total: int
    says: str
    rows: Sequence[ImpactRow] = ()
    elsewhere: int = 0

    @property
    def count(self) -> str:
        """Return how many, within bounds."""
        return bounded(self.total)

    @property
    def count_elsewhere(self) -> str:
        """Return how many lie outside of the reader's place, within bounds."""
        return bounded(self.elsewhere)

    @property
    def left_out(self) -> str:
        """Return how many of the reader's place are counted and not listed."""
        here = self.total - self.elsewhere
        left = here - len(self.rows)
        least = "at least " if here > MOST else ""
        return f"{least}{left}" if left > 0 else ""


def bounded(count: int) -> str:
    """A number of which no more than `MOST` and one were counted."""
    return f"{MOST} and more" if count > MOST else str(count)


def counted(ctx: Context, rows: QuerySet[Any]) -> tuple[list[UUID], int]:
    """Those in the chosen project, or all where none is chosen, and how many lie elsewhere; each bounded.

    Counted apart, so that the others never stand in for the reader's own. In no order: an order would have
    the database look through all that there ever were.
    """
    rows = rows.order_by().values_list("pk", flat=True)
    if ctx.project_id is None:
        return list(rows[: MOST + 1]), 0
    here = list(rows.filter(project_id=ctx.project_id)[: MOST + 1])
    return here, len(rows.exclude(project_id=ctx.project_id)[: MOST + 1])


Fill = Callable[[Context, UUID, Collection[UUID]], Sequence[Touched]]
_fills: dict[str, list[Fill]] = {}


def touches(kind: Kind) -> Callable[[Fill], Fill]:
    """Declare what an act on such a thing touches above.

    Called inside a reading transaction with the reader's scope, what the act is about, and everything that it
    reaches, which is at least that.
    """

    def declare(fill: Fill) -> Fill:
        _fills.setdefault(kind, []).append(fill)
        return fill

    return declare


def touched(kind: Kind, ctx: Context, about: UUID, reached: Collection[UUID]) -> list[Touched]:
    """All that the apps above say, in the order in which they were declared."""
    return [one for fill in _fills.get(kind, ()) for one in fill(ctx, about, reached)]
