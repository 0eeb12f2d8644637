"""`{% load lists %}`: the rows, the filters and the empty words of a list."""

from typing import Any

from django import template
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.views.main import SEARCH_VAR
from django.urls import NoReverseMatch
from django.utils.html import format_html, strip_tags
from django.utils.safestring import SafeString

from factory.console.lists.columns import EMPTY, filed, heading, shown
from factory.console.lists.filters import choices_of
from factory.console.lists.pages import ORDER, BaseList
from factory.console.show import when

register = template.Library()
LONG = 24


@register.simple_tag
def columns_of(cl: BaseList) -> list[tuple[str, str]]:
    """Name and heading of each column but the check boxes, and of acts that nothing on the page has."""
    named = [(name, heading(cl, name)) for name in cl.list_display if name != "action_checkbox"]
    return [(name, label) for name, label in named if label or _holds_something(cl, name)]


def _holds_something(cl: BaseList, name: str) -> bool:
    return any(shown(cl, name, row) != EMPTY for row in cl.result_list)


@register.simple_tag
def rows_of(cl: BaseList) -> Any:
    """Return each row with its cells: name, heading, look, if it is short, and where the first leads."""
    columns = columns_of(cl)
    for row in cl.result_list:
        cells = [
            (name, label, shown(cl, name, row), _is_short(cl, name, label, row), _way(cl, name, at, row))
            for at, (name, label) in enumerate(columns)
        ]
        yield row, cells


def _is_short(cl: BaseList, name: str, label: str, row: Any) -> bool:
    """Tell a column of few characters, which look odd on two lines, from others and from buttons."""
    return bool(label) and len(filed(cl, name, row)) <= 14


@register.filter
def has_long_word(cell: str) -> bool:
    """Tell whether a cell holds what has to be broken somewhere, as a hash; others are broken at blanks."""
    return any(len(word) > LONG for word in strip_tags(cell).split())


def _way(cl: BaseList, name: str, at: int, row: Any) -> str:
    if cl.list_display_links is None:
        return ""
    if at > 0 if not cl.list_display_links else name not in cl.list_display_links:
        return ""
    try:
        kept = {"preserved_filters": cl.preserved_filters, "opts": cl.opts}
        return str(add_preserved_filters(kept, cl.url_for_result(row)))
    except NoReverseMatch:
        return ""


@register.simple_tag
def filters_of(cl: BaseList) -> list[tuple[str, str, Any]]:
    """Each filter as the field of a form: its name, its words and its choices. Links are no fields."""
    return [(name, spec.title, found) for spec in _fields(cl) for name, found in (choices_of(cl, spec),)]


@register.simple_tag
def how_far(cl: BaseList) -> SafeString:
    """Return how far it was looked for what was asked, where that was not everything."""
    to = format_html(", to {}", when(cl.looked_to)) if cl.looked_to else ""
    return format_html("{} rows of the list were looked through here{}.", f"{cl.looked_through:,}", to)


@register.simple_tag
def kept_of(cl: BaseList) -> list[tuple[str, str]]:
    """Return what the form has to send along although it has no field for it."""
    named = {choices_of(cl, spec)[0] for spec in _fields(cl)} | {SEARCH_VAR}
    kept = [(name, value) for name, values in cl.chosen.items() if name not in named for value in values]
    return [*kept, (ORDER, "oldest")] if cl.oldest_first else kept


def _fields(cl: BaseList) -> list[Any]:
    """The filters but those that a page offers as links of its own."""
    return [spec for spec in cl.filter_specs if not getattr(spec, "as_links", False)]
