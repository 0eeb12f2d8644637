"""Filters whose values are known without asking the rows: of a million, that takes too long."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from factory.console.asking import not_understood

Values = Iterable[str] | Callable[[HttpRequest], Iterable[str]]


def one_of(
    field: str,
    title: str,
    values: Values,
    implies: Mapping[str, Any] | None = None,
    words: Mapping[Any, str] | None = None,
    asks: Mapping[str, Q] | None = None,
) -> type[admin.SimpleListFilter]:
    """A choice among values that the code, or a small table, knows.

    `implies` is what every row with any of them is besides, by a rule of the table: the database then sees
    at once that another filter contradicts this one, and does not read all rows to find none. `words` are
    what people call the values, where a page calls them otherwise than the API. `asks` is what is asked for
    each, where `field` is no column.
    """

    class OneOf(admin.SimpleListFilter):
        def __init__(self, *args: Any) -> None:
            self.title, self.parameter_name = title, field
            super().__init__(*args)

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            found = values(request) if callable(values) else values
            return [(str(value), (words or {}).get(value, str(value))) for value in found]

        def has_output(self) -> bool:
            return bool(self.lookup_choices) or self.value() is not None

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            chosen = self.value()
            if chosen is None:
                return queryset
            if chosen not in {value for value, _ in self.lookup_choices}:
                not_understood(request, f"“{chosen[:60]}” is no {self.title} here.", "So nothing is shown.")
                return queryset.none()
            asked = (asks or {}).get(chosen, Q(**{field: chosen}))
            return queryset.filter(asked, **(implies or {}))

    OneOf.parameter_name = field
    OneOf.title = title
    return OneOf


def choices_of(cl: Any, spec: Any) -> tuple[str, list[tuple[str, str, bool]]]:
    """A filter as the name of a form's field, and its values: what is sent, what is said, if it is chosen."""
    name = getattr(spec, "parameter_name", None) or spec.lookup_kwarg
    found = []
    for choice in spec.choices(cl):
        sent = parse_qs(choice["query_string"].lstrip("?")).get(name, [""])[0]
        found.append((sent, str(choice["display"]), bool(choice["selected"])))
    return name, found
