"""How far a narrowed list looks, so that it answers in time whatever is asked of it.

Filters and words can be put together so that no index answers them: each is common, and both are rare.
Then the database would read everything to find a page of rows. So it is given a short time for an answer;
without one, the rows are looked through in the list's order, so many at once, and the page says how far.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple

from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Model, QuerySet

from factory.keyset import beyond
from factory.rest.problems import QUERY_CANCELED, sqlstate

AT_FIRST_MS = 120
"""A page is to be there in 300 ms; the rest is for looking through `AT_ONCE` rows, and for drawing it."""
AT_ONCE = 10_000
END = "ROLLBACK TO SAVEPOINT look; RELEASE SAVEPOINT look"


class Found(NamedTuple):
    """Rows in their order, and, where it was not looked behind it, the row that was looked through last."""

    rows: list[Any]
    last: Model | None = None


@dataclass
class Look:
    """A look for those of `every` that are among `narrowed`, in the order of `key` from a place on.

    A list that nothing narrows is read by its index, and takes what time it takes. `through` counts what
    was looked through row by row; it is 0 while the database answers in time.
    """

    every: QuerySet[Any]
    narrowed: QuerySet[Any]
    key: tuple[str, ...]
    ascending: bool
    is_narrowed: bool
    through: int = field(default=0, init=False)

    def page(self, place: list[Any] | None, limit: int, *, patience: float = 0.0) -> Found:
        """Up to `limit` rows behind `place`, after at most about `patience` seconds beyond the first look."""
        if not self.is_narrowed:
            return Found(list(self._behind(self.narrowed, place)[:limit]))
        if not self.through and (rows := self._at_first(place, limit)) is not None:
            return Found(rows)
        until, found = monotonic() + patience, list[Any]()
        while True:
            last, behind = self._stretch(place)
            rows = self._rows(place, limit - len(found), behind)
            found += rows
            if last is None or len(found) == limit:
                return Found(found)
            if monotonic() >= until:
                return Found(found, last)
            place = self.place(last)

    def _at_first(self, place: list[Any] | None, limit: int) -> list[Any] | None:
        """What the database answers in a short time, if it does."""
        try:
            with _for_now(f"statement_timeout = {AT_FIRST_MS}"):
                return list(self._behind(self.narrowed, place)[:limit])
        except OperationalError as fault:
            if sqlstate(fault) != QUERY_CANCELED:
                raise
        return None

    def _stretch(self, place: list[Any] | None) -> tuple[Model | None, Model | None]:
        """The last of the next `AT_ONCE` rows and the one behind it; nothing, where no more are there."""
        rows = self._behind(self.every, place).select_related(None).prefetch_related(None).only(*self.key)
        edge = list(rows[AT_ONCE - 1 : AT_ONCE + 1])
        self.through += AT_ONCE
        return (edge[0], edge[1]) if len(edge) == 2 else (None, None)

    def _rows(self, place: list[Any] | None, limit: int, behind: Model | None) -> list[Any]:
        """Narrowed rows before `behind`. They are read in their order: sorted, all would be read first."""
        rows = self._behind(self.narrowed, place)
        if behind is not None:
            rows = rows.filter(beyond(self.key, self.place(behind), ascending=not self.ascending))
        with _for_now("enable_sort = off"):
            return list(rows[:limit])

    def _behind(self, rows: QuerySet[Any], place: list[Any] | None) -> QuerySet[Any]:
        if place is None:
            return rows
        return rows.filter(beyond(self.key, place, ascending=self.ascending))

    def place(self, row: Model) -> list[Any]:
        """Where a row stands in the list."""
        return [getattr(row, name) for name in self.key]


@contextmanager
def _for_now(setting: str) -> Iterator[None]:
    """A setting of the database for the block, which only reads: it ends as if it had not been."""
    with connection.cursor() as cursor:
        cursor.execute(f"SAVEPOINT look; SET LOCAL {setting}")
        try:
            yield
        finally:
            _end(cursor)


def _end(cursor: CursorWrapper) -> None:
    """Undo the settings. A limit of time that passes in the very moment of an answer does not reach the
    question any more, but the next statement, which is this one: then it is sent again.
    """
    try:
        cursor.execute(END)
    except OperationalError as fault:
        if sqlstate(fault) != QUERY_CANCELED:
            raise
        cursor.execute(END)
