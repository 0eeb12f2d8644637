"""Pages of events: who is told of them, how far behind each is, and what was set aside."""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import conditional_escape
from django.views.decorators.http import require_POST

from factory.console.cards import ITSELF
from factory.console.evidence import EvidenceAdmin, way
from factory.console.links import Reference
from factory.console.lists.columns import Column
from factory.console.lists.filters import one_of
from factory.console.scope import as_uuid, context_of
from factory.console.show import parted, span, when
from factory.console.site import site
from factory.kernel.commanding import Command
from factory.kernel.context import Context
from factory.kernel.events import topics
from factory.kernel.models import OutboxEvent
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from factory.messaging.consumers import (
    INSIDE,
    NOT_SUBSCRIBED,
    PLATFORM,
    Consumer,
    SetAside,
    consumers,
    retry_delivery,
    set_aside,
    skip_delivery,
)


class DeliveryFilter(admin.SimpleListFilter):
    """Offer how far events have come; each answer is in an index of its own."""

    title = "delivery"
    parameter_name = "delivery"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("waiting", "waits for a consumer"), ("aside", "set aside")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in ("waiting", "aside"):
            return queryset
        waits = queryset.filter(Q(handled_at=None) | Q(streamed_at=None))
        if self.value() == "waiting":
            return waits
        return waits.filter(
            Q(handled_at=None, handle_set_aside_at__isnull=False)
            | Q(streamed_at=None, stream_set_aside_at__isnull=False)
        )


@admin.register(OutboxEvent, site=site)
class EventAdmin(EvidenceAdmin):
    """Every event, and how far it has come on its way to handlers and streams."""

    heading = "Events"
    shows_stored = True
    nothing_yet = "What happens here is told as events; the first run tells the first ones."
    large = True
    list_display = ("at", "what", "about_", "to_handlers", "to_streams")
    list_filter = (DeliveryFilter, one_of("topic", "topic", lambda request: sorted(topics())))
    search_help_text = "The whole id of an event or of a run"
    search_fields = ("id", "stream_id", "run_id")
    whole_ids = ("id", "run_id")
    ordering = ("-occurred_at", "-id")

    def headline(self, row: OutboxEvent) -> str:
        return row.topic

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("consumers/", view(self.consumers_view), name="factory_consumers"),
            path("<uuid:event_id>/retry/", view(require_POST(self.retry_view)), name="factory_event_retry"),
            path("<uuid:event_id>/skip/", view(require_POST(self.skip_view)), name="factory_event_skip"),
        ]
        return [*own, *super().get_urls()]

    def consumers_view(self, request: HttpRequest) -> HttpResponse:
        """Consumers with their lag, and what was set aside for them."""
        ctx = context_of(request)
        if not may(ctx, "ListConsumers"):
            raise PermissionDenied("An Operator or an administrator looks after consumers.")
        with reading(ctx):
            everyone = consumers(ctx)
            page = {
                **self.admin_site.each_context(request),
                "title": "Consumers of events",
                "consumers": [(_name(each), each, _lag(each)) for each in everyone if _subscribed(each)],
                "unsubscribed": [each for each in everyone if not _subscribed(each)],
                "set_aside": [(_told(each), each, _may_skip(ctx, each)) for each in set_aside(ctx)],
                "may_retry": may(ctx, "RetryDelivery"),
            }
            response = TemplateResponse(request, "factory/consumers.html", page)
            response.render()
        return response

    def retry_view(self, request: HttpRequest, event_id: UUID) -> HttpResponse:
        """Offer a set-aside event to its consumer again."""
        told = "The event is offered again, with all its tries before it."
        return self._about(request, event_id, retry_delivery, told)

    def skip_view(self, request: HttpRequest, event_id: UUID) -> HttpResponse:
        """Go past a set-aside event, which its consumer then never gets."""
        told = "The event is skipped. What waited behind it goes on."
        return self._about(request, event_id, skip_delivery, told)

    def _about(
        self, request: HttpRequest, event_id: UUID, command: Command[Any, Any], done: str
    ) -> HttpResponse:
        ctx, sent = context_of(request), request.POST
        return self.act(
            request,
            lambda: command(
                ctx,
                event_id=event_id,
                kind=sent.get("kind", ""),
                webhook_id=as_uuid(sent.get("webhook", "")),
                reason=sent.get("reason", ""),
            ),
            done=done,
            then=reverse("admin:factory_consumers"),
        )

    at = Column("time", "occurred_at", when)
    what = Column("event", "topic", parted)
    about_ = Column("about", lambda row: _about(row), conditional_escape)
    to_handlers = Column(
        "handlers", lambda row: way(row.handled_at, row.handle_set_aside_at, row.handle_attempts)
    )

    to_streams = Column(
        "streams", lambda row: way(row.streamed_at, row.stream_set_aside_at, row.stream_attempts)
    )


OF = {
    "aliases": ("alias", ""),
    "approvals": ("approval", "approvalId"),
    "delegations": ("delegation", "delegationId"),
    "projects": ("project", "projectId"),
    "releases": ("release", "releaseId"),
    "reservations": ("reservation", "reservationId"),
    "run-templates": ("run-template", "templateId"),
    "waivers": ("waiver", "waiverId"),
    "webhooks": ("webhook", "webhookId"),
}
"""What an event is of, by the second word of its topic, and where its payload has the id of that; where it
has none, the chain in which it stands is that of the thing."""


def _about(row: OutboxEvent) -> Reference | str:
    """Return what it is about, as the journal says it: of what happens in a run, the run."""
    if row.run_id:
        return Reference("run", row.run_id)
    if revision := row.payload.get("revision"):
        url = reverse("admin:approvals_policyrevision_changelist")
        return Reference("policy-revision", revision, called=revision, url=url)
    kind, member = OF.get(row.topic.split(".")[1], ("", ""))
    if kind == "alias":
        called = f"{row.payload.get('asset', '')} {row.payload.get('alias', '')}".strip()
        return Reference(kind, row.stream_id, called=called)
    return Reference(kind or "chain", row.payload.get(member) or row.stream_id)


def _may_skip(ctx: Context, each: SetAside) -> bool:
    return may(ctx, "SkipDelivery") and (each.kind not in INSIDE or PLATFORM in ctx.actor.roles)


def _subscribed(each: Consumer) -> bool:
    return each.kind != NOT_SUBSCRIBED


def _name(each: Consumer) -> str:
    return ITSELF.get(each.kind, each.name)


def _lag(each: Consumer) -> str:
    return span(each.lag_seconds) if each.waiting else "nothing waits"


def _told(each: SetAside) -> str:
    of = ITSELF.get(each.kind, each.consumer)
    return f"{of} did not take it in {each.attempts} tries: {each.reason}"
