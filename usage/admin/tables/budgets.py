"""The pages of budgets: how much of the month's money is in use, by what, and what happens at its end."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from approvals.selectors import (
    PolicyView,
    after_unknown_usage,
    evaluate,
    evaluate_at_the_limit,
    evaluate_unknown_usage,
    policy_revisions,
    policy_view,
    spend_threshold,
)
from approvals.states import ActionClass, Effect
from factory.console.asking import not_understood
from factory.console.base import OwnPageAdmin
from factory.console.confirming import Act
from factory.console.links import names_of
from factory.console.lists.columns import Column, column
from factory.console.scope import context_of
from factory.console.show import seen, timed
from factory.console.site import site
from factory.kernel import clock
from factory.kernel.amounts import usd
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from projects.selectors import environments, project
from usage.admin.actions.budget import amount_view, may_set, new_view, recurrence_view
from usage.admin.dashboard.cards import spend_of
from usage.admin.detail.charts import (
    bar,
    bar_in_words,
    ends_at,
    in_words,
    name_of,
    of_what,
    shares,
    time_in_words,
    tone_of,
)
from usage.admin.detail.movements import movements
from usage.admin.tables.base import MoneyAdmin
from usage.models import Budget, Reservation
from usage.selectors import in_scope, open_holds, open_reservations, visible_budgets

SHOWN = 20
BEFORE = "before"


@admin.register(Budget, site=site)
class BudgetAdmin(MoneyAdmin[Budget], OwnPageAdmin[Budget]):
    """Money for a calendar month: what runs have spent and reserved of it, and what is left for others."""

    view_operation = "ListBudgets"
    own_page = "usage/budget.html"
    nothing_yet = "No budget, so no run can start. Who has the grant finance makes one here, or over the API."
    order_words = ("Latest month first", "Earliest month first")
    search_fields = ("project__name", "created_by")
    search_help_text = "Words of a project's name, or who made it"
    list_display = ("called", "in_use", "left", "total", "used", "reserved", "open_hold", "ends")
    file_columns = ("month", "scope", *list_display[1:])
    list_select_related = ("project",)
    ordering = ("-period_start", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return visible_budgets(context_of(request).project_id).select_related("project")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("new/", view(self.new_view), name="usage_new_budget"),
            path("<uuid:budget_id>/amount/", view(self.amount_view), name="usage_budget_amount"),
            path("<uuid:budget_id>/recurrence/", view(self.recurrence_view), name="usage_budget_recurrence"),
        ]
        return [*own, *super().get_urls()]

    def acts(self, request: HttpRequest, row: Budget | None) -> list[Act]:
        ctx = context_of(request)
        if not may_set(ctx, row):
            return []
        if row is None:
            return [Act("New budget", reverse("admin:usage_new_budget"))]
        acts = [Act("Change its amount", reverse("admin:usage_budget_amount", args=[row.pk]))]
        if not later_than(row):
            words = "End its recurrence" if row.recurs else "Let it recur"
            acts.append(Act(words, reverse("admin:usage_budget_recurrence", args=[row.pk])))
        return acts

    def new_view(self, request: HttpRequest) -> HttpResponse:
        ctx = context_of(request)
        with reading(ctx):
            if not may_set(ctx, None):
                raise PermissionDenied("Who has the grant finance here, or administers it, makes budgets.")
            here = project(ctx.project_id) if ctx.project_id else None
        return new_view(self.admin_site, request, seen(here.name) if here else "the whole tenant")

    def amount_view(self, request: HttpRequest, budget_id: UUID) -> HttpResponse:
        row = self._mine(request, budget_id, "Who decides over this money changes its amount.")
        return amount_view(self.admin_site, request, row, of_what(row))

    def recurrence_view(self, request: HttpRequest, budget_id: UUID) -> HttpResponse:
        row = self._mine(request, budget_id, "Who decides over this money says whether it recurs.")
        return recurrence_view(self.admin_site, request, row, of_what(row))

    def _mine(self, request: HttpRequest, budget_id: UUID, otherwise: str) -> Budget:
        """Return a budget that the reader decides over. Raises `Http404` and `PermissionDenied`."""
        ctx = context_of(request)
        with reading(ctx):
            row: Budget | None = self.get_queryset(request).filter(pk=budget_id).first()
            if row is None:
                raise Http404
            if not may_set(ctx, row):
                raise PermissionDenied(otherwise)
        return row

    def told_of(self, request: HttpRequest, row: Budget) -> dict[str, Any]:
        title = f"Budget of {row.period_start:%B %Y}, {of_what(row)}"
        return {"title": title, "opts": None, **budget_page(request, row)}

    called = Column("budget", name_of)
    month = Column("month", lambda row: f"{row.period_start:%B %Y}")
    scope = Column("of", of_what)

    @column("in use", in_words)
    def in_use(self, row: Budget) -> SafeString:
        return bar_in_words(row)

    left = Column("left", lambda row: usd(row.available))
    total = Column("of the amount", lambda row: usd(row.amount))
    used = Column("spent", lambda row: usd(row.spent))
    reserved = Column("reserved", lambda row: usd(row.committed))
    open_hold = Column("held", lambda row: usd(row.held))

    @column("the month", ends_at, in_files="month ends")
    def ends(self, row: Budget) -> SafeString:
        return timed(ends_at(row), time_in_words(row, clock.now()))


@dataclass(frozen=True, slots=True)
class OpenReservation:
    """An open reservation, and what happens to it next."""

    row: Reservation
    then: str
    called: str


def budget_page(request: HttpRequest, row: Budget) -> dict[str, Any]:
    """The values of a budget's page, each by an index, however many runs have drawn on it."""
    ctx, at = context_of(request), clock.now()
    found = list(open_reservations(row, ctx.project_id)[: SHOWN + 1])
    holds = list(open_holds(row, ctx.project_id)[: SHOWN + 1])
    called = names_of("run", [each.run_id for each in (*found[:SHOWN], *holds[:SHOWN])])
    read = may(ctx, "ReadLedger")
    before = _before(request)
    ledger = reverse("admin:usage_ledgerentry_changelist")
    return {
        "budget": row,
        "sentence": sentence(row, at),
        "tighter": _tighter(row, ctx.project_id, at),
        "tone": tone_of(row),
        "bar": bar(row),
        "shares": shares(row),
        "ends": ends_at(row),
        "rules": rules(row, at),
        "spend": spend_of(row, at),
        "waiting": [
            OpenReservation(each, _then(each), called.get(each.run_id, "")) for each in found[:SHOWN]
        ],
        "more_waiting": len(found) > SHOWN,
        "holds": [(each, called.get(each.run_id, "")) for each in holds[:SHOWN]],
        "more_holds": len(holds) > SHOWN,
        "wide": row.project_id is None and ctx.project_id is None,
        "partly": row.project_id is None and ctx.project_id is not None,
        "ledger": movements(row, ctx.project_id, before) if read else None,
        "later": before is not None,
        "ledger_url": f"{ledger}?budget__id__exact={row.id}",
    }


def _before(request: HttpRequest) -> int | None:
    """The entry before which the ledger is read, if the address names one."""
    asked = request.GET.get(BEFORE, "")
    if not asked or (asked.isascii() and asked.isdigit() and len(asked) < 18):
        return int(asked) if asked else None
    not_understood(request, f"“{asked[:60]}” is no place in the ledger.", "Its newest movements are shown.")
    return None


def sentence(row: Budget, at: datetime) -> str:
    """Return how it stands, in one line."""
    left = f"{usd(max(row.available, Decimal(0)))} of {usd(row.amount)} are left"
    return f"{capfirst(in_words(row))}: {left}. The month {time_in_words(row, at)}."


def _tighter(row: Budget, reader: UUID | None, at: datetime) -> Budget | None:
    """The tenant's budget of the month, where less is left of it: runs of the project reserve in both."""
    if row.project_id is None or at >= ends_at(row):
        return None
    rows = visible_budgets(reader).filter(project=None, period_start=row.period_start)
    return rows.filter(available__lt=row.available).first()


def _then(row: Reservation) -> str:
    if row.due_at is not None:
        return "free again if no worker takes the run by then"
    return "settled when the run ends"


def rules(row: Budget, at: datetime) -> list[str]:
    """Return what happens at its limits, in sentences: of the amount, of the policy, and of the month."""
    every = "every project of the tenant" if row.project is None else "this project"
    told = [
        f"Each run of {every} reserves here, before it starts, what it may cost at most. One that asks for "
        "more than is left fails at once (failure class: budget); runs that have begun keep what they have.",
    ]
    published = policy_revisions().first()
    policy = policy_view(published) if published else None
    if policy:
        told += _by_the_policy(policy, row.project_id)
    return [*told, _after(row, at)]


def _by_the_policy(policy: PolicyView, project_id: UUID | None) -> list[str]:
    told, threshold = [], spend_threshold(policy)
    places = [None, *dict.fromkeys(each.slug for each in environments(project_id))]
    more = "" if threshold is None else f" that asks for more than {usd(threshold)}"
    for effect, follows in (
        (Effect.REQUIRE_APPROVAL, "waits for a person's decision before anything is reserved"),
        (Effect.DENY, f"{'' if more else 'may spend nothing, and '}fails at once"),
    ):
        those = [place for place in places if evaluate(policy, ActionClass.SPEND, place).effect is effect]
        where = "" if those == places else f" in {', '.join(each or 'no environment' for each in those)}"
        if those:
            told.append(f"A run{where}{more} {follows} (policy {policy.revision}).")
    asking = [
        place for place in places if evaluate_at_the_limit(policy, place).effect is Effect.REQUIRE_APPROVAL
    ]
    what = "asks a person for more" if asking else "fails"
    unknown = after_unknown_usage(evaluate_unknown_usage(policy, None))
    return [
        *told,
        f"A run that has used all that was reserved for it {what}.",
        f"A run that has used something of unknown cost {unknown}.",
    ]


def _after(row: Budget, at: datetime) -> str:
    """Return what the end of the month does, and whether the next one is provided for."""
    ends = f"{row.period_end:%d %b %Y}"
    if at >= ends_at(row):
        return f"Since {ends}, 00:00 UTC, nothing new is reserved here. What comes late is still booked here."
    whole = f"On {ends}, 00:00 UTC, the month ends. What is left is not carried over."
    if row.recurs and row.next_due_at is not None:
        opens = f"{row.next_due_at:%d %b %Y}"
        return (
            f"{whole} It recurs: on {opens} the month after it is opened by itself, with {usd(row.amount)}."
        )
    if row.project_id is not None:
        return f"{whole} {_covered(row, row.project_id)}"
    if Budget.objects.filter(project=None, period_start=row.period_end).exists():
        return f"{whole} The whole tenant has a budget for the month after it."
    return (
        f"{whole} The whole tenant has no budget for the month after it yet: without one, only projects with "
        "a budget of their own start runs."
    )


def _covered(row: Budget, project_id: UUID) -> str:
    """Whose budgets there are for the month after that of a project's."""
    owners = set(in_scope(project_id, row.period_end).values_list("project_id", flat=True))
    if project_id in owners:
        return "This project has a budget for the month after it."
    if owners:
        return "For the month after it there is one of the whole tenant alone: this project draws on that."
    return "No budget covers the month after it yet: without one, no run of this project starts."


def later_than(row: Budget) -> bool:
    """Return whether a later month of the same scope has a budget: recurrence is that of the newest one."""
    rows = Budget.objects.filter(project_id=row.project_id, period_start__gte=row.period_end)
    return bool(rows.exists())
