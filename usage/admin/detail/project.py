"""What of the money stands on the page of a project."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.urls import reverse

from factory.console.dashboard import Figure, FigureShare
from factory.console.page_extensions import Missing, Part, able, part_of
from factory.kernel.amounts import usd
from factory.kernel.context import Context
from usage.admin.actions.budget import may_set
from usage.admin.detail.charts import in_words, shares, time_in_words, tone_of
from usage.models import Budget
from usage.permissions import reads_budgets
from usage.pricing.periods import month_of
from usage.selectors import budgets_now, uncovered

_OVER_MONEY: dict[str, Any] = {"roles": ("WorkspaceAdmin", "PlatformAdmin"), "grants": ("finance",)}

able(
    50, "Set this project's budgets", widely="Set budgets, of the tenant and of each project", **_OVER_MONEY,
    note="Those of the whole tenant, if they have it there.",
)  # fmt: skip
able(
    52, "Publish prices", only_widely=True, **_OVER_MONEY,
    note="Prices hold in the whole tenant, so only a role or grant in the whole tenant lets publish them; it "
    "is done over the API.",
)  # fmt: skip


@part_of("project", 20)
def money(ctx: Context, project_id: UUID, at: datetime) -> Sequence[Part]:
    """The budgets that its runs draw on this month: its own, and the tenant's."""
    if not reads_budgets(ctx):
        return ()
    rows = sorted(budgets_now(project_id, at.date())[:2], key=lambda row: row.project_id is None)
    if uncovered(rows, month_of(at)):
        return _none(ctx, project_id)
    return [_figure(row, at) for row in rows]


def _none(ctx: Context, project_id: UUID) -> Sequence[Part]:
    """That there is none, and the way to one for who may open it from here."""
    told = "No budget covers this month, so no run can start."
    sets = ctx.project_id == project_id and may_set(ctx, None)
    missing = (
        Missing(told, "Open a budget", reverse("admin:usage_new_budget"), stops=True)
        if sets
        else Missing(
            f"{told} Who has the grant finance, or administers the project, opens one in it.", stops=True
        )
    )
    return Figure("Budget", "None", told, tone="bad"), missing


def _figure(row: Budget, at: datetime) -> Figure:
    whose = "Its budget" if row.project_id else "The tenant's budget"
    parts = tuple(
        FigureShare(each.tone, int(each.amount * 100), each.word) for each in shares(row) if each.amount > 0
    )
    return Figure(
        f"{whose}, {row.period_start:%B}",
        usd(row.available).removesuffix(" USD"),
        f"of {usd(row.amount)}; {in_words(row)}, {time_in_words(row, at)}.",
        "USD left",
        shares=parts,
        url=reverse("admin:usage_budget_change", args=[row.pk]),
        tone="bad" if tone_of(row) == "bad" else "plain",
    )
