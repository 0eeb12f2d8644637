"""Lists of money: movements, reservations and usage."""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, strip_tags
from django.utils.safestring import SafeString

from factory.console.asking import CSV, FORMAT
from factory.console.confirming import Act
from factory.console.links import names_of
from factory.console.lists.columns import EMPTY, Column, column
from factory.console.lists.filters import one_of
from factory.console.lists.pages import BaseList
from factory.console.scope import context_of, places_of
from factory.console.show import amount, link, measured, seen, short, signed, when
from factory.console.site import site
from factory.kernel.amounts import usd
from factory.kernel.context import Context
from factory.kernel.tenancy import reading
from usage.admin.actions.end_hold import hold_view, label_of, may_end, sentence
from usage.admin.detail.charts import name_of
from usage.admin.explorer import explorer, file_of
from usage.admin.tables.base import MoneyAdmin, OfRuns, run_link
from usage.models import LedgerEntry, Reservation, UsageRecord
from usage.permissions import is_visible
from usage.selectors import visible_budgets
from usage.states import ACCOUNT_WORDS, Account, Movement, ReceiptKind, ReservationState, UsageState

TIMES = ("priced_at__gte", "priced_at__lt")
"""By which the explorer leads to the calls behind its figures."""


HOLDS = {"held": "money is held", "ended": "the hold has ended"}
ASKS = {"held": Q(held__gt=0), "ended": Q(held=0, hold_ended_at__isnull=False)}


class ReadLedger(BaseList):
    """A list of entries that carry in which project their reader reads (None in all of the tenant), and the
    names of the runs that the reader is told of."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        reader = context_of(request).project_id
        named = names_of("run", list({row.reservation.run_id for row in rows if _told(row, reader)}))
        for row in rows:
            row.reader = reader
            row.run_name = named.get(row.reservation.run_id, "") if row.reservation else ""


def _run_of(row: Any) -> UUID | str | None:
    """Return the run whose money moved, as far as the reader is told of it."""
    if row.reservation is None:
        return None
    return row.reservation.run_id if _told(row, row.reader) else "of another project"


def _told(row: LedgerEntry, reader: UUID | None) -> bool:
    return row.reservation is not None and is_visible(row.reservation.project_id, reader)


@admin.register(LedgerEntry, site=site)
class LedgerEntryAdmin(MoneyAdmin[LedgerEntry]):
    """Every movement of money. The entries of one transaction add up to zero."""

    view_operation = "ReadLedger"
    heading = "Ledger"
    nothing_yet = "The first reservation of a run writes the first movement."
    large = True
    whole_ids = ("transaction_id", "id")
    search_fields = ("transaction_id",)
    search_help_text = "The whole id of a transaction"
    list_display = ("at", "of_budget", "movement", "where", "signed", "of_run", "transaction")
    file_columns = ("at", "of_budget", "movement", "where", "signed", "transaction", "of_run")
    fields = list_display
    readonly_fields = fields
    list_select_related = ("budget__project", "reservation")
    list_filter = (
        one_of("movement", "movement", tuple(Movement)),
        one_of("account", "account", tuple(Account), words=ACCOUNT_WORDS),
    )
    ordering = ("-posted_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        mine = visible_budgets(context_of(request).project_id)
        rows: QuerySet[Any] = LedgerEntry.objects.filter(budget__in=mine.values("pk"))
        return rows

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return ReadLedger

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        return lookup == "budget__id__exact" or super().lookup_allowed(lookup, value, request)

    def headline(self, row: LedgerEntry) -> str:
        return f"{Movement(row.movement).value}: {strip_tags(self.signed(row))}"

    at = Column("time", "posted_at", when)

    @column("budget", lambda row: name_of(row.budget))
    def of_budget(self, row: LedgerEntry) -> SafeString:
        return link(reverse("admin:usage_budget_change", args=[row.budget_id]), name_of(row.budget))

    where = Column("account", "account", lambda account: ACCOUNT_WORDS[Account(account)])

    @column("amount", lambda row: f"{row.amount:+.6f}")
    def signed(self, row: LedgerEntry) -> SafeString:
        return signed(row.amount)

    transaction = Column("transaction", "transaction_id", short)

    @column("run", lambda row: _run_of(row))
    def of_run(self, row: Any) -> SafeString | str:
        """The run whose money moved, where the reader is told of it."""
        run = _run_of(row)
        return run_link(run, row.run_name) if isinstance(run, UUID) else run or EMPTY


def _is_offered_all(request: HttpRequest, ctx: Context) -> bool:
    """Tell whether the switcher offers the whole of this tenant; one of another would show other figures."""
    here = (place for place in places_of(request) if place.tenant_id == ctx.tenant_id)
    return any(not place.project_name for place in here)


@admin.register(Reservation, site=site)
class ReservationAdmin(MoneyAdmin[Reservation]):
    lead = "What runs hold of the budgets: reserved before dispatch, settled at their end."

    view_operation = "ListReservations"
    list_display = ("run", "status", "sum", "kept", "made", "until", "reason", "own")
    fields = ("run", "status", "sum", "kept", "hold", "made", "until", "reason")
    readonly_fields = fields
    nothing_yet = "When a run starts, what it may cost is reserved in its budgets, and stands here."
    large = True
    list_display_links = ("own",)
    list_filter = (
        one_of("state", "state", tuple(ReservationState)),
        one_of("hold", "hold", ("held", "ended"), words=HOLDS, asks=ASKS),
    )
    whole_ids = ("id", "run_id")
    search_fields = ("run_id",)
    search_help_text = "The whole id of a run"
    ordering = ("-created_at", "-id")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return OfRuns

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = path("<uuid:reservation_id>/hold/", view(self.hold_view), name="usage_hold")
        return [own, *super().get_urls()]

    def acts(self, request: HttpRequest, row: Reservation | None) -> list[Act]:
        if row is None or not may_end(context_of(request), row):
            return []
        return [Act(label_of(row), reverse("admin:usage_hold", args=[row.pk]))]

    def hold_view(self, request: HttpRequest, reservation_id: UUID) -> HttpResponse:
        ctx = context_of(request)
        with reading(ctx):
            row = self.get_queryset(request).filter(pk=reservation_id).first()
            if row is None or not self.has_view_permission(request):
                raise Http404
            if request.method != "POST" and not may_end(ctx, row):
                raise PermissionDenied("Who has the grant finance here ends a hold, while there is one.")
        return hold_view(self.admin_site, request, row)

    kept = Column("held", "held", amount)
    hold = Column("hold", lambda row: sentence(row), seen)

    def headline(self, row: Reservation) -> str:
        return f"{usd(None if row.amount is None else row.total)} set aside for a run"

    @column("run", "run_id")
    def run(self, row: Any) -> SafeString:
        return run_link(row.run_id, row.run_name)

    @admin.display(description="")
    def own(self, row: Reservation) -> str:
        return "Open the reservation"

    @column("amount", lambda row: usd(None) if row.amount is None else row.total)
    def sum(self, row: Reservation) -> SafeString:
        return amount(None if row.amount is None else row.total)

    made = Column("made", "created_at", when)
    until = Column("expires", "due_at", when)


@admin.register(UsageRecord, site=site)
class UsageAdmin(MoneyAdmin[UsageRecord]):
    lead = "What was used, by receipt. What nobody could price is not known, and never counted as nothing."

    view_operation = "ReadUsage"
    heading = "Usage"
    nothing_yet = (
        "A worker sends a receipt for each call of a model or a tool; each stands here with its cost."
    )
    large = True
    list_display = ("at", "run", "agent", "call", "quantity", "price", "status")
    list_filter = (one_of("state", "state", tuple(UsageState)), one_of("kind", "kind", tuple(ReceiptKind)))
    whole_ids = ("id", "receipt_id", "run_id")
    search_fields = ("receipt_id", "run_id", "name")
    search_help_text = "The whole id of a run or a receipt, or the name of a model or tool"
    ordering = ("-priced_at", "-id")
    list_before_template = "usage/calls_about.html"

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        return lookup in (*TIMES, "provider") or super().lookup_allowed(lookup, value, request)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [path("explorer/", view(self.explorer_view), name="usage_explorer"), *super().get_urls()]

    def explorer_view(self, request: HttpRequest) -> HttpResponseBase:
        """Show what was used in a time, added up; as a page, or the same as a file."""
        if not self.has_view_permission(request):
            raise PermissionDenied(
                "What the whole tenant uses is for who decides over its money. Choose one of your projects."
            )
        ctx = context_of(request)
        with reading(ctx):
            found = explorer(request, ctx)
            if request.GET.get(FORMAT) == CSV:
                return file_of(found["asked"], found["found"])
            context = {
                **self.admin_site.each_context(request),
                "title": "Usage explorer",
                "opts": None,
                "whole_tenant": ctx.project_id is None,
                "is_offered_all": _is_offered_all(request, ctx),
                **found,
            }
            return TemplateResponse(request, "usage/explorer.html", context).render()

    @property
    def explorer_url(self) -> str:
        return reverse("admin:usage_explorer")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return OfRuns

    def headline(self, row: UsageRecord) -> str:
        return f"A call of {row.name} of {row.provider}"

    at = Column("time", "priced_at", when)
    agent = Column("agent", "agent_id", seen)

    @column("call of", lambda row: f"{row.name} {row.kind} of {row.provider}")
    def call(self, row: UsageRecord) -> SafeString:
        return format_html(
            '{} <small class="fc-soft">{} of {}</small>', seen(row.name), row.kind, seen(row.provider)
        )

    @column("run", "run_id")
    def run(self, row: Any) -> SafeString:
        return run_link(row.run_id, row.run_name)

    @column(
        "quantities",
        lambda row: [f"{number} {unit}" for unit, number in (row.quantities or {}).items()] or "not known",
    )
    def quantity(self, row: UsageRecord) -> str:
        used = (row.quantities or {}).items()
        return ", ".join(measured(number, unit) for unit, number in used) or "not known"

    @column("cost", lambda row: usd(None) if row.cost is None else row.cost)
    def price(self, row: UsageRecord) -> SafeString:
        return amount(row.cost)
