"""The page of one row, for kinds without a page of their own: what it says in words, and what is stored."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.admin.options import ModelAdmin
from django.contrib.admin.utils import label_for_field, lookup_field
from django.core.exceptions import ObjectDoesNotExist
from django.db import models
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory.console.colours import Palette
from factory.console.folding import FoldedText, text_of
from factory.console.show import badge, seen, when

NOTHING = SafeString("–")
LONG = 120
MOST = 200_000


@dataclass(frozen=True, slots=True)
class RowFact:
    """Hold what is said under a name: in a line, or, where it is JSON or long, as `lines` below each
    other."""

    label: str
    value: SafeString = NOTHING
    lines: FoldedText | None = None
    more: int = 0
    """So many characters are not shown."""


def told(page: "ModelAdmin[Any]", row: models.Model, names: Iterable[str]) -> list[RowFact]:
    """These fields of a row, or columns of its list, in words; what has no name is a button, and left out."""
    return list(_facts(page, row, names, Palette()))


def _facts(
    page: "ModelAdmin[Any]", row: models.Model, names: Iterable[str], palette: Palette
) -> Iterator[RowFact]:
    for name in names:
        label = str(label_for_field(name, type(row), model_admin=page))
        if not label:
            continue
        label = label[:1].upper() + label[1:]
        try:
            field, _, value = lookup_field(name, row, page)
        except ObjectDoesNotExist:
            yield RowFact(label)
            continue
        yield _fact(label, field, getattr(row, field.name) if field and field.is_relation else value, palette)


def _fact(label: str, field: Any, value: Any, palette: Palette) -> RowFact:
    if value is None or value == "":
        return RowFact(label)
    if isinstance(field, models.JSONField) or isinstance(value, dict):
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
        return RowFact(
            label, lines=text_of(text[:MOST], "value.json", palette), more=max(0, len(text) - MOST)
        )
    if isinstance(value, str) and not isinstance(value, SafeString) and _is_long(value):
        return RowFact(label, lines=text_of(value[:MOST], "", palette), more=max(0, len(value) - MOST))
    return RowFact(label, _words(field, value))


def _is_long(text: str) -> bool:
    return len(text) > LONG or "\n" in text.strip()


def _words(field: Any, value: Any) -> SafeString:
    if isinstance(value, SafeString):
        return value
    if isinstance(value, datetime):
        return when(value)
    if isinstance(value, bool):
        return SafeString("yes" if value else "no")
    if isinstance(value, list | tuple | set):
        return format_html("{}", ", ".join(seen(str(one)) for one in value) or NOTHING)
    if field is not None and field.name == "state":
        return badge(str(value))
    if isinstance(value, UUID):
        return format_html("<code>{}</code>", value)
    return format_html("{}", seen(str(value)))
