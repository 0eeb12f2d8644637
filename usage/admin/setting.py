"""Setting a budget, and its amount: pages that say what follows, each with one command behind it."""

from datetime import UTC

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from factory import clock
from factory.admin.confirming import Choice, Question, act_on
from factory.admin.scope import context_of
from factory.admin.settings import whole
from factory.admin.show import usd
from factory.context import Context
from factory.errors import Forbidden
from factory.identity.permissions import may
from usage.commands import change_budget_amount, create_budget
from usage.models import Budget
from usage.money import amount_of
from usage.periods import label, month_of, next_month, parse_month
from usage.permissions import require_over_money

AMOUNT = Choice("amount", "Amount in USD", help="Such as 250 or 99.50; exact, with at most six places.")
MONTHS = 3
"""This month and those after it for which a budget is offered; over HTTP there are others."""


def may_set(ctx: Context, row: Budget | None) -> bool:
    """Whether the button is offered; the command judges again."""
    operation = "CreateBudget" if row is None else "ChangeBudgetAmount"
    wide = ctx.project_id is None or (row is not None and row.project_id is None)
    try:
        require_over_money(ctx, whole_tenant=wide)
    except Forbidden:
        return False
    return may(ctx, operation)


def amount_view(site: AdminSite, request: HttpRequest, row: Budget, whose: str) -> HttpResponse:
    """Raise or lower a budget that is there, if it still is as it was shown."""
    ctx, sent = context_of(request), request.POST
    back = reverse("admin:usage_budget_change", args=[row.pk])
    question = Question(
        title=f"Change the budget of {row.period_start:%B %Y}, {whose}",
        lead="It holds at once. What is reserved and spent already stays as it is.",
        button="Set this amount",
        back=back,
        facts=[
            ("Amount now", usd(row.amount)),
            ("Spent, reserved or held", usd(row.committed + row.spent + row.held)),
            ("Left", usd(row.available)),
        ],
        consequences=(
            "Lower than what is spent, reserved or held it cannot be.",
            "The ledger tells the change; runs that failed for want of money are not begun again by it.",
        ),
        fields=(AMOUNT,),
        hidden=(("version", str(row.version)),),
        reason="",
        danger=False,
    )

    def change(_: str) -> object:
        return change_budget_amount(
            ctx,
            budget_id=row.pk,
            amount=amount_of(sent.get("amount", "").strip(), "/amount"),
            version=whole(sent.get("version", "")) or 0,
        )

    done = "The budget has this amount from now on."
    return act_on(site, request, lambda: question, change, done=done, then=back)


def new_view(site: AdminSite, request: HttpRequest, whose: str) -> HttpResponse:
    """Open a budget of the place for a month."""
    ctx, sent = context_of(request), request.POST
    months = [month_of(clock.now().astimezone(UTC))]
    while len(months) < MONTHS:
        months.append(next_month(months[-1]))
    back = reverse("admin:usage_budget_changelist")
    question = Question(
        title=f"New budget for {whose}",
        lead="Runs reserve what they may cost of every budget that covers them; the tightest one decides.",
        button="Open the budget",
        back=back,
        consequences=(
            "It cannot be deleted; its amount can be changed, down to what is in use.",
            "What was reserved before there was a budget is not drawn from it.",
        ),
        fields=(
            Choice("month", "Month (UTC)", tuple((label(month), f"{month:%B %Y}") for month in months)),
            AMOUNT,
        ),
        reason="",
        danger=False,
    )

    def make(_: str) -> object:
        return create_budget(
            ctx,
            project_id=ctx.project_id,
            month=parse_month(sent.get("month"), "/month"),
            amount=amount_of(sent.get("amount", "").strip(), "/amount"),
        )

    return act_on(site, request, lambda: question, make, done="The budget is open.", then=back)
