"""What lists are asked: every filter that they offer, every search, and every way through their pages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any
from urllib.parse import quote

from django.contrib.admin.options import ModelAdmin
from django.db import models

from factory.console.lists.filters import choices_of

MOST_VALUES = 24
"""So many of a filter's values are asked for; of each pair of filters fewer."""
OF_A_PAIR = 4
NOBODY = "00000000-0000-7000-8000-000000000000"


@dataclass(frozen=True)
class AskedPage:
    """One address, and what of its answer is read."""

    path: str
    file: bool = False


def of_list(path: str, cl: Any, texts: Sequence[str]) -> Iterator[AskedPage]:
    """Every question to the list at `path`; `texts` are what its search is asked for."""
    filters = [_values(*choices_of(cl, spec)) for spec in cl.filter_specs]
    searches = [f"q={quote(text)}" for text in texts]
    yield from (AskedPage(f"{path}{query}") for query in _ways(cl))
    yield AskedPage(f"{path}?format=csv", file=True)
    for values in filters:
        yield from (AskedPage(f"{path}?{one}") for one in _some(values, MOST_VALUES))
        yield from (AskedPage(f"{path}?{one}&order=oldest") for one in _some(values, OF_A_PAIR))
    for one, other in combinations(filters, 2):
        pairs = product(_some(one, OF_A_PAIR), _some(other, OF_A_PAIR))
        yield from (AskedPage(f"{path}?{a}&{b}") for a, b in pairs)
    yield from (AskedPage(f"{path}?{text}") for text in searches)
    for values in filters:
        pairs = product(_some(values, OF_A_PAIR), _some(searches, OF_A_PAIR))
        yield from (AskedPage(f"{path}?{a}&{b}") for a, b in pairs)


def _values(name: str, values: Sequence[tuple[str, str, bool]]) -> list[str]:
    return [f"{name}={quote(sent)}" for sent, _, _ in values if sent]


def _some(values: Sequence[str], most: int) -> Sequence[str]:
    """So many of the values, evenly: the first and the last are among them."""
    if len(values) <= most:
        return values
    return [values[round(n * (len(values) - 1) / (most - 1))] for n in range(most)]


def _ways(cl: Any) -> Iterator[str]:
    """The first page and the next, those from the other end, and one in the middle of the year."""
    yield ""
    yield "?order=oldest"
    if not cl.next_url:
        return
    yield cl.next_url
    [kind, *_] = [cl.model._meta.get_field(name) for name in cl.key]
    if isinstance(kind, models.DateTimeField) and len(cl.key) == 2:
        for day in ("06-15", "12-30"):
            place = quote(f"2026-{day}T00:00:00+00:00~{NOBODY}")
            yield f"?after={place}"
            yield f"?before={place}"


def texts_of(page: ModelAdmin, found: Sequence[Any]) -> list[str]:
    """What is sought in a list: what rows of it hold, somebody who asked for much, and what is nowhere."""
    if not page.search_fields:
        return []
    texts = [str(value) for row in found for value in _held(page, row) if value]
    return list(dict.fromkeys([*texts, "person5@bench.test", "nobody at all", "k777777", NOBODY]))


def _held(page: ModelAdmin, row: Any) -> Iterator[Any]:
    for name in page.search_fields:
        value: Any = row
        for part in name.split("__"):
            value = getattr(value, part, None)
        yield value
