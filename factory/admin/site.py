"""The admin site of the house, and what its first page is made of."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from unfold.sites import UnfoldAdminSite

from factory.admin.scope import places_of, switch_place
from factory.context import Context
from factory.tenancy import reading

Tone = Literal["plain", "good", "busy", "wait", "doubt", "bad"]


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a card: what it is, where it leads, and what is remarkable about it."""

    title: str
    url: str = ""
    state: str = ""
    tone: Tone = "plain"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A part of the first page; `empty` says what would stand there."""

    title: str
    items: tuple[Item, ...] = ()
    empty: str = ""
    more_url: str = ""
    more_label: str = ""
    needs_you: bool = False
    figures: tuple[tuple[str, str], ...] = field(default=())


Fill = Callable[[Context], Card | None]
_cards: list[tuple[int, Fill]] = []


def card(order: int) -> Callable[[Fill], Fill]:
    """Declare a card of the first page. It is filled inside a reading transaction; None leaves it out."""

    def declare(fill: Fill) -> Fill:
        _cards.append((order, fill))
        return fill

    return declare


def cards(ctx: Context) -> Iterable[Card]:
    """The first page for this person, in order."""
    with reading(ctx):
        filled = [fill(ctx) for _, fill in sorted(_cards, key=lambda c: c[0])]
    return [one for one in filled if one is not None]


class HouseSite(UnfoldAdminSite):
    """The console: its pages are read in the place that the person chose."""

    site_title = "Factory Control Plane"
    site_header = "Factory Control Plane"
    index_title = "What needs you"

    def get_urls(self) -> list[URLPattern]:
        own = [path("place/", switch_place, name="switch_place")]
        return [*own, *super().get_urls()]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context: dict[str, Any] = super().each_context(request)
        context["places"] = places_of(request)
        context["place"] = getattr(request, "place", None)
        return context

    def has_permission(self, request: HttpRequest) -> bool:
        """Whoever is a member somewhere may enter; what they see there, their roles decide."""
        return bool(request.user.is_active and request.user.is_authenticated)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        ctx: Context | None = getattr(request, "context", None)
        found = list(cards(ctx)) if ctx is not None else []
        more = {"cards": found, "member_of_nothing": ctx is None, **(extra_context or {})}
        return super().index(request, more)


site = HouseSite(name="admin")
