"""Months that no budget covers: told on the first page to who can open one, by what reserving itself asks."""

from datetime import date, datetime

from django.urls import reverse

from factory.console.dashboard import MOST, DashboardQuery, Need, Needs, needs
from factory.console.show import seen
from usage.admin.actions.budget import may_set
from usage.permissions import reads_budgets
from usage.pricing.periods import NOTICE, begins_at, month_of, next_month
from usage.selectors import projects_without_budget

OPEN = "Open one"


@needs(45)
def months_without_budget(look: DashboardQuery) -> Needs | None:
    """Places with runs in which none can start: now, or from the coming month on, a week before it begins."""
    if not reads_budgets(look.ctx) or not may_set(look.ctx, None):
        return None
    now = month_of(look.at)
    months = [now]
    if look.at >= begins_at(next_month(now)) - NOTICE:
        months.append(next_month(now))
    found = projects_without_budget(look.ctx.project_id, months)
    items = tuple(_need(month, seen(name), look.at) for month, name in found[:MOST])
    return Needs(
        items=items,
        count=len(found),
        well="every month has its budget",
        more_url=reverse("admin:usage_budget_changelist"),
        more_label="All budgets",
    )


def _need(month: date, project: str, at: datetime) -> Need:
    begins = begins_at(month)
    if begins <= at:
        title, where = f"No budget covers {month:%B %Y}", f"No run of {project} can start."
    else:
        title = f"No budget covers {month:%B %Y} yet"
        where = f"From {begins:%d %b %Y}, 00:00 UTC, no run of {project} can start."
    return Need(
        title=title,
        url=f"{reverse('admin:usage_new_budget')}?month={month:%Y-%m}",
        state="Missing",
        tone="bad" if begins <= at else "wait",
        action=OPEN,
        since=min(begins, at),
        ends_at=begins if begins > at else None,
        where=where,
    )
