"""The page that shows the settings which change without a restart: the platform's host changes them."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.template.response import TemplateResponse

from factory.console.base import BaseAdmin
from factory.console.site import site
from factory.kernel import reloading
from factory.kernel.errors import FieldError, InvalidInput
from factory.kernel.models import Setting


@admin.register(Setting, site=site)
class SettingAdmin(BaseAdmin[Setting]):
    lead = "What can be changed without a restart, for every tenant; what was decided before stays as it is."

    view_operation = "ReadSettings"
    nothing_yet = "Every setting has a value; those that were changed say so."
    ordering = ("name",)

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
        }
        page = TemplateResponse(request, "factory/settings.html", context)
        return self.in_scope(request, lambda: page)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        raise Http404  # all of them stand on one page


def whole(text: str) -> int | None:
    """A whole number of a form; None for an empty field. Raises `InvalidInput`."""
    if not text.strip():
        return None
    try:
        return int(text)
    except ValueError:
        fault = FieldError("/value", "A whole number, or nothing.")
        raise InvalidInput("That is no whole number.", errors=[fault]) from None
