"""The admin site of the control plane."""

from functools import partial
from typing import Any, Literal

from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from unfold.sites import UnfoldAdminSite

from factory.console.asking import not_understood, one_asked
from factory.console.dashboard import counts_of, first_page, number
from factory.console.menu import where
from factory.console.scope import context_of, places_of, switch_place
from factory.console.searching import LONGEST, only, search, sought
from factory.console.sign_in import set_password
from factory.identity.sign_in import SignInForm
from factory.kernel.context import Context


class ConsoleSite(UnfoldAdminSite):
    """The console: its pages are read in the place that the person chose."""

    site_title = "Factory Control Plane"
    site_header = "Factory Control Plane"
    index_title = "First page"
    login_form = SignInForm

    def get_urls(self) -> list[URLPattern]:
        own = [
            path("place/", switch_place, name="switch_place"),
            path("sign-in/<uidb64>/<token>/", partial(set_password, self), name="sign_in_link"),
        ]
        return [*own, *super().get_urls()]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context: dict[str, Any] = super().each_context(request)
        context["places"] = places_of(request)
        context["place"] = getattr(request, "place", None)
        return context

    def get_sidebar_list(self, request: HttpRequest) -> list[dict[str, Any]]:
        """The side bar, with the one entry that a page belongs to, and how much waits beside some."""
        groups: list[dict[str, Any]] = super().get_sidebar_list(request)
        waiting, here = counts_of(request), where(groups, request.path)
        for item in (item for group in groups for item in group["items"]):
            found = waiting.get(item.get("counts", ""), 0) if item["has_permission"] else 0
            item["waiting"] = number(found) if found else ""
            item["active"] = here is not None and item is here[1]
        return groups

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        """Return what the words could mean in this place; what is named by its whole id is opened at once."""
        ctx, text = context_of(request), request.GET.get("q", "")
        if len(text) > LONGEST:
            told = f"The search has more than {LONGEST} characters."
            not_understood(request, told, f"Its first {LONGEST} are looked for.")
        found = search(ctx, text)
        hit = only(found)
        if hit is not None:
            return HttpResponseRedirect(hit.url)
        context = {
            **self.each_context(request),
            "title": "Search",
            "searched": sought(text).text,
            "found": [each for each in found if each.hits],
            "looked": found,
            "pages": self._pages_like(request, text),
        }
        return TemplateResponse(request, "factory/search.html", context | (extra_context or {}))

    def _pages_like(self, request: HttpRequest, text: str) -> list[tuple[str, str]]:
        """Entries of the side bar whose titles have the words."""
        words = sought(text).text.lower()
        items = [item for group in self.get_sidebar_list(request) for item in group["items"]]
        open_ = [(str(item["title"]), str(item["link"])) for item in items if item["has_permission"]]
        return [each for each in open_ if len(words) > 1 and words in each[0].lower()]

    def has_permission(self, request: HttpRequest) -> bool:
        """Whoever is a member somewhere may enter; what they see there, their roles decide."""
        return bool(request.user.is_active and request.user.is_authenticated)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        ctx: Context | None = getattr(request, "context", None)
        more: dict[str, Any] = {"member_of_nothing": ctx is None}
        if ctx is not None:
            place = request.place  # type: ignore[attr-defined]  # set by ConsoleScope, with the context
            asked = one_asked(request, "span", ("hours", "days"), "hours", "The last 24 hours are shown.")
            since: Literal["hours", "days"] = "days" if asked == "days" else "hours"
            drawn = request.GET.get("part") != "now"  # an open page asks again for all but the charts
            more["first"] = first_page(
                request, ctx, place.project_name or place.tenant_name, since, drawn=drawn
            )
        return super().index(request, more | (extra_context or {}))


site = ConsoleSite(name="admin")
