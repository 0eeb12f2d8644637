"""Setting a budget, and its amount: pages that say what follows, each with one command behind it."""

from datetime import UTC, date
from decimal import Decimal
from uuid import UUID

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse

from factory.console.confirming import ChoiceField, Confirmation, act_on
from factory.console.scope import context_of
from factory.console.settings import whole
from factory.kernel import clock
from factory.kernel.amounts import usd
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, Forbidden, InvalidInput, VersionMismatch
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from usage.commands import change_budget_amount, change_recurrence, create_budget
from usage.models import Budget
from usage.permissions import require_over_money
from usage.pricing.money import amount_of
from usage.pricing.periods import label, month_of, next_month, parse_month

AMOUNT = ChoiceField("amount", "Amount in USD", help="Such as 1500 or 99.50; exact, with at most six places.")
HEADING = "Budgets"
RECURS = "recurs"
MONTHS = 3
"""This month and those after it are offered for a budget: so many, or up to the first one without any."""


def may_set(ctx: Context, row: Budget | None) -> bool:
    """Tell whether the button is offered; the command judges again."""
    operation = "CreateBudget" if row is None else "ChangeBudgetAmount"
    wide = ctx.project_id is None or (row is not None and row.project_id is None)
    try:
        require_over_money(ctx, whole_tenant=wide)
    except Forbidden:
        return False
    return may(ctx, operation)


def amount_sent(sent: QueryDict, field: str = "amount") -> Decimal:
    """Return the amount that was typed. Raises `InvalidInput` with an example of one."""
    try:
        return amount_of(sent.get(field, "").strip(), f"/{field}")
    except InvalidInput as wrong:
        [fault] = wrong.errors
        told = f"{fault.detail} Write an amount such as 1500 or 99.50."
        raise InvalidInput(told, errors=[FieldError(fault.pointer, told)]) from wrong


def amount_view(site: AdminSite, request: HttpRequest, row: Budget, whose: str) -> HttpResponse:
    """Raise or lower a budget that is there, if it still is as it was shown."""
    ctx, sent = context_of(request), request.POST
    back = reverse("admin:usage_budget_change", args=[row.pk])

    def change(_: str) -> object:
        nonlocal row
        amount, version = amount_sent(sent), whole(sent.get("version", "")) or 0
        try:
            return change_budget_amount(ctx, budget_id=row.pk, amount=amount, version=version)
        except VersionMismatch as late:
            with reading(ctx):
                row = Budget.objects.get(pk=row.pk)
            raise VersionMismatch(_moved_on(row, amount)) from late

    done = "The budget has this amount from now on."
    return act_on(site, request, lambda: _change_of(row, whose, back), change, done=done, then=back)


def _moved_on(row: Budget, amount: Decimal) -> str:
    """Return what is now, and what was not done."""
    at = f"{row.updated_at.astimezone(UTC):%d %b %Y %H:%M:%S} UTC"
    return (
        f"The amount was changed after this page was opened: it is {usd(row.amount)} now (version "
        f"{row.version}, set {at}). The {usd(amount)} that you typed were not set; they are kept below. If "
        "they shall hold all the same, press the button again."
    )


def _change_of(row: Budget, whose: str, back: str) -> Confirmation:
    return Confirmation(
        title=f"Change the budget of {row.period_start:%B %Y}, {whose}",
        lead="It holds at once. What is reserved and spent already stays as it is.",
        button="Set this amount",
        back=back,
        heading=HEADING,
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


def recurrence_view(site: AdminSite, request: HttpRequest, row: Budget, whose: str) -> HttpResponse:
    """Let a budget open the next month by itself, or not any more."""
    ctx, sent = context_of(request), request.POST
    back = reverse("admin:usage_budget_change", args=[row.pk])

    def change(_: str) -> object:
        version = whole(sent.get("version", "")) or 0
        return change_recurrence(ctx, budget_id=row.pk, recurs=not row.recurs, version=version)

    done = "It does not recur any more." if row.recurs else "It recurs from now on."
    return act_on(site, request, lambda: _recurrence_of(row, whose, back), change, done=done, then=back)


def _recurrence_of(row: Budget, whose: str, back: str) -> Confirmation:
    months = f"{row.period_end:%B %Y}"
    if row.recurs:
        title, button, danger = "End the recurrence", "End it", True
        then = f"Nobody opens {months} by itself any more: without a budget no run starts in it."
    else:
        title, button, danger = "Let it recur", "Let it recur", False
        then = f"{months} is opened by itself a week before it begins, with {usd(row.amount)}, and so on."
    return Confirmation(
        title=f"{title}: the budget of {row.period_start:%B %Y}, {whose}",
        lead="This month's money stays as it is.",
        button=button,
        back=back,
        heading=HEADING,
        consequences=(then, "Each month's amount can be changed; the month after it begins with that."),
        hidden=(("version", str(row.version)),),
        reason="",
        danger=danger,
    )


def new_view(site: AdminSite, request: HttpRequest, whose: str) -> HttpResponse:
    """Open a budget of the place for a month."""
    ctx, sent = context_of(request), request.POST
    back = reverse("admin:usage_budget_changelist")

    def make(_: str) -> object:
        month = parse_month(sent.get("month"), "/month")
        recurs = sent.get("next") == RECURS
        amount = amount_sent(sent)
        return create_budget(ctx, project_id=ctx.project_id, month=month, amount=amount, recurs=recurs)

    def question() -> Confirmation:
        return _new_for(ctx, whose, back, sent.get("month", request.GET.get("month", "")))

    return act_on(site, request, question, make, done="The budget is open.", then=back)


def _months(ctx: Context) -> dict[date, UUID | None]:
    """The months that are offered, each with the budget that it has already; the last one may have none."""
    month = month_of(clock.now())
    with reading(ctx):
        rows = Budget.objects.filter(project_id=ctx.project_id, period_start__gte=month)
        there: dict[date, UUID] = dict(rows.values_list("period_start", "pk"))
    found: dict[date, UUID | None] = {}
    while len(found) < MONTHS or all(found.values()):
        found[month] = there.get(month)
        month = next_month(month)
    return found


def _new_for(ctx: Context, whose: str, back: str, asked: str) -> Confirmation:
    months = _months(ctx)
    taken = next((row for month, row in months.items() if label(month) == asked), None)
    free = [label(month) for month, row in months.items() if row is None]
    page = reverse("admin:usage_budget_change", args=[taken]) if taken else ""
    return Confirmation(
        title=f"New budget for {whose}",
        lead="Runs reserve what they may cost of every budget that covers them; the tightest one decides.",
        button="Open the budget",
        back=back,
        consequences=(
            "It cannot be deleted; its amount can be changed, down to what is in use.",
            "What was reserved before there was a budget is not drawn from it.",
        ),
        fields=(
            ChoiceField(
                "month",
                "Month (UTC)",
                tuple(
                    (label(month), f"{month:%B %Y}" + (", which has a budget already" if row else ""))
                    for month, row in months.items()
                ),
                chosen=asked if asked in free else free[0],
                taken=tuple(label(month) for month, row in months.items() if row),
            ),
            AMOUNT,
            ChoiceField(
                "next",
                "And the months after it",
                ((RECURS, "each opens by itself, with this amount"), ("once", "somebody opens them")),
                help="One that recurs opens the next month a week before it begins; that can be ended.",
            ),
        ),
        reason="",
        danger=False,
        instead=(page, "To the budget that this month has") if page else None,
        heading=HEADING,
    )
