"""How far a narrowed list looks, so that it answers in time whatever is asked of it.

Filters and words can be put together so that no index answers them: each is common, and both are rare.
Then the database would read everything to find a page of rows. So it is given a short time for an answer;
without one, the rows are looked through in the list's order, so many at once, and the page says how far.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Model, QuerySet

from factory.api.problems import QUERY_CANCELED, sqlstate
from factory.kernel.keyset import beyond

T = TypeVar("T")

AT_FIRST_MS = 100
"""A page is to be there in 300 ms; the rest is for looking through `AT_ONCE` rows, and for drawing it."""
AT_ONCE = 3_000
"""Rows of one project among ten lie on as many pages of the disk, and cold they take that time again."""
STRETCH_MS = 1_000
"""What looking through so many rows may take of a database that is busy with others, or has to fetch them."""
END = "ROLLBACK TO SAVEPOINT look; RELEASE SAVEPOINT look"


class ScannedRows(NamedTuple):
    """Rows in their order, and, where it was not looked behind it, the row that was looked through last."""

    rows: list[Any]
    last: Model | None = None


@dataclass
class BoundedScan:
    """A look for those of `every` that are among `narrowed`, in the order of `key` from a place on.

    A list that nothing narrows is read by its index, and takes what time it takes. `through` says how many
    rows were looked through one by one, if the look did not come to the end; it is 0 while the database
    answers in time.
    """

    every: QuerySet[Any]
    narrowed: QuerySet[Any]
    key: tuple[str, ...]
    ascending: bool
    through: int = field(default=0, init=False)
    _slow: bool = field(default=False, init=False)

    @property
    def is_narrowed(self) -> bool:
        return bool(self.narrowed.query.where != self.every.query.where)

    def page(self, place: list[Any] | None, limit: int, *, patience: float = 0.0) -> ScannedRows:
        """Up to `limit` rows behind `place`; after the first look no other begins once `patience` seconds
        are over. Raises `OperationalError` where the database did not get through a single stretch."""
        if not self.is_narrowed:
            return ScannedRows(list(self._behind(self.narrowed, place)[:limit]))
        if not self._slow and (rows := self._at_first(place, limit)) is not None:
            return ScannedRows(rows)
        return self._through(place, limit, monotonic() + patience)

    def place(self, row: Model) -> list[Any]:
        """Return where a row stands in the list."""
        return [getattr(row, name) for name in self.key]

    def _at_first(self, place: list[Any] | None, limit: int) -> list[Any] | None:
        """Return what the database answers in a short time, if it does."""
        return in_time(AT_FIRST_MS, lambda: list(self._behind(self.narrowed, place)[:limit]))

    def _through(self, place: list[Any] | None, limit: int, until: float) -> ScannedRows:
        """Stretch by stretch. Where one is not got through in time, what the others held is the answer."""
        found, last = list[Any](), None
        while True:
            at = place if last is None else self.place(last)
            try:
                with _limited(STRETCH_MS):
                    stretch = self._stretch(at, limit - len(found))
            except OperationalError as fault:
                if last is None or sqlstate(fault) != QUERY_CANCELED:
                    raise
                return ScannedRows(found, last)
            found += stretch.rows
            self.through += AT_ONCE
            self._slow = len(found) < limit or last is not None
            if stretch.last is None or len(found) == limit:
                return ScannedRows(found)
            last = stretch.last
            if monotonic() >= until:
                return ScannedRows(found, last)

    def _stretch(self, place: list[Any] | None, limit: int) -> ScannedRows:
        """Those among the next `AT_ONCE` rows.

        All of their keys are asked for: a database that is asked for the first few reads in the hope of
        finding them soon, and here it has just not found them. What stops matching between its key and its
        row is not shown, and takes no place: others are looked for behind the last key that was taken.
        """
        bare = self._behind(self.every, place).select_related(None).prefetch_related(None).only(*self.key)
        edge = list(bare[AT_ONCE - 1 : AT_ONCE + 1])
        last = edge[0] if len(edge) == 2 else None
        rows = self._behind(self.narrowed, place)
        if last is not None:
            at = self.place(last)
            rows = rows.filter(beyond(self.key, at, ascending=not self.ascending, including=True))
        keys = list(rows.values_list("pk", *self.key))[:limit]
        found = list(self.narrowed.filter(pk__in=[key for key, *_ in keys])) if keys else []
        if len(found) < len(keys) == limit:
            behind = self._stretch(list(keys[-1][1:]), limit - len(found))
            return ScannedRows([*found, *behind.rows], behind.last)
        return ScannedRows(found, last)

    def _behind(self, rows: QuerySet[Any], place: list[Any] | None) -> QuerySet[Any]:
        if place is None:
            return rows
        return rows.filter(beyond(self.key, place, ascending=self.ascending))


def in_time(milliseconds: int, asked: Callable[[], T]) -> T | None:
    """Return what each statement of `asked` answers in so many milliseconds, or None where one does not. It
    only reads, inside a transaction, whose settings are afterwards what they were."""
    try:
        with _limited(milliseconds):
            return asked()
    except OperationalError as fault:
        if sqlstate(fault) != QUERY_CANCELED:
            raise
    return None


@contextmanager
def _limited(milliseconds: int) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(f"SAVEPOINT look; SET LOCAL statement_timeout = {int(milliseconds)}")
        try:
            yield
        finally:
            _end(cursor)


def _end(cursor: CursorWrapper) -> None:
    """Undo the setting. A limit of time that passes in the very moment of an answer does not reach the
    question any more, but the next statement, which is this one: then it is sent again.
    """
    try:
        cursor.execute(END)
    except OperationalError as fault:
        if sqlstate(fault) != QUERY_CANCELED:
            raise
        cursor.execute(END)
