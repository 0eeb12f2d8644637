"""A person's own page: what they are told, and by which ways."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from factory.console.base import BaseAdmin
from factory.console.scope import context_of
from factory.kernel.errors import DomainError, NotFound
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from notifications.channels.services import SERVICES
from notifications.commands import add_channel, change_channel, change_preference, remove_channel, send_test
from notifications.models import Notification
from notifications.selectors import channels_of, email_of, kinds_by_email, last_of_channels
from notifications.states import ABOUT, CHOOSABLE, FOR_OPERATORS
from projects.selectors import holds_anywhere
from projects.states import Role

EVERYTHING = [str(kind) for kind in CHOOSABLE]


class Mine(BaseAdmin[Notification]):
    """The part of the pages that is each person's own. Nobody sees another's."""

    def mine_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [path("mine/", view(never_cache(self.mine_view)), name="notifications_mine")]
        for name, act in (("email", self.email_act), ("add", self.add_act)):
            acting = view(require_POST(never_cache(act)))
            own.append(path(f"mine/{name}/", acting, name=f"notifications_{name}"))
        for name, at in (("change", self.change_act), ("remove", self.remove_act), ("test", self.test_act)):
            acting = view(require_POST(never_cache(at)))
            own.append(path(f"mine/<uuid:channel_id>/{name}/", acting, name=f"notifications_{name}"))
        return own

    def mine_view(self, request: HttpRequest) -> HttpResponse:
        return self._mine(request)

    def _mine(self, request: HttpRequest, refusal: DomainError | None = None) -> HttpResponse:
        ctx = context_of(request)
        if not may(ctx, "ReadOwnNotifications"):
            raise Http404
        subject = ctx.actor.subject
        with reading(ctx):
            kinds, version = kinds_by_email(subject)
            channels = list(channels_of(subject).order_by("name"))
            last = last_of_channels(channels)
            page = {
                "title": "My notifications",
                "opts": None,
                "refusal": refusal,
                "sent": {**request.POST.dict(), "kinds": request.POST.getlist("kinds")} if refusal else {},
                "email": email_of(subject, ctx.project_id),
                "email_on": settings.FACTORY_EMAIL_ON,
                "kinds": kinds,
                "version": version,
                **_offered(subject),
                "everything": EVERYTHING,
                "channels": [(row, last.get(row.id), SERVICES[row.service].name) for row in channels],
                "services": list(SERVICES.values()),
            }
            status = refusal.http_status if refusal else 200
            context = {**self.admin_site.each_context(request), **page}
            response = TemplateResponse(request, "notifications/mine.html", context, status=status)
            response.render()
        return response

    def email_act(self, request: HttpRequest) -> HttpResponse:
        values = {"kinds": request.POST.getlist("kinds"), "version": _number(request, "version")}
        return self._own_act(request, change_preference, "Your choice holds from now on.", **values)

    def add_act(self, request: HttpRequest) -> HttpResponse:
        sent = request.POST
        values: dict[str, Any] = {"name": sent.get("name", ""), "address": sent.get("address", "").strip()}
        values["kinds"] = sent.getlist("kinds")
        return self._own_act(request, add_channel, "Added. Send a test to see one arrive.", **values)

    def change_act(self, request: HttpRequest, channel_id: UUID) -> HttpResponse:
        values: dict[str, Any] = {"name": request.POST.get("name", ""), "channel_id": channel_id}
        values |= {"kinds": request.POST.getlist("kinds"), "version": _number(request, "version")}
        return self._own_act(request, change_channel, "The channel was changed.", **values)

    def remove_act(self, request: HttpRequest, channel_id: UUID) -> HttpResponse:
        done = "Removed. Its address is forgotten."
        return self._own_act(request, remove_channel, done, channel_id=channel_id)

    def test_act(self, request: HttpRequest, channel_id: UUID) -> HttpResponse:
        done = "A test is on its way; see below how it fares."
        return self._own_act(request, send_test, done, channel_id=channel_id)

    def _own_act(
        self, request: HttpRequest, command: Callable[..., object], done: str, **values: Any
    ) -> HttpResponse:
        """A refusal comes back with everything that was written but the address: a page holds no secret."""
        try:
            command(context_of(request), **values)
        except NotFound as missing:
            raise Http404(missing.detail) from missing
        except DomainError as refusal:
            return self._mine(request, refusal)
        messages.success(request, done)
        return HttpResponseRedirect(reverse("admin:notifications_mine"))


def _offered(subject: str) -> dict[str, Any]:
    """Return what there is to choose for this person. What only operators are told of is not offered to
    others; a choice of it that they made before is sent along as it is."""
    concerned = holds_anywhere(subject, Role.OPERATOR)
    offered = [kind for kind in CHOOSABLE if concerned or kind not in FOR_OPERATORS]
    return {
        "every": [(str(kind), ABOUT[kind]) for kind in offered],
        "kept": [str(kind) for kind in CHOOSABLE if kind not in offered],
    }


def _number(request: HttpRequest, name: str) -> int:
    text = request.POST.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= 18 else -1
