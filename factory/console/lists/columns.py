"""Columns of lists: each has a value, which a file holds, and a look, which the page shows."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any, TypeVar

from django.contrib.admin.utils import display_for_field, display_for_value, label_for_field, lookup_field
from django.core.exceptions import ObjectDoesNotExist
from django.utils.safestring import SafeString

from factory.console.lists.pages import BaseList
from factory.console.show import in_full, seen

EMPTY = "–"
Value = str | Callable[[Any], object]
"""What of a row a column holds: an attribute, with dots on the way to it, or a function of the row."""
Method = TypeVar("Method", bound=Callable[..., Any])


class Column:
    """A column that shows `render(value)`; `in_files` is its heading there, where the page's is another."""

    def __init__(
        self, label: str, value: Value, render: Callable[[Any], object] | None = None, *, in_files: str = ""
    ) -> None:
        self.short_description, self.in_files = label, in_files
        self.value, self.render = _reader(value), render

    def __call__(self, row: Any) -> object:
        value = self.value(row)
        if value is None or value == "":
            return EMPTY
        return self.render(value) if self.render else value


def column(label: str, value: Value, *, in_files: str = "") -> Callable[[Method], Method]:
    """Declare a page's method as a column that shows what the method draws of a row."""

    def declare(method: Method) -> Method:
        vars(method).update(short_description=label, value=_reader(value), in_files=in_files)
        return method

    return declare


def _reader(value: Value) -> Callable[[Any], object]:
    return attrgetter(value) if isinstance(value, str) else value


def heading(cl: BaseList, name: str, *, in_files: bool = False) -> str:
    """Return a column's name in words; empty for what is no column of a file: check boxes and buttons."""
    if name == "action_checkbox":
        return ""
    told = getattr(getattr(cl.model_admin, name, None), "in_files", "") if in_files else ""
    label = told or str(label_for_field(name, cl.model, model_admin=cl.model_admin))
    return label[:1].upper() + label[1:]


def shown(cl: BaseList, name: str, row: Any) -> Any:
    """Return a cell as the page shows it: text, or HTML that is safe; nothing in it hides or turns words."""
    cell = _look(cl, name, row)
    return SafeString(seen(cell)) if isinstance(cell, SafeString) else seen(cell)


def _look(cl: BaseList, name: str, row: Any) -> Any:
    try:
        field, _, value = lookup_field(name, row, cl.model_admin)
    except ObjectDoesNotExist:
        return EMPTY
    if field is None or getattr(field, "auto_created", False):
        return display_for_value(value, EMPTY)
    if field.is_relation:
        return getattr(row, field.name) or EMPTY
    return display_for_field(value, field, EMPTY)


def filed(cl: BaseList, name: str, row: Any) -> str:
    """Return what a file holds of a cell: the column's value, or that of the field."""
    value = getattr(getattr(cl.model_admin, name, None), "value", None)
    return written(value(row) if value else _look(cl, name, row))


def written(value: object) -> str:
    """Return a value as programs read it: all of an id or an amount, and a time in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Decimal):
        return in_full(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(written, value))
    text = "" if value is None else seen(str(value))
    return "" if text == EMPTY else text
