"""Leases that somebody has now, with the time that each has left."""

from typing import Any

from django.contrib import admin
from django.db.models import DateTimeField, Func, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory.console.base import BaseAdmin
from factory.console.lists.columns import Column, column, written
from factory.console.scope import context_of
from factory.console.show import link, outline, seen, short, span, timed, when
from factory.console.site import site
from factory.kernel.clock import now
from factory.kernel.tenancy import reading
from runs.models import Lease
from runs.operations.timing import grace
from runs.selectors.figures import in_hands
from runs.states import LEASE_CURRENT, RUN_TERMINAL, LeaseState, RunState


def _next(row: Any, end: str) -> SafeString:
    """Return what follows at the end of a lease's grace, as that is written."""
    if row.expires_at + grace() <= row.at:
        return format_html("Overdue since {}: nobody has taken it back yet.", end)
    return format_html("Waited for until {}, then {}", end, _then(row))


def _then(row: Lease) -> str:
    """Return what becomes of the attempt when a lease ends without a word of its holder."""
    if row.acquired_at is None:
        return "offered to another worker."
    if row.run.state == RunState.CANCELLING:
        return "Uncertain; the run is Cancelled once nobody holds any of it."
    if row.run.state in RUN_TERMINAL:
        return "closed; the run is over, and nothing is tried again."
    if row.step.side_effect_class in ("read", "sandbox"):
        return "tried again, if attempts are left."
    return "Uncertain if it may have acted, else it waits on or is tried again, if attempts are left."


@admin.register(Lease, site=site)
class LeaseAdmin(BaseAdmin[Lease]):
    """Attempts that workers hold or are offered now, those first that end first. A renewal moves the end."""

    view_operation = "ListRuns"
    list_display = ("what", "klass", "status", "worker", "left", "then", "token", "since")
    list_display_links = None
    heading = "Open leases"
    list_select_related = ("step", "run")
    list_filter = ("state",)
    nothing_yet = "No worker holds anything. One that takes an attempt gets a lease, which stands here."
    order_words = ("Ends first", "Ends last")
    list_before_template = "runs/leases_about.html"
    search_fields = ("worker_name", "run__id")
    search_help_text = "Words of a worker's name, or the whole id of a run"
    whole_ids = ("id", "run_id")
    ordering = ("expires_at", "id")
    list_per_page = 100
    moving = (
        "A lease moves when it is renewed, so while you turn the pages one may be missing or stand twice. "
        "The file has each of them, as they are at one moment."
    )
    fields = ("what", "status", "worker", "left", "then", "token", "since")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        ctx = context_of(request)
        at = Func(function="clock_timestamp", output_field=DateTimeField())
        rows = Lease.objects.filter(state__in=sorted(LEASE_CURRENT)).annotate(at=at)
        if ctx.project_id is not None:
            rows = rows.filter(run__project_id=ctx.project_id)
        return rows.select_related("step", "run")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        ctx = context_of(request)
        with reading(ctx):  # the list joins it
            here = Lease.objects.filter(**{"run__project_id": ctx.project_id} if ctx.project_id else {})
            return super().changelist_view(request, {**(extra_context or {}), "hands": in_hands(here)})

    def headline(self, row: Lease) -> str:
        over = row.expires_at <= now()
        has = (
            ("held" if over else "holds")
            if row.state == LeaseState.HELD
            else "was offered"
            if over
            else "is offered"
        )
        return f"{row.worker_name} {has} {row.step.node_key} of {row.run.workflow_id}"

    @column("step", lambda row: f"{row.step.node_key} of {row.run.workflow_id} {row.run_id}")
    def what(self, row: Lease) -> SafeString:
        words = format_html("{} of {} {}", row.step.node_key, row.run.workflow_id, short(row.run_id))
        return link(reverse("admin:runs_run_change", args=[row.run_id]), words)

    klass = Column("class", "step.side_effect_class", outline)

    @column("worker", "worker_name")
    def worker(self, row: Lease) -> SafeString:
        return link(reverse("admin:runs_worker_change", args=[row.worker_id]), seen(row.worker_name))

    @column("time left", "expires_at", in_files="ends")
    def left(self, row: Any) -> SafeString:
        """Counted down in the browser, where scripts run."""
        seconds = (row.expires_at - row.at).total_seconds()
        words = span(seconds) if seconds > 0 else f"over for {span(seconds)}"
        return format_html(
            '<time data-countdown="{}" datetime="{}">{}</time>',
            round(seconds), row.expires_at.isoformat(), words,
        )  # fmt: skip

    @column("and then", lambda row: _next(row, written(row.expires_at + grace())))
    def then(self, row: Lease) -> SafeString:
        end = row.expires_at + grace()
        return _next(row, timed(end, f"{end:%H:%M:%S} UTC"))

    token = Column("token", "token_words")
    since = Column("since", lambda row: row.acquired_at or row.offered_at, when)
