"""What a list shows, as CSV: the same rows in the same order, read page by page and never held at once.

A list whose order moves meanwhile has no pages to go by: it is read at one moment, as one page, and held.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from time import monotonic

from django.db import OperationalError
from django.http import HttpRequest, StreamingHttpResponse

from factory.api.problems import QUERY_CANCELED, sqlstate
from factory.console.asking import said_last
from factory.console.lists.columns import filed, heading
from factory.console.lists.pages import AFTER, BaseList
from factory.console.scope import context_of
from factory.kernel import clock
from factory.kernel.tenancy import reading, reading_one_moment

MOST_ROWS = 100_000
ROWS_AT_FIRST, ROWS_AT_ONCE = 100, 1_000
PATIENCE, MOST_SECONDS = 1.0, 30.0
"""How long one transaction looks for rows, and how long it may find none before the file ends: only a line
that is written shows whether anybody still reads."""
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?%?")
UNSAFE = ("=", "+", "-", "@", "\t", "\r", "\n")


def file_of(request: HttpRequest, cl: BaseList) -> StreamingHttpResponse:
    """The list as a file. Each page of it is a transaction of its own: a slow reader holds nothing.

    Of a list whose rows move it has one page."""
    return _answer(f"{cl.opts.model_name}-{clock.now():%Y-%m-%d-%H%M}", _lines(request, cl))


def sheet(name: str, lines: Iterable[Sequence[str]]) -> StreamingHttpResponse:
    """A table that is held already, as a file."""
    writer = csv.writer(_Line())
    return _answer(name, ("\ufeff", *(writer.writerow([safe(text) for text in line]) for line in lines)))


def _answer(name: str, lines: Iterable[str]) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    answer["Cache-Control"] = "no-store"
    return answer


class _Line:
    """Hold what `csv` writes to: a line goes straight out."""

    def write(self, text: str) -> str:
        return text


def _lines(request: HttpRequest, cl: BaseList) -> Iterator[str]:
    writer = csv.writer(_Line())
    named = cl.model_admin.file_columns or cl.list_display
    columns = {name: label for name in named if (label := heading(cl, name, in_files=True))}
    yield "\ufeff" + writer.writerow(columns.values())
    yield from _rows(request, cl, list(columns))
    yield from (writer.writerow([told]) for told in said_last(request))


def _rows(request: HttpRequest, cl: BaseList, columns: Sequence[str]) -> Iterator[str]:
    """The rows page by page, and a line that says so where they are not all."""
    writer, ctx = csv.writer(_Line()), context_of(request)
    moves = bool(cl.model_admin.moving)
    first, patience = (MOST_ROWS, MOST_SECONDS) if moves else (ROWS_AT_FIRST, PATIENCE)
    place, told, look = cl.values(cl.params.get(AFTER)), 0, cl.look()
    found_at = monotonic()
    while monotonic() - found_at <= MOST_SECONDS:
        limit = min(ROWS_AT_ONCE if told else first, MOST_ROWS - told) or 1
        try:
            with reading_one_moment(ctx) if moves else reading(ctx):
                rows, last = look.page(place, limit, patience=patience)
                cl.carry(request, rows)
                lines = [writer.writerow([safe(filed(cl, name, row)) for name in columns]) for row in rows]
        except OperationalError as fault:
            if sqlstate(fault) != QUERY_CANCELED:
                raise
            break
        if rows and told == MOST_ROWS:
            yield writer.writerow([f"Cut after {MOST_ROWS} rows. Filter the list to get the rest."])
            return
        yield "".join(lines)
        told += len(rows)
        if len(rows) < limit and last is None:
            return
        if moves and last is not None:
            break  # what comes behind it has moved by now
        found_at = monotonic() if rows else found_at
        place = look.place(last or rows[-1])
    yield writer.writerow(["Not looked through to the end: it takes too long. Filter the list otherwise."])


def safe(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(UNSAFE) and not NUMBER.fullmatch(text) else text
