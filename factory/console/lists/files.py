"""What a list shows, as CSV: the same rows in the same order, read page by page and never held at once.

A list whose order moves meanwhile has no pages to go by: it is read at one moment, as one page, and held.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from html.parser import HTMLParser
from time import monotonic
from typing import Any

from django.contrib.admin.utils import display_for_field, display_for_value, label_for_field, lookup_field
from django.core.exceptions import ObjectDoesNotExist
from django.db import OperationalError
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.safestring import SafeString

from factory.api.problems import QUERY_CANCELED, sqlstate
from factory.console.asking import said_last
from factory.console.lists.pages import AFTER, BaseList
from factory.console.scope import context_of
from factory.console.show import seen
from factory.kernel import clock
from factory.kernel.tenancy import reading, reading_one_moment

MOST_ROWS = 100_000
ROWS_AT_FIRST, ROWS_AT_ONCE = 100, 1_000
PATIENCE, MOST_SECONDS = 1.0, 30.0
"""How long one transaction looks for rows, and how long it may find none before the file ends: only a line
that is written shows whether anybody still reads."""
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?%?")
UNSAFE = ("=", "+", "-", "@", "\t", "\r", "\n")
EMPTY = "–"


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
    """What `csv` writes to: a line goes straight out."""

    def write(self, text: str) -> str:
        return text


def _lines(request: HttpRequest, cl: BaseList) -> Iterator[str]:
    writer = csv.writer(_Line())
    named = cl.model_admin.file_columns or cl.list_display
    columns = {name: label for name in named if (label := _heading(cl, name))}
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
                lines = [writer.writerow([_cell(cl, name, row) for name in columns]) for row in rows]
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


def heading(cl: BaseList, name: str) -> str:
    """A column's name in words; empty for what is no column of a file: check boxes and buttons."""
    if name == "action_checkbox":
        return ""
    label = str(label_for_field(name, cl.model, model_admin=cl.model_admin))
    return label[:1].upper() + label[1:]


def _heading(cl: BaseList, name: str) -> str:
    """The same in a file, where a time stands for what the page tells of it at this moment."""
    told = cl.model_admin.file_headings.get(name, "")
    return told[:1].upper() + told[1:] if told else heading(cl, name)


def shown(cl: BaseList, name: str, row: Any) -> Any:
    """A cell as the page shows it: text, or HTML that is safe; nothing in it hides or turns other words."""
    found = _value(cl, name, row)
    return SafeString(seen(found)) if isinstance(found, SafeString) else seen(found)


def _value(cl: BaseList, name: str, row: Any) -> Any:
    empty = EMPTY
    try:
        field, attr, value = lookup_field(name, row, cl.model_admin)
    except ObjectDoesNotExist:
        return empty
    if field is None or getattr(field, "auto_created", False):
        return display_for_value(value, empty, getattr(attr, "boolean", False))
    if field.is_relation:
        return getattr(row, field.name) or empty
    return display_for_field(value, field, empty)


def _cell(cl: BaseList, name: str, row: Any) -> str:
    return safe(plain(shown(cl, name, row)))


def safe(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(UNSAFE) and not NUMBER.fullmatch(text) else text


SHORTENED = ("code", "span")
"""What `show.short` and `show.cut` write: the whole of it is in the title."""
FOR_FILES = {"time": "datetime", "data": "value"} | dict.fromkeys(SHORTENED, "title")
"""Elements that tell the eye something else than a file, by the attribute that has what the file tells."""
VOID = {"br", "img", "input", "wbr", "hr"}


class _Words(HTMLParser):
    """The words of a cell; of what is shortened for the eye, all of it; of what is told in words, what
    programs read (`show.filed`); and nothing that is soon not true."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.hidden = 0
        self.open: list[bool] = []
        self.goes_on = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            self.goes_on = tag == "wbr"  # where a word may break, and is still one word
            return  # it is never closed
        held = dict(attrs)
        whole = held.get(FOR_FILES.get(tag, ""))
        if whole and not self.hidden:
            self.words.append(whole)
        hides = bool(whole) or held.get("aria-hidden") == "true" or "data-passing" in held
        self.open.append(hides)
        self.hidden += hides

    def handle_endtag(self, tag: str) -> None:
        if self.open:
            self.hidden -= self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.hidden:
            return
        if self.goes_on and self.words:
            self.words[-1] += data
        else:
            self.words.append(data)
        self.goes_on = False


def plain(cell: Any) -> str:
    """A cell as text. What is not marked as safe HTML is text already."""
    text = str(cell)
    if hasattr(cell, "__html__"):
        words = _Words()
        words.feed(text)
        words.close()
        text = " ".join(part for part in (one.strip() for one in words.words) if part)
    return "" if text == EMPTY else text
