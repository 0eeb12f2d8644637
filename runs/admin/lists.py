"""The list of what needs an Operator: every step of which nobody is sure, with what one has to know of it."""

import re
from typing import Any

from django.contrib import admin
from django.db.models import DateTimeField, Func, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from factory.console.base import BaseAdmin
from factory.console.lists.filters import one_of
from factory.console.lists.pages import BaseList
from factory.console.scope import context_of
from factory.console.show import badge, cut, outline, seen, short, span, when, whole
from factory.console.site import site
from factory.kernel.permissions import may
from runs.admin.cards import TOLD
from runs.models import Step
from runs.selectors.doubts import doubts
from runs.selectors.figures import attention_steps
from runs.states import Attention

ATTENTIONS = [kind for kind in Attention.values if kind]
"""What a step here can have; one without any is not here."""
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NOTHING = SafeString('<span class="fc-soft">nothing</span>')


def _all(parts: SafeString) -> SafeString:
    """Several lines of a cell as one thing, also where a phone lays the cells out as rows."""
    return format_html("<div>{}</div>", parts) if parts else NOTHING


@admin.register(Step, site=site)
class AttentionAdmin(BaseAdmin[Step]):
    """Steps that a person has to look at: uncertain effects, violations, effects that came too late."""

    view_operation = "ListUncertainAttempts"
    list_display = ("what", "happened", "held_by", "allowed", "left", "since", "settle")
    list_display_links = None
    heading = "Uncertain attempts"
    file_headings = {"since": "since"}
    nothing_yet = "Nothing does. A step whose effect may have happened, but nobody knows, would stand here."
    order_words = ("Latest first", "Longest waiting first")
    list_filter = (one_of("attention", "attention", ATTENTIONS),)
    whole_ids = ("id", "run_id")
    search_fields = ("run__id", "node_key")
    search_help_text = "The whole id of a run, or words of a step's name"
    ordering = ("-updated_at", "-id")
    list_per_page = 100
    moving = (
        "A step moves when it changes, so while you turn the pages one may be missing or stand twice. "
        "The file has each of them, as they are at one moment."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        at = Func(function="clock_timestamp", output_field=DateTimeField())
        return attention_steps(context_of(request)).select_related("run").annotate(at=at)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        return UncertainList

    @admin.display(description="step")
    def what(self, row: Step) -> SafeString:
        return format_html(
            '<div><a class="fc-link" href="{}">{} of {}</a><div>run {}</div><div>{}</div></div>',
            _url(row), row.node_key, row.run.workflow_id, short(row.run_id), outline(row.side_effect_class),
        )  # fmt: skip

    @admin.display(description="what happened")
    def happened(self, row: Step) -> SafeString:
        state, _, told = TOLD[Attention(row.attention)]
        return format_html(
            "<div>{}<div>{}</div><div class='fc-soft'>{}</div></div>",
            badge(state), told, with_short_ids(row.reason, 200),
        )  # fmt: skip

    @admin.display(description="who had it")
    def held_by(self, row: Any) -> SafeString:
        leases = row.doubt.leases if row.doubt else ()
        lines = ((seen(one.worker_name), when(one.offered_at), when(one.closed_at)) for one in leases[-2:])
        told = "<div>{}</div><div class='fc-soft'>{} to {}</div>"
        return _all(format_html_join("", told, lines))

    @admin.display(description="what was allowed")
    def allowed(self, row: Any) -> SafeString:
        page = "admin:approvals_approvalrequest_change"
        lines = (
            (reverse(page, args=[view.id]), cut(view.summary, 160), short(view.proposal_hash))
            for view in (row.doubt.approvals if row.doubt else ())
        )
        told = '<div><a class="fc-link" href="{}">{}</a></div><div class="fc-soft">{}</div>'
        return _all(format_html_join("", told, lines))

    @admin.display(description="what it left")
    def left(self, row: Any) -> SafeString:
        lines = (
            (_url(row), one.kind, seen(one.name), short(one.proposal_hash or one.receipt_id))
            for one in (row.doubt.receipts if row.doubt else ())
        )
        return _all(
            format_html_join("", '<div><a class="fc-link" href="{}">{} receipt</a> {} {}</div>', lines)
        )

    @admin.display(description="for")
    def since(self, row: Any) -> SafeString:
        return format_html(
            "<div><b data-passing>{}</b><div class='fc-soft'><span data-passing>since</span> {}</div></div>",
            span((row.at - row.updated_at).total_seconds()), when(row.updated_at),
        )  # fmt: skip

    @admin.display(description="act")
    def settle(self, row: Any) -> SafeString:
        if not row.may_settle:
            return SafeString('<span class="fc-soft">An Operator settles it.</span>')
        word = "Settle" if row.attention == Attention.UNCERTAIN else "Look"
        return format_html('<a class="fc-button primary" href="{}">{}</a>', _url(row), word)


def with_short_ids(reason: str, most: int) -> SafeString:
    """A reason for reading: of an id only its end, as everywhere, and all of it in the title."""
    all_of_it = seen(reason)
    told = ID.sub(lambda found: f"…{found[0][-8:]}", all_of_it)
    if told == all_of_it:
        return cut(reason, most)
    head = told[:most]
    kept = told if len(told) <= most else (head.rpartition(" ")[0] or head) + "…"
    return format_html('<span title="{}">{}</span>', all_of_it, whole(kept))


class UncertainList(BaseList):
    """A list whose page of steps carries the evidence of each, read with a few queries for all."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        found = {one.step.pk: one for one in doubts(rows)}
        allowed = may(context_of(request), "ResolveUncertainStep")
        for row in rows:
            row.doubt, row.may_settle = found.get(row.pk), allowed


def _url(row: Step) -> str:
    part = "settle" if row.attention == Attention.UNCERTAIN else "look"
    return reverse("admin:runs_run_change", args=[row.run_id]) + f"#{part}"
