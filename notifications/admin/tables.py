"""The list of what was to be told to whom, and the way from a message to its request."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString

from factory.console.base import BaseAdmin
from factory.console.confirming import Act, Confirmation, act_on
from factory.console.lists.columns import Column, column
from factory.console.lists.filters import one_of
from factory.console.scope import as_uuid, context_of, places_of
from factory.console.show import badge, link, seen, short, when
from factory.console.site import site
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from notifications.admin.preferences import Mine
from notifications.commands import retry_notification
from notifications.models import Notification
from notifications.selectors import STATE_FILTERS, notices_about, notifications_of
from notifications.states import Kind, NotificationState


class NotificationStateFilter(admin.SimpleListFilter):
    """Offer what needs a person first."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            (fate.value, fate.value)
            for fate in (
                NotificationState.SET_ASIDE,
                NotificationState.WAITING,
                NotificationState.SENT,
                NotificationState.DROPPED,
            )
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Notification]) -> QuerySet[Notification]:
        chosen = self.value() or ""
        return (
            queryset.filter(**STATE_FILTERS[NotificationState(chosen)])
            if chosen in NotificationState.values
            else queryset
        )


@admin.register(Notification, site=site)
class NotificationAdmin(Mine, BaseAdmin[Notification]):
    """Messages to people, and how each fares: tried for a day, then set aside until somebody retries."""

    view_operation = "ListNotifications"
    list_before_template = "notifications/list_about.html"
    list_display = ("what", "status", "subject", "way", "attempts", "last_error", "since", "request_id")
    list_display_links = None
    heading = "Notifications"
    nothing_yet = "When somebody has to be told of a request, what was sent to whom stands here."
    large = True
    list_filter = (NotificationStateFilter, "medium", one_of("notice__kind", "kind", Kind.values))
    list_select_related = ("notice", "channel")
    search_fields = ("subject",)
    search_help_text = "A whole address of a person, or the id of a request"
    ordering = ("-created_at", "-id")
    fields = ("what", "status", "subject", "way", "attempts", "last_error", "since", "sent", "request_id")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Notification]:
        return notifications_of(context_of(request))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        more = {**(extra_context or {}), "email_on": settings.FACTORY_EMAIL_ON}
        return super().changelist_view(request, more)

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        key = as_uuid(search_term.strip())
        if key is None:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(notice__in=notices_about(key)), False

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("open/<uuid:approval_id>/", view(self.open_view), name="notifications_open"),
            path("<uuid:notification_id>/retry/", view(self.retry_view), name="notifications_retry"),
        ]
        return [*own, *self.mine_urls(), *super().get_urls()]

    def open_view(self, request: HttpRequest, approval_id: UUID) -> HttpResponse:
        """Lead on to a request, or first ask to change to the place in which it stands. Nothing is decided
        and nothing is changed by opening a link."""
        tenant_id, _, project = request.GET.get("in", "").partition("/")
        page = reverse("admin:approvals_approvalrequest_change", args=[approval_id])
        fitting = [
            place
            for place in places_of(request)
            if place.tenant_id == tenant_id and (place.project_id is None or str(place.project_id) == project)
        ]
        if not fitting:
            raise Http404
        current = getattr(request, "place", None)
        if current in fitting:
            return HttpResponseRedirect(page)
        context = {
            **self.admin_site.each_context(request),
            "title": "In another place",
            "opts": None,
            "wanted": fitting[-1],
            "page": page,
        }
        return TemplateResponse(request, "notifications/elsewhere.html", context)

    def retry_view(self, request: HttpRequest, notification_id: UUID) -> HttpResponse:
        """Ask why, and send it again."""
        ctx = context_of(request)
        if not may(ctx, "RetryNotification"):
            raise PermissionDenied("An Operator or a PlatformAdmin sends notifications again.")
        with reading(ctx):
            row = self.get_queryset(request).filter(pk=notification_id).first()
            if row is None:
                raise Http404
            facts = [
                ("What", self.what(row)), ("To", row.subject), ("By", self.way(row)),
                ("Tries", row.attempts), ("Last error", seen(row.error)),
            ]  # fmt: skip
        back = reverse("admin:notifications_notification_changelist")
        question = Confirmation(
            title="Send it again",
            lead="It is offered again, with all its tries before it.",
            button="Send it again",
            back=back,
            facts=facts,
            consequences=("A question that was closed meanwhile is not sent any more.",),
            reason="Why it will arrive now",
            danger=False,
        )
        return act_on(
            self.admin_site,
            request,
            lambda: question,
            lambda reason: retry_notification(ctx, notification_id=notification_id, reason=reason),
            done="It is on its way again.",
            then=back,
        )

    def acts(self, request: HttpRequest, row: Notification | None) -> list[Act]:
        if row is None or row.set_aside_at is None or not may(context_of(request), "RetryNotification"):
            return []
        return [Act("Send it again", reverse("admin:notifications_retry", args=[row.id]))]

    @column("what", "notice.kind")
    def what(self, row: Notification) -> SafeString:
        return link(reverse("admin:notifications_notification_change", args=[row.id]), row.notice.kind)

    status = Column("state", "state", badge)
    way = Column("by", lambda row: f"a channel ({row.channel.service})" if row.channel else "e-mail")
    last_error = Column("last error", "error", seen)
    since = Column("made", "created_at", when)
    sent = Column("sent", "sent_at", when)
    request_id = Column("request", "notice.approval_id", lambda key: link(_request_url(key), short(key)))


def _request_url(approval_id: UUID) -> str:
    return reverse("admin:approvals_approvalrequest_change", args=[approval_id])
