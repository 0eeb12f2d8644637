"""Workers that serve this tenant: alive or not, what they can do, how busy they are, and who drains them."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import DateTimeField, F, Func, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from factory.console.base import OwnPageAdmin
from factory.console.lists.columns import Column, column
from factory.console.lists.filters import one_of
from factory.console.lists.pages import BaseList
from factory.console.scope import as_uuid, context_of
from factory.console.settings import whole
from factory.console.show import badge, seen, span, timed
from factory.console.site import site
from factory.kernel.context import Context
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from runs.admin.actions.revoke import revoke_view
from runs.commands import change_quota, undrain
from runs.dispatch import drain_from_outside
from runs.models import Lease, TenantQuota, Worker
from runs.selectors.figures import in_hands
from runs.selectors.pools import serves_others, set_by_the_platform
from runs.selectors.waiting import slots_used
from runs.states import LEASE_CURRENT, PageState

ONLINE_SECONDS = 60
SILENT = Q(last_seen_at__lt=F("at") - timedelta(seconds=ONLINE_SECONDS))
STANDING = {
    "Active": ~SILENT & Q(draining_at=None),
    PageState.DRAINING: ~SILENT & Q(draining_at__isnull=False),
    PageState.OFFLINE: SILENT,
}
"""What a worker's state is called, and of which workers it is that of, at the moment `at`."""
DRAINERS = "An Operator or a PlatformAdmin drains workers."


@admin.register(Worker, site=site)
class WorkerAdmin(OwnPageAdmin[Worker]):
    """Workers of the pools that serve this tenant, and how many of their slots are in use."""

    view_operation = "ListWorkers"
    list_display = ("name", "pool", "online", "seen", "slots", "drain", "abilities", "version")
    list_select_related = ("pool",)
    list_before_template = "runs/workers_about.html"
    nothing_yet = (
        "A worker stands here as soon as it has registered with a token of a pool that serves this tenant."
    )
    order_words = ("By name", "Names backwards")
    list_filter = (one_of("state", "state", tuple(STANDING), asks=STANDING),)
    search_fields = ("name", "version", "pool__name")
    search_help_text = "Words of a name, a pool or a version"
    ordering = ("name", "id")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("drain/", view(require_POST(self.drain_view)), name="runs_worker_drain"),
            path("undrain/", view(require_POST(self.undrain_view)), name="runs_worker_undrain"),
            path("quota/", view(require_POST(self.quota_view)), name="runs_quota"),
            path("<uuid:worker_id>/revoke/", view(self.revoke_view), name="runs_revoke_worker"),
        ]
        return [*own, *super().get_urls()]

    def revoke_view(self, request: HttpRequest, worker_id: UUID) -> HttpResponse:
        ctx = context_of(request)
        with reading(ctx):
            row = self.get_queryset(request).filter(pk=worker_id).first()
            held = slots_used([worker_id]).get(worker_id, 0)
        if row is None:
            raise Http404
        _only(ctx, "RevokeWorker", "An Operator or an administrator revokes a worker's credential.")
        if serves_others(ctx, row.pool.tenants):
            raise PermissionDenied("The worker works for other tenants too: the platform revokes it.")
        return revoke_view(self.admin_site, request, row, held)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        at = Func(function="clock_timestamp", output_field=DateTimeField())
        tenant_id = context_of(request).tenant_id
        return (
            Worker.objects.filter(pool__tenants__contains=[tenant_id]).annotate(at=at).select_related("pool")
        )

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        ctx = context_of(request)
        with reading(ctx):  # the list joins it
            quota = TenantQuota.objects.first()
            platforms = set_by_the_platform(ctx, quota)
            share = {
                "quota": quota and quota.open_attempts,
                "hands": in_hands(Lease.objects.all()),
                "platforms": platforms,
                "may_change_quota": not platforms and may(ctx, "ChangeTenantQuota"),
            }
            return super().changelist_view(request, {**(extra_context or {}), **share})

    def page_of(self, request: HttpRequest, key: UUID) -> HttpResponseBase:
        row = self.get_queryset(request).filter(pk=key).first()
        if row is None:
            raise Http404
        return self.in_scope(request, lambda: self._page(request, row))

    def _page(self, request: HttpRequest, row: Worker) -> TemplateResponse:
        current = Lease.objects.filter(worker_id=row.pk, state__in=sorted(LEASE_CURRENT))
        leases = list(current.select_related("step", "run").order_by("fencing_token"))
        ctx = context_of(request)
        project_id, others = ctx.project_id, serves_others(ctx, row.pool.tenants)
        here = [each for each in leases if project_id in (None, each.run.project_id)]
        context = {
            **self.admin_site.each_context(request),
            "title": f"Worker {seen(row.name)}",
            "opts": self.opts,
            "worker": row,
            "state": self.online(row),
            "sentence": _sentence(row),
            "last_seen": self.seen(row),
            "abilities": self.abilities(row),
            "used": slots_used([row.pk]).get(row.pk, 0),
            "leases": here,
            "elsewhere": len(leases) - len(here),
            "may_read_runs": may(ctx, "ReadRun"),
            "may_revoke": not others and may(ctx, "RevokeWorker"),
            "may_drain": not others and may(ctx, "DrainWorkerByOperator"),
            "others": others,
        }
        return TemplateResponse(request, "runs/worker.html", context)

    def drain_view(self, request: HttpRequest) -> HttpResponse:
        ctx, key, reason = context_of(request), _worker(request), request.POST.get("reason", "")
        _only(ctx, "DrainWorkerByOperator", DRAINERS)
        return self.act(
            request,
            lambda: drain_from_outside(ctx, worker_id=key, reason=reason),
            done="Nothing new is offered to it. What it holds it may finish.",
            then=reverse("admin:runs_worker_change", args=[key]),
        )

    def undrain_view(self, request: HttpRequest) -> HttpResponse:
        ctx, key, reason = context_of(request), _worker(request), request.POST.get("reason", "")
        _only(ctx, "UndrainWorker", DRAINERS)
        return self.act(
            request,
            lambda: undrain(ctx, worker_id=key, reason=reason),
            done="It is offered work again.",
            then=reverse("admin:runs_worker_change", args=[key]),
        )

    def quota_view(self, request: HttpRequest) -> HttpResponse:
        ctx, sent = context_of(request), request.POST
        _only(ctx, "ChangeTenantQuota", "A PlatformAdmin changes the quota.")
        return self.act(
            request,
            lambda: change_quota(
                ctx, open_attempts=whole(sent.get("open_attempts", "")), reason=sent.get("reason", "")
            ),
            done="The quota holds from now on. What is at work already goes on.",
            then=reverse("admin:runs_worker_changelist"),
        )

    online = Column("state", lambda row: _state(row), badge)

    @column("last seen", "last_seen_at")
    def seen(self, row: Any) -> SafeString:
        return timed(row.last_seen_at, f"{span((row.at - row.last_seen_at).total_seconds())} ago")

    @column("slots in use", lambda row: f"{row.open_leases} of {row.max_concurrency}")
    def slots(self, row: Any) -> SafeString:
        """A bar beside the words; leases of whichever tenant use a slot."""
        used = row.open_leases
        percent = min(100, round(100 * used / row.max_concurrency))
        return format_html(
            '<div class="fc-bar" aria-hidden="true"><span style="width:{}%"></span></div>{} of {}',
            percent, used, row.max_concurrency,
        )  # fmt: skip

    abilities = Column(
        "can do", lambda row: ["everything" if able == "*/*" else able for able in row.capabilities]
    )

    drain = Column("drain", lambda row: _drain(row))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        return BusyList


class BusyList(BaseList):
    """A list whose page of workers carries how many leases each has, read with one query for all."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        found = slots_used([row.pk for row in rows])
        for row in rows:
            row.open_leases = found.get(row.pk, 0)


def _only(ctx: Context, operation: str, who: str) -> None:
    """Raises `PermissionDenied` with who does this, before the command would refuse it."""
    if not may(ctx, operation):
        raise PermissionDenied(who)


def _state(row: Any) -> str:
    if _silent(row):
        return PageState.OFFLINE
    return PageState.DRAINING if row.draining_at else "Active"


def _drain(row: Worker) -> str:
    if row.drained_by:
        return f"by {row.drained_by}"
    return "by itself" if row.draining_at else "no"


def _silent(row: Any) -> bool:
    """Tell whether it has not reported for so long that nobody counts on it."""
    return bool((row.at - row.last_seen_at).total_seconds() > ONLINE_SECONDS)


def _sentence(row: Worker) -> str:
    if row.drained_by:
        return f"{row.drained_by} drained it: nothing new is offered to it until somebody ends that."
    if row.draining_at:
        return "It drains by itself: nothing new is offered to it until it registers again."
    if _silent(row):
        return "It is silent: it gets nothing until it reports again, and what it holds is recovered in time."
    return "It is offered work whenever it asks for some and has a free slot."


def _worker(request: HttpRequest) -> UUID:
    key = as_uuid(request.POST.get("worker", ""))
    if key is None:
        raise Http404
    return key
