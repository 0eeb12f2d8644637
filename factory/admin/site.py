"""The admin site of the house."""

from typing import Any, Literal

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from unfold.sites import UnfoldAdminSite

from factory.admin.first import Card, Item, card, counts_of, first_page, number
from factory.admin.scope import places_of, switch_place
from factory.context import Context

__all__ = ["Card", "HouseSite", "Item", "card", "site"]


class HouseSite(UnfoldAdminSite):
    """The console: its pages are read in the place that the person chose."""

    site_title = "Factory Control Plane"
    site_header = "Factory Control Plane"
    index_title = "First page"

    def get_urls(self) -> list[URLPattern]:
        own = [path("place/", switch_place, name="switch_place")]
        return [*own, *super().get_urls()]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context: dict[str, Any] = super().each_context(request)
        context["places"] = places_of(request)
        context["place"] = getattr(request, "place", None)
        return context

    def get_sidebar_list(self, request: HttpRequest) -> list[dict[str, Any]]:
        """The side bar, with the number of what waits beside the entries that name one."""
        groups: list[dict[str, Any]] = super().get_sidebar_list(request)
        waiting = counts_of(request)
        for item in (item for group in groups for item in group["items"]):
            found = waiting.get(item.get("counts", ""), 0) if item["has_permission"] else 0
            item["waiting"] = number(found) if found else ""
        return groups

    def has_permission(self, request: HttpRequest) -> bool:
        """Whoever is a member somewhere may enter; what they see there, their roles decide."""
        return bool(request.user.is_active and request.user.is_authenticated)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        ctx: Context | None = getattr(request, "context", None)
        more: dict[str, Any] = {"member_of_nothing": ctx is None}
        if ctx is not None:
            place = request.place  # type: ignore[attr-defined]  # set by ConsoleScope, with the context
            since: Literal["hours", "days"] = "days" if request.GET.get("span") == "days" else "hours"
            more["first"] = first_page(request, ctx, place.project_name or place.tenant_name, since)
        return super().index(request, more | (extra_context or {}))


site = HouseSite(name="admin")
