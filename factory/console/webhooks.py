"""Pages of webhooks: where events go, how each endpoint does, and what an admin does about it."""

from collections.abc import Callable
from itertools import groupby
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from factory.console.base import OwnPageAdmin
from factory.console.lists.columns import Column, column
from factory.console.scope import context_of
from factory.console.show import cut, link, when
from factory.console.site import site
from factory.kernel.context import Context
from factory.kernel.errors import DomainError, InvalidInput, NotFound, VersionMismatch
from factory.kernel.events import Event, camel, known_consumers, topics
from factory.kernel.models import WebhookDelivery, WebhookSubscription
from factory.kernel.models.webhook import PINGED
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from factory.messaging.consumers import webhooks_of
from factory.messaging.webhooks.commands import (
    change_webhook,
    create_webhook,
    disable_webhook,
    enable_webhook,
    ping_webhook,
    rotate_secret,
)
from factory.messaging.webhooks.signing import new_secret

LAST = 20


@admin.register(WebhookSubscription, site=site)
class WebhookAdmin(OwnPageAdmin[WebhookSubscription]):
    """Endpoints of others that are told of events. Each request is signed, and tried for about a day."""

    view_operation = "ListWebhooks"
    list_display = ("which", "status", "consumer", "wants", "health", "since")
    list_display_links = None
    heading = "Webhooks"
    nothing_yet = (
        "A webhook sends events to an address of yours. An administrator makes the first with New webhook."
    )
    list_filter = ("state",)
    search_fields = ("url", "consumer", "description")
    search_help_text = "Words of the address, the consumer or the description"
    ordering = ("-created_at", "-id")
    list_before_template = "factory/webhooks_about.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [path("new/", view(never_cache(self.new_view)), name="factory_webhook_new")]
        for act in ("change", "disable", "enable", "rotate", "ping"):
            acting = require_POST(never_cache(getattr(self, f"{act}_act")))
            own.append(path(f"<uuid:webhook_id>/{act}-it/", view(acting), name=f"factory_webhook_{act}"))
        return [*own, *super().get_urls()]

    def new_view(self, request: HttpRequest) -> HttpResponse:
        """A form, and for what it sends a page that shows the secret: once."""
        ctx = context_of(request)
        if not may(ctx, "CreateWebhook"):
            raise PermissionDenied("An administrator says where events go.")
        refusal = None
        if request.method == "POST":
            secret = new_secret()
            try:
                made = create_webhook(ctx, **_form(request), secret=secret)
                return self.page_of(request, UUID(made), secret=secret)
            except DomainError as fault:
                refusal = fault
        page = {"title": "New webhook", "refusal": refusal, "kept": _form(request), **_choices(ctx)}
        return self._rendered(request, "factory/webhook_new.html", page, refusal)

    def change_act(self, request: HttpRequest, webhook_id: UUID) -> HttpResponse:
        ctx, sent = context_of(request), _form(request)
        version = _number(request.POST.get("version", ""))
        try:
            change_webhook(ctx, webhook_id=webhook_id, version=version, **sent)
        except NotFound as missing:
            raise Http404(missing.detail) from missing
        except DomainError as refusal:
            seen = None if isinstance(refusal, VersionMismatch) else version
            return self.page_of(request, webhook_id, refusal=refusal, written=sent, version=seen)
        messages.success(request, "The webhook was changed.")
        return HttpResponseRedirect(_url(webhook_id))

    def disable_act(self, request: HttpRequest, webhook_id: UUID) -> HttpResponse:
        reason = request.POST.get("reason", "")
        return self._act(request, webhook_id, disable_webhook, "It is sent nothing more.", reason=reason)

    def enable_act(self, request: HttpRequest, webhook_id: UUID) -> HttpResponse:
        return self._act(request, webhook_id, enable_webhook, "It is sent events again.")

    def ping_act(self, request: HttpRequest, webhook_id: UUID) -> HttpResponse:
        return self._act(request, webhook_id, ping_webhook, "A ping is on its way; see below how it fares.")

    def rotate_act(self, request: HttpRequest, webhook_id: UUID) -> HttpResponse:
        ctx, secret = context_of(request), new_secret()
        try:
            rotate_secret(ctx, webhook_id=webhook_id, secret=secret)
        except DomainError as refusal:
            return self.page_of(request, webhook_id, refusal=refusal)
        return self.page_of(request, webhook_id, secret=secret)

    def _act(
        self, request: HttpRequest, webhook_id: UUID, act: Callable[..., object], done: str, **values: Any
    ) -> HttpResponse:
        ctx = context_of(request)
        return self.act(
            request, lambda: act(ctx, webhook_id=webhook_id, **values), done=done, then=_url(webhook_id)
        )

    def page_of(
        self,
        request: HttpRequest,
        webhook_id: UUID,
        *,
        secret: str = "",
        refusal: DomainError | None = None,
        written: dict[str, Any] | None = None,
        version: int | None = None,
    ) -> HttpResponse:
        """The page; after a refusal with what was `written`, about the `version` that was seen."""
        ctx = context_of(request)
        with reading(ctx):
            row = webhooks_of(ctx).filter(pk=webhook_id).first()
            if row is None:
                raise Http404
            rows = WebhookDelivery.objects.filter(subscription_id=row.id).order_by("-created_at", "-sequence")
            page = {
                "title": row.description or row.url,
                "row": row,
                "deliveries": [(each, _way(each)) for each in rows[:LAST]],
                "secret": secret,
                "refusal": refusal,
                "fields": written or row,
                "changing": written is not None,
                "version": row.version if version is None else version,
                "may_change": may(ctx, "ChangeWebhook"),
                **_choices(ctx),
            }
        return self._rendered(request, "factory/webhook.html", page, refusal)

    def _rendered(
        self, request: HttpRequest, template: str, page: dict[str, Any], refusal: DomainError | None
    ) -> HttpResponse:
        status = refusal.http_status if refusal else 200
        context = {**self.admin_site.each_context(request), "opts": None, **page}
        response = TemplateResponse(request, template, context, status=status)
        response.render()
        response["Cache-Control"] = "no-store"
        return response

    @column("endpoint", lambda row: row.description or row.url)
    def which(self, row: WebhookSubscription) -> SafeString:
        return link(_url(row.id), cut(row.description or row.url, 80))

    wants = Column("events", lambda row: f"{len(row.topics)} kinds" if row.topics else "all")

    @column("health", lambda row: _health(row))
    def health(self, row: WebhookSubscription) -> SafeString | str:
        if row.failures:
            return format_html("{} failures in a row: {}", row.failures, cut(row.last_error, 80))
        return _health(row)

    since = Column("since", "created_at", when)


def _health(row: WebhookSubscription) -> str:
    if row.failures:
        return f"{row.failures} failures in a row: {row.last_error}"
    return "well" if row.succeeded_at else "nothing sent yet"


def _form(request: HttpRequest) -> dict[str, Any]:
    sent = request.POST
    return {
        "url": sent.get("url", "").strip(),
        "topics": sent.getlist("topics"),
        "consumer": sent.get("consumer", "").strip(),
        "description": sent.get("description", "").strip(),
    }


def _choices(ctx: Context) -> dict[str, Any]:
    return {
        "topics": _topics(),
        "known": list(known_consumers()),
        "whole_tenant": ctx.project_id is None,
    }


def _topics() -> list[tuple[str, list[tuple[str, SafeString]]]]:
    """Every topic with what it means, by the service that tells it."""
    told = [(topic, cls) for topic, cls in sorted(topics().items()) if topic != PINGED]
    return [
        (service, [(topic, _meaning(cls)) for topic, cls in each])
        for service, each in groupby(told, lambda one: one[0].partition(".")[0])
    ]


def _meaning(told: type[Event]) -> SafeString:
    """The first paragraph of what its schema says of it; its fields are marked, and called as on the wire."""
    said = " ".join((told.__doc__ or "").split("\n\n")[0].split()).split("`")
    parts = ((format_html("<code>{}</code>", camel(part)) if n % 2 else part,) for n, part in enumerate(said))
    return format_html_join("", "{}", parts)


def _way(row: WebhookDelivery) -> str:
    if row.delivered_at:
        return f"skipped after {row.attempts} tries: {row.error}" if row.set_aside_at else "delivered"
    if row.set_aside_at:
        return f"set aside after {row.attempts} tries: {row.error}"
    return f"{row.attempts} tries so far: {row.error}" if row.attempts else "waiting"


def _url(webhook_id: UUID) -> str:
    return reverse("admin:factory_webhooksubscription_change", args=[webhook_id])


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise InvalidInput("The page did not send the version that it showed. Reload it.")
    return int(text)
