"""`{% load house %}`: the renderings of `factory.admin.show` as filters, and what a page offers."""

from typing import Any

from django import template

from factory.admin import show

register = template.Library()
FILTERS = (
    "badge", "brief", "clock", "mark", "number", "outline", "pretty", "seen", "short", "span", "tone", "usd",
    "when",
)  # fmt: skip
for name in FILTERS:
    register.filter(name, getattr(show, name))


@register.simple_tag(takes_context=True)
def acts_of(context: Any, page: Any, row: Any) -> Any:
    """What this person is offered to do with a row, or, without one, from the list."""
    return page.acts(context["request"], row)


@register.filter
def member(values: Any, name: str) -> Any:
    """A member of a mapping by a name that the page has in a variable; empty where it has none."""
    return values.get(name, "") if values else ""
