"""What of the money stands on the first page: what is left, and whether it is spent at an even pace."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Subquery
from django.urls import reverse

from factory.console.charts import Plot, pace
from factory.console.dashboard import (
    Card,
    CardLine,
    Chart,
    DashboardQuery,
    Figure,
    Table,
    card,
    chart,
    figure,
)
from factory.console.show import seen
from factory.kernel import clock
from factory.kernel.amounts import number, usd
from factory.kernel.context import Context
from usage.admin.detail.charts import tone_of
from usage.models import Budget
from usage.permissions import reads_budgets
from usage.pricing.money import ZERO
from usage.selectors import budgets_now, reservations, spent_so_far
from usage.states import ReservationState


def _covering(ctx: Context) -> list[Any]:
    """The budgets that a run of the place draws on: the project's own first, then the tenant's.

    With what the newest run of the place that was not denied `asked` of them.
    """
    held = reservations(ctx.project_id).exclude(state=ReservationState.DENIED)
    newest = held.order_by("-created_at", "-id").values("amount")[:1]
    rows = budgets_now(ctx.project_id, clock.now().date()).annotate(asked=Subquery(newest))
    return list(rows[:2] if ctx.project_id else rows.filter(project=None)[:1])


def _tightest(rows: Sequence[Any]) -> Any:
    """The one that decides whether a run may begin; the figure and the chart tell of the same."""
    return min(rows, key=lambda each: each.available)


def _short(row: Any, whose: str) -> str:
    """Return what is said where little is left, or less than runs ask for."""
    less = row.asked is not None and row.available < row.asked
    if not less and tone_of(row) != "bad":
        return ""
    told = f"Of the {whose} budget only {usd(row.available)} are left: a run that asks for more fails."
    return told + (f" The newest one asked for {usd(row.asked)}." if less else "")


def _name(row: Budget) -> str:
    return seen(row.project.name) if row.project else "the whole tenant"


@figure(40)
def money_left(look: DashboardQuery) -> Figure | None:
    """Return what can still be reserved this month: what is free of the tightest budget, which decides."""
    if not reads_budgets(look.ctx):
        return None
    rows = look.once(_covering)
    if not rows:
        return _no_budget(look)
    row = _tightest(rows)
    whose = "project's" if row.project_id else "tenant's"
    short = _short(row, whose)
    return Figure(
        f"Budget of {row.period_start:%B}" + (f", the {whose}" if len(rows) > 1 else ""),
        usd(row.available).removesuffix(" USD"),
        f"of {usd(row.amount)} for {_name(row)}; {usd(row.committed)} reserved, {usd(row.spent)} spent"
        + (f", {usd(row.held)} held for usage of unknown cost." if row.held else "."),
        "USD left",
        url=reverse("admin:usage_budget_change", args=[row.id]),
        tone="bad" if short else "plain",
        alarm=short,
    )


def _no_budget(look: DashboardQuery) -> Figure:
    """Without any, no run starts; without that of the tenant, those of projects that have their own do."""
    url = reverse("admin:usage_budget_changelist")
    if look.ctx.project_id is None and budgets_now(None, look.at.date()).exists():
        told = "The whole tenant has none this month: only projects with a budget of their own start runs."
        return Figure("Budget", "None", told, url=url)
    told = "No budget covers this month, so no run can start. Who has the grant finance creates one."
    return Figure("Budget", "None", told, url=url, tone="bad", alarm="No budget covers this month.")


@chart(40)
def spend_against_budget(look: DashboardQuery) -> Chart | None:
    """Return what was spent each day of the month, against the budget."""
    if not reads_budgets(look.ctx):
        return None
    rows = look.once(_covering)
    if rows:
        return spend_of(_tightest(rows), look.at)
    return Chart(
        key="spend",
        title=f"Spend against budget, {look.at:%B}",
        finding="",
        empty="No budget of this place covers the month. Once there is one, each day shows what was spent of "
        "it, beside the pace that would use it evenly.",
        follows_span=False,
    )


def spend_of(row: Budget, at: datetime) -> Chart:
    """Return the same for one budget, as of a moment: of a month that is over, all of it."""
    last = min(at.date(), row.period_end - timedelta(days=1))
    sums = spent_so_far(row.id, row.period_start, last)
    spent = bool(sums and sums[-1][1])
    return Chart(
        key="spend",
        title=f"Spend against budget, {row.period_start:%B}",
        finding=_found(row, at) if spent else "",
        plot=_plot(row, sums, at) if spent else None,
        legend=(("busy", "spent so far"), ("quote", "even pace (dashed)"), ("limit", "budget")),
        table=Table(
            ("Day", "Spent on it, USD", "Spent so far, USD"),
            tuple(
                (f"{day:%d %b}", number(so_far - before), number(so_far))
                for (day, so_far), before in zip(sums, [ZERO, *(total for _, total in sums)], strict=False)
                if so_far != before
            ),
        ),
        empty="Nothing was spent yet. What runs cost is booked when they end, and stands here day by day.",
        follows_span=False,
    )


def _elapsed(row: Budget, at: datetime) -> tuple[int, float]:
    """The days of the budget's month, and how many of them have passed."""
    days = (row.period_end - row.period_start).days
    passed = (at.date() - row.period_start).days + (at.hour * 60 + at.minute) / 1440
    return days, min(max(passed, 0.0), float(days))


def _found(row: Budget, at: datetime) -> str:
    days, now = _elapsed(row, at)
    even = row.amount * Decimal(now / days)
    apart = row.spent - even
    told = (
        f"{usd(row.spent)} spent, {usd(row.committed)} reserved, {usd(row.available)} left for {_name(row)}."
    )
    if now >= days:
        return told
    if abs(apart) * 100 < row.amount:
        return f"{told} That is about the even pace."
    return f"{told} {usd(abs(apart))} {'above' if apart > 0 else 'below'} the even pace."


def _plot(row: Budget, sums: Sequence[tuple[date, Decimal]], at: datetime) -> Plot:
    days, now = _elapsed(row, at)
    marks = [(day, f"{row.period_start.replace(day=day):%d %b}") for day in (1, 8, 15, 22) if day <= days]
    return pace([0.0, *(float(total) for _, total in sums)], days, now, float(row.amount), marks)


@card(50)
def budgets_of_the_month(ctx: Context) -> Card | None:
    """Return how much of this month's money is in use, where it is divided among several budgets."""
    if not reads_budgets(ctx):
        return None
    rows = list(budgets_now(ctx.project_id, clock.now().date())[:12])
    if len(rows) < 2:
        return None
    return Card(
        title="Budgets of this month",
        items=tuple(
            CardLine(
                title=f"{_name(row) if row.project else 'The whole tenant'}: {usd(row.available)} left",
                url=reverse("admin:usage_budget_change", args=[row.id]),
                note=f"of {usd(row.amount)}; {usd(row.committed)} reserved, {usd(row.spent)} spent"
                + (f", {usd(row.held)} held for usage of unknown cost" if row.held > ZERO else ""),
            )
            for row in rows
        ),
        more_url=reverse("admin:usage_budget_changelist"),
        more_label="All budgets",
    )
