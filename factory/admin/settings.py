"""The page of the settings that change without a restart."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from factory import reloading
from factory.admin.base import HouseAdmin
from factory.admin.scope import context_of
from factory.admin.site import site
from factory.changing import change_setting
from factory.errors import FieldError, InvalidInput
from factory.identity.permissions import may
from factory.models import Setting


@admin.register(Setting, site=site)
class SettingAdmin(HouseAdmin[Setting]):
    """What can be changed while the house runs, for every tenant; what was decided before stays as it is."""

    view_operation = "ReadSettings"
    nothing_yet = "Every setting has a value; those that were changed say so."
    ordering = ("name",)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [path("set/", view(require_POST(self.set_view)), name="factory_setting_set")]
        return [*own, *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        if request.method not in ("GET", "HEAD"):
            raise Http404
        if not self.has_view_permission(request):
            raise PermissionDenied("Your roles and grants here do not read the settings.")
        context = {
            **self.admin_site.each_context(request),
            "title": "Settings",
            "opts": None,
            "about": self.about,
            "settings": reloading.every(),
            "may_change": may(context_of(request), "ChangeSetting"),
        }
        page = TemplateResponse(request, "factory/settings.html", context)
        return self.in_scope(request, lambda: page)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        raise Http404  # all of them stand on one page

    def set_view(self, request: HttpRequest) -> HttpResponse:
        ctx, sent = context_of(request), request.POST
        return self.act(
            request,
            lambda: change_setting(
                ctx,
                name=sent.get("name", ""),
                value=whole(sent.get("value", "")),
                reason=sent.get("reason", ""),
            ),
            done="It holds from now on, within moments in every process.",
            then=reverse("admin:factory_setting_changelist"),
        )


def whole(text: str) -> int | None:
    """A whole number of a form; None for an empty field. Raises `InvalidInput`."""
    if not text.strip():
        return None
    try:
        return int(text)
    except ValueError:
        fault = FieldError("/value", "A whole number, or nothing.")
        raise InvalidInput("That is no whole number.", errors=[fault]) from None
