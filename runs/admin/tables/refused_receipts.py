"""Receipts that were not taken, for whoever has to find out what was paid."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory.console.base import BaseAdmin
from factory.console.lists.columns import Column, column
from factory.console.lists.filters import one_of
from factory.console.scope import context_of
from factory.console.show import link, pretty, seen, short, when
from factory.console.site import site
from factory.kernel.hashing import storable
from runs.models import Receipt, RefusedReceipt
from runs.operations.refusing import CONFLICT, FAULTY
from runs.permissions import sees_refused
from runs.selectors.runs import may_see_payloads

HIDDEN = "not shown: it takes the grant payloads"


@admin.register(RefusedReceipt, site=site)
class RefusedReceiptAdmin(BaseAdmin[RefusedReceipt]):
    """Receipts that workers sent and that were not taken, with the reason. Each may be a call that was paid
    and stands in no usage: compare it with what the provider says."""

    view_operation = "ListRefusedReceipts"
    heading = "Refused receipts"
    nothing_yet = "A receipt that is faulty, or quarrels with one that stands, would be kept here."
    large = True
    list_display = ("at", "run_of", "call", "why", "own")
    list_display_links = ("own",)
    list_select_related = ("run", "step", "lease", "recorded")
    list_filter = (one_of("code", "why", (CONFLICT, FAULTY)),)
    whole_ids = ("id", "run_id")
    search_fields = ("receipt_id", "run__id", "name")
    search_help_text = "The whole id of a run or a receipt, or the name of a model or tool"
    ordering = ("-refused_at", "-id")
    fields = ("at", "run_of", "step_of", "worker", "call", "receipt", "why", "came", "stands")
    readonly_fields = fields

    def has_view_permission(self, request: HttpRequest, obj: RefusedReceipt | None = None) -> bool:
        return super().has_view_permission(request, obj) and sees_refused(request.context)  # type: ignore[attr-defined]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        ctx = context_of(request)
        rows = RefusedReceipt.objects.select_related(*self.list_select_related)
        return rows if ctx.project_id is None else rows.filter(run__project_id=ctx.project_id)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            row.open = may_see_payloads(context_of(request))
        return row

    def headline(self, row: RefusedReceipt) -> str:
        return f"A receipt of {row.name or 'a call'} was refused"

    at = Column("refused", "refused_at", when)

    @column("run", lambda row: f"{row.run.workflow_id} {row.run_id}")
    def run_of(self, row: RefusedReceipt) -> SafeString:
        words = format_html("{} {}", seen(row.run.workflow_id), short(row.run_id))
        return link(reverse("admin:runs_run_change", args=[row.run_id]), words)

    step_of = Column("step", "step.node_key")
    worker = Column("worker", "lease.worker_name", seen)

    @column(
        "call of",
        lambda row: f"{row.name} {row.kind} of {row.provider}" if row.name or row.provider else "not said",
    )
    def call(self, row: RefusedReceipt) -> SafeString | str:
        if not row.name and not row.provider:
            return "not said"
        told = '{} <small class="fc-soft">{} of {}</small>'
        return format_html(told, seen(row.name), seen(row.kind), seen(row.provider))

    receipt = Column("receipt id", lambda row: row.receipt_id or "not said", seen)

    @column("why", lambda row: f"{row.code} {row.detail}")
    def why(self, row: RefusedReceipt) -> SafeString:
        return format_html('{} <div class="fc-soft">{}</div>', row.code, seen(row.detail))

    @admin.display(description="what came")
    def came(self, row: Any) -> SafeString:
        return _content(json.loads(row.content), row.open)

    @admin.display(description="what stands")
    def stands(self, row: Any) -> SafeString | str:
        """Of a conflict, the receipt that was recorded under the same identity."""
        recorded: Receipt | None = row.recorded
        if recorded is None:
            return "nothing: it was refused for itself"
        return format_html("{} since {}", _content(recorded.content, row.open), when(recorded.recorded_at))

    @admin.display(description="")
    def own(self, row: RefusedReceipt) -> str:
        return "Open the receipt"


def _content(value: Any, is_open: bool) -> SafeString:
    """Return a receipt as it came; its details, and what is no receipt at all, for those with the grant."""
    if not is_open:
        value = {**value, "details": HIDDEN} if isinstance(value, dict) else HIDDEN
    return format_html('<pre class="fc-mono fc-scroll" tabindex="0">{}</pre>', seen(storable(pretty(value))))
