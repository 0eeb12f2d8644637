"""`{% load console %}`: the renderings of `factory.console.show` as filters, and what a page offers."""

from datetime import datetime
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory.console import dashboard, show
from factory.console.confirming import ChoiceField
from factory.console.drafts import kept_words
from factory.console.menu import where
from factory.console.site import site
from factory.kernel.amounts import number, usd

register = template.Library()
FILTERS = (
    "at_slashes", "badge", "brief", "clock", "coded", "mark", "measured", "opening", "outline", "parted",
    "pretty", "seen", "short", "span", "tone", "when", "whole",
)  # fmt: skip
for name in FILTERS:
    register.filter(name, getattr(show, name))
register.filter("usd", usd)
register.filter("number", number)


@register.simple_tag(takes_context=True)
def acts_of(context: Any, page: Any, row: Any) -> Any:
    """Return what this person is offered to do with a row, or, without one, from the list."""
    return page.acts(context["request"], row)


@register.inclusion_tag("factory/where.html", takes_context=True)
def where_one_is(context: Any) -> dict[str, Any]:
    """The way back from a page, as the side bar goes: group, entry, and its list where that is another.

    It ends there: what the page is about stands in its heading, at full length.
    """
    found = where(context.get("sidebar_navigation") or [], context["request"].path)
    if found is None:
        return {"parts": [{"title": context.get("title") or context.get("site_title", "")}]}
    group, item = found
    parts = [{"title": group["title"]}, {"link": str(item["link"]), "title": item["title"]}]
    return {"parts": [*parts, *_list_of(context.get("opts"), parts)]}


def _list_of(opts: Any, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The list of a kind that has no entry of its own."""
    page = site._registry.get(opts.model) if opts else None
    if page is None:
        return []
    link = reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist")
    known = any(part.get("link") == link for part in parts)
    return [] if known else [{"link": link, "title": str(getattr(page, "name", opts.verbose_name_plural))}]


@register.simple_tag(takes_context=True)
def kept(context: Any, act: str, **same: Any) -> dict[str, Any]:
    """Return what this person wrote into the form that leads to `act` and was refused; `same` tells forms
    apart."""
    words = kept_words(context["request"], act)
    return words if all(words.get(name) == str(value) for name, value in same.items()) else {}


@register.filter
def member(values: Any, name: str) -> Any:
    """A member of a mapping by a name that the page has in a variable; empty where it has none."""
    return values.get(name, "") if values else ""


@register.simple_tag
def ticked(field: ChoiceField, value: str, sent: Any) -> str:
    """Tell whether an option of a field is chosen, as an attribute: by what was sent, or as the page
    proposes."""
    if sent:
        return " checked" if value in sent.getlist(field.name) else ""
    if field.many:
        return " checked" if value in field.chosen else ""
    return " checked" if value == (field.chosen or field.options[0][0]) else ""


@register.filter
def px(value: float, more: float = 0) -> str:
    """A coordinate of a drawing, whatever the language of the page writes numbers like."""
    return f"{value + more:g}"


@register.filter
def marked(state: str, tone: str) -> SafeString:
    """A state with the mark of its tone, for whoever sees no colours."""
    return format_html('<span aria-hidden="true">{}</span>{}', show.MARKS[tone], state)


@register.filter
def ago(since: datetime, now: datetime) -> str:
    """For how long something has been so."""
    return show.span((now - since).total_seconds())


@register.filter
def left(ends: datetime, now: datetime) -> str:
    """Return how much time is left until then."""
    seconds = (ends - now).total_seconds()
    return f"{show.span(seconds)} left" if seconds > 0 else "its time is over"


register.filter("bounded", dashboard.number)
