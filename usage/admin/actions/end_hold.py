"""Ending what is held for usage of unknown cost: what it is held for, and the page with one command."""

from collections.abc import Sequence
from decimal import Decimal

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.defaultfilters import pluralize
from django.urls import reverse

from factory.console.confirming import ChoiceField, Confirmation, act_on
from factory.console.scope import context_of
from factory.console.show import seen
from factory.kernel.amounts import usd
from factory.kernel.context import Context
from factory.kernel.errors import Forbidden
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from usage.admin.actions.budget import amount_sent
from usage.commands import settle_hold
from usage.models import Reservation
from usage.permissions import require_finance
from usage.selectors import UnknownCalls, unknown_of_run
from usage.states import ReservationState

HEADING = "Reservations"
SHOWN = 12
EVIDENCE = ChoiceField(
    "evidence", "Evidence", help="What shows it: a bill and its line, a ticket, a message."
)
FREED = (
    "Without one: the money is free again, and the calls stay of unknown cost, which is said wherever "
    "they are counted."
)
SEPARATOR = "\x1f"


def may_end(ctx: Context, row: Reservation) -> bool:
    """Return whether the button is offered; the command judges again."""
    try:
        require_finance(ctx)
    except Forbidden:
        return False
    settled = row.held > 0 or bool(unknown_of_run(row.run_id))
    return row.state != ReservationState.RESERVED and settled and may(ctx, "SettleHold")


def label_of(row: Reservation) -> str:
    """Return what the act is called: money may be held, or the usage of unknown cost alone be left."""
    return "End what is held" if row.held else "Settle what its calls cost"


def sentence(row: Reservation) -> str:
    """Return how the hold of a reservation stands, for its page: empty where there never was one."""
    calls = sum(each.calls for each in unknown_of_run(row.run_id))
    unknown = f"{calls} call{pluralize(calls)} of unknown cost"
    if row.held:
        until = f"{row.hold_due_at:%d %b %Y, %H:%M} UTC" if row.hold_due_at else "a person ends it"
        return f"{usd(row.held)} are held for {unknown}, until {until}."
    if row.hold_ended_at is None:
        return ""
    why = (
        f": {row.hold_ended_reason} ({row.hold_ended_evidence})" if row.hold_ended_reason else ", by its age"
    )
    left = f" {unknown.capitalize()} stay so." if calls else ""
    return f"Ended on {row.hold_ended_at:%d %b %Y, %H:%M} UTC by {row.hold_ended_by}{why}.{left}"


def hold_view(site: AdminSite, request: HttpRequest, row: Reservation) -> HttpResponse:
    """End the hold of a run: at a figure, or without one."""
    ctx, sent = context_of(request), request.POST
    back = reverse("admin:usage_reservation_change", args=[row.pk])
    with reading(ctx):
        calls = unknown_of_run(row.run_id)

    def settle(reason: str) -> object:
        provider, _, name = sent.get("name", "").partition(SEPARATOR)
        cost = _cost(sent)
        return settle_hold(
            ctx,
            reservation_id=row.pk,
            reason=reason,
            evidence=sent.get("evidence", ""),
            cost=cost,
            provider=provider if cost is not None else "",
            name=name if cost is not None else "",
        )

    figure = bool(sent.get("cost", "").strip())
    done = "The usage is settled at this figure." if figure else "The hold has ended."
    return act_on(site, request, lambda: _question(row, calls, back), settle, done=done, then=back)


def _cost(sent: QueryDict) -> Decimal | None:
    return amount_sent(sent, "cost") if sent.get("cost", "").strip() else None


def _question(row: Reservation, calls: Sequence[UnknownCalls], back: str) -> Confirmation:
    several = ChoiceField(
        "name",
        "The cost is that of",
        tuple((f"{each.provider}{SEPARATOR}{each.name}", seen(each.called)) for each in calls),
    )
    cost = ChoiceField(
        "cost",
        "What it cost, in USD",
        help="Of all these calls together" + ("; empty if nobody will know." if row.held else "."),
        optional=bool(row.held),
    )
    return Confirmation(
        title=f"{label_of(row)}: {usd(row.held)}" if row.held else label_of(row),
        lead="A run is over, and nobody knows what some of its calls have cost.",
        button="End the hold" if row.held else "Settle it",
        back=back,
        heading=HEADING,
        facts=[(seen(each.called), seen(each.in_words)) for each in calls[:SHOWN]],
        consequences=(
            "With a cost: these calls are Confirmed at it, in equal shares, and it is booked as spent.",
            *([FREED] if row.held else []),
            "What is Confirmed is final. The reason and the evidence stay with it.",
        ),
        fields=(cost, *([several] if len(calls) > 1 else []), EVIDENCE),
    )
