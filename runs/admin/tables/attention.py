"""The list of what needs an Operator: every step of which nobody is sure, with what one has to know of it."""

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import DateTimeField, Func, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from factory.console.base import BaseAdmin
from factory.console.lists.columns import column, written
from factory.console.lists.filters import one_of
from factory.console.lists.pages import BaseList
from factory.console.scope import context_of
from factory.console.show import badge, cut, link, outline, seen, short, span, when, whole
from factory.console.site import site
from factory.kernel.permissions import may
from runs.admin.dashboard.cards import TOLD
from runs.models import Step
from runs.selectors.figures import attention_steps
from runs.selectors.uncertain import uncertain_attempts
from runs.states import Attention

ATTENTIONS = [kind for kind in Attention.values if kind]
"""What a step here can have; one without any is not here."""
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NOTHING = SafeString('<span class="fc-soft">nothing</span>')


def _each(line: str, parts: Iterable[tuple[object, ...]]) -> str:
    """Return the lines of a cell as a file has them, one behind the other."""
    return " ".join(line.format(*part) for part in parts) or "nothing"


def _step(row: Step) -> str:
    return f"{row.node_key} of {row.run.workflow_id}"


def _sentence(row: Step) -> str:
    state, _, meaning = TOLD[Attention(row.attention)]
    return f"{state} {meaning} {row.reason}"


def _held(row: Any, written: Callable[[datetime | None], str]) -> list[tuple[str, str, str]]:
    """Return who held the step last, from when to when."""
    leases = row.doubt.leases[-2:] if row.doubt else ()
    return [
        (seen(lease.worker_name), written(lease.offered_at), written(lease.closed_at)) for lease in leases
    ]


def _allowed(row: Any) -> list[tuple[str, str]]:
    return [(view.summary, view.proposal_hash) for view in (row.doubt.approvals if row.doubt else ())]


def _left(row: Any) -> list[tuple[str, str, str]]:
    """Return the receipts of the step: their kind, name, and what each is known by."""
    receipts = row.doubt.receipts if row.doubt else ()
    return [(each.kind, each.name, each.proposal_hash or str(each.receipt_id)) for each in receipts]


def _act(row: Any) -> str:
    """Return what the reader can do about a step."""
    if not row.may_settle:
        return "An Operator settles it."
    return "Settle" if row.attention == Attention.UNCERTAIN else "Look"


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

    @column("step", lambda row: f"{_step(row)} run {row.run_id} {row.side_effect_class}")
    def what(self, row: Step) -> SafeString:
        return format_html(
            "<div>{}<div>run {}</div><div>{}</div></div>",
            link(_url(row), _step(row)), short(row.run_id), outline(row.side_effect_class),
        )  # fmt: skip

    @column("what happened", lambda row: _sentence(row))
    def happened(self, row: Step) -> SafeString:
        state, _, told = TOLD[Attention(row.attention)]
        return format_html(
            "<div>{}<div>{}</div><div class='fc-soft'>{}</div></div>",
            badge(state), told, with_short_ids(row.reason, 200),
        )  # fmt: skip

    @column(
        "who had it",
        lambda row: _each("{} {} to {}", _held(row, written)),
    )
    def held_by(self, row: Any) -> SafeString:
        told = "<div>{}</div><div class='fc-soft'>{} to {}</div>"
        return _all(format_html_join("", told, _held(row, when)))

    @column("what was allowed", lambda row: _each("{} {}", _allowed(row)))
    def allowed(self, row: Any) -> SafeString:
        page = "admin:approvals_approvalrequest_change"
        lines = (
            (link(reverse(page, args=[view.id]), cut(view.summary, 160)), short(view.proposal_hash))
            for view in (row.doubt.approvals if row.doubt else ())
        )
        return _all(format_html_join("", '<div>{}</div><div class="fc-soft">{}</div>', lines))

    @column("what it left", lambda row: _each("{} receipt {} {}", _left(row)))
    def left(self, row: Any) -> SafeString:
        lines = (
            (link(_url(row), f"{kind} receipt"), seen(name), short(key)) for kind, name, key in _left(row)
        )
        return _all(format_html_join("", "<div>{} {} {}</div>", lines))

    @column("for", "updated_at", in_files="since")
    def since(self, row: Any) -> SafeString:
        return format_html(
            "<div><b>{}</b><div class='fc-soft'>since {}</div></div>",
            span((row.at - row.updated_at).total_seconds()), when(row.updated_at),
        )  # fmt: skip

    @column("act", lambda row: _act(row))
    def settle(self, row: Any) -> SafeString:
        if not row.may_settle:
            return format_html('<span class="fc-soft">{}</span>', _act(row))
        return format_html('<a class="fc-button primary" href="{}">{}</a>', _url(row), _act(row))


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
        found = {one.step.pk: one for one in uncertain_attempts(rows)}
        allowed = may(context_of(request), "ResolveUncertainStep")
        for row in rows:
            row.doubt, row.may_settle = found.get(row.pk), allowed


def _url(row: Step) -> str:
    part = "settle" if row.attention == Attention.UNCERTAIN else "look"
    return reverse("admin:runs_run_change", args=[row.run_id]) + f"#{part}"
