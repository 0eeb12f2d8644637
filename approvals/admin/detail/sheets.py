"""Members of a manifest that are lists or facts, read as tables and pairs before the JSON that was hashed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory.console.show import HASH, seen

MOST_ROWS = 200
MOST_COLUMNS = 8
LONGEST = 300
NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Sheet:
    """Rows that have the same members. `more` rows are not shown."""

    heads: tuple[str, ...]
    rows: tuple[tuple[tuple[str, SafeString], ...], ...]
    more: int = 0


def sheet_of(value: Any) -> Sheet | None:
    """A list of flat objects as a table; None for anything else, and for what is too wide to be one."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return None
    if not all(isinstance(row, Mapping) and all(map(_is_flat, row.values())) for row in value):
        return None
    names = list(dict.fromkeys(str(name) for row in value for name in row))
    heads = tuple(name for name in names if any(row.get(name) not in (None, "", []) for row in value))
    if not 0 < len(heads) <= MOST_COLUMNS:
        return None
    told = {"size": _size} if "sha256" in heads else {}
    rows = tuple(
        tuple((label(name), told.get(name, cell)(row.get(name))) for name in heads)
        for row in value[:MOST_ROWS]
    )
    return Sheet(tuple(map(label, heads)), rows, max(0, len(value) - MOST_ROWS))


def facts_of(value: Any) -> tuple[tuple[str, SafeString], ...]:
    """An object of names and plain values, or such objects, as pairs; empty for anything else."""
    if not isinstance(value, Mapping) or not value:
        return ()
    pairs: list[tuple[str, SafeString]] = []
    for name, inner in value.items():
        if _is_flat(inner):
            pairs.append((label(str(name)), cell(inner)))
        elif isinstance(inner, Mapping) and all(map(_is_flat, inner.values())):
            pairs += [(f"{label(str(name))}: {seen(str(key))}", cell(each)) for key, each in inner.items()]
        else:
            return ()
    return tuple(pairs)


def label(name: str) -> str:
    """The name of a member in words."""
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in name)
    return seen(words[:1].upper() + words[1:])


def cell(value: Any) -> SafeString:
    """One value. A hash is told whole: it is what somebody signs."""
    if isinstance(value, str) and HASH.fullmatch(value):
        return format_html("<code>{}</code>", value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return format_html("{}", ", ".join(_words(each) for each in value) or NOTHING)
    return format_html("{}", _words(value))


def _size(value: Any) -> SafeString:
    """Return how large a file is that is named by its hash, as people say it, with all the bytes in the
    title; of anything else nobody knows in what a size is counted."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        return cell(value)
    return format_html('<span title="{} bytes">{}</span>', f"{value:,}", filesizeformat(value))


def _words(value: Any) -> str:
    if value is None or value == "":
        return NOTHING
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else seen(str(value))


def _is_flat(value: Any) -> bool:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return len(value) <= 10 and all(_is_plain(each) for each in value)
    return _is_plain(value)


def _is_plain(value: Any) -> bool:
    return (
        value is None or isinstance(value, int | float) or (isinstance(value, str) and len(value) <= LONGEST)
    )
