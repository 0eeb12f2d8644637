"""The end of a hold: by a person who says what the usage cost, or that nobody will know, and by its age."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db.models import Case, F, OuterRef, Subquery, When

from approvals.selectors import unknown_hold
from factory.kernel import clock
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InvalidInput, NotFound
from factory.kernel.locking import lock, lock_many
from factory.kernel.recording import Move, record_many
from usage.errors import HoldOver, RunNotEnded, UsageOfSeveralModels
from usage.events import UsageReconciled
from usage.models import Reservation, UsageRecord
from usage.operations.adding_up import settle_sums
from usage.operations.closing import adjust, end_hold, hold_due
from usage.operations.serial import one_at_a_time
from usage.permissions import require_finance
from usage.pricing.money import CALL_LIMIT, QUANTUM, text_of
from usage.states import ReservationState, UsageState

MOST_WORDS = 2000


@command("SettleHold")
def settle_hold(
    ctx: Context,
    *,
    reservation_id: UUID,
    reason: str,
    evidence: str,
    cost: Decimal | None = None,
    provider: str = "",
    name: str = "",
) -> str:
    """End what is held for a run's usage of unknown cost, with a reason and evidence.

    With `cost`, in all, the usage is Confirmed at it: divided evenly among its calls, to the last millionth,
    and booked as an adjustment. `provider` and `name` say of which model or tool, where there are several.
    Without it the money is free again, and the usage stays Uncertain. What was freed before can still be
    confirmed; what is Confirmed is over.

    Guards: it is in the caller's scope (404); a person with the grant finance there (403); a reason and
    evidence (400); the run has ended (`RunNotEnded`, 409); something is left to settle (`HoldOver`, 409); a
    cost is of one model (`UsageOfSeveralModels`, 422). Emits UsageReconciled for each call that is Confirmed.
    """
    _check(reason, evidence, cost, provider, name)
    reservation = _locked(ctx, reservation_id)
    require_finance(ctx)
    if reservation.state == ReservationState.RESERVED:
        raise RunNotEnded("The run has not ended: what it used can still become known.")
    because = {"reason": reason, "evidence": evidence}
    if cost is not None:
        _confirm(ctx, reservation, cost, _unknown(reservation, provider, name), because)
    elif not reservation.held:
        raise HoldOver(f"Nothing is held for this run. {_what_became(reservation)}".strip())
    else:
        end_hold(ctx, reservation, "HoldReleased", **because)
    return str(reservation.id)


@command("ExpireHold")
def expire_hold(ctx: Context, *, reservation_id: UUID, due_at: datetime) -> bool:
    """Free what is held for usage of unknown cost once it is old enough by the policy; says whether it did.

    Judged again under the reservation's lock, by the policy in force: a hold that ended, or is to end at
    another time, is left alone. The usage stays Uncertain. Emits nothing; the ledger carries the movement.
    """
    reservation = lock(Reservation, reservation_id, missing=NotFound("There is no such reservation here."))
    if not reservation.held or reservation.hold_due_at != due_at:
        return False
    due = hold_due(reservation)
    if due is None or clock.now() < due:
        Reservation.objects.filter(pk=reservation.pk).update(hold_due_at=due)
        return False
    end_hold(ctx, reservation, "HoldExpired")
    return True


@command("DateHolds", audited=False)
def date_holds(ctx: Context) -> int:
    """Date the end of every open hold by the policy that is in force now; answers with their number.

    All of them or none: whoever has one locked may end without dating it, so `Busy` says to do it again, and
    the news of the policy is delivered again. Who closes a reservation meanwhile reads the policy after this.
    """
    one_at_a_time("holds", ["of the tenant"])
    lasts, held = unknown_hold(), Reservation.objects.filter(held__gt=0).order_by("pk")
    ids = list(held.select_for_update(no_key=True, nowait=True).values_list("pk", flat=True))
    unknown = UsageRecord.objects.filter(run_id=OuterRef("run_id"), state=UsageState.UNCERTAIN)
    newest = Subquery(unknown.order_by("-recorded_at").values("recorded_at")[:1])
    since = Case(When(hold_ended_at=None, then=F("closed_at")), default=newest)
    due = since + lasts if lasts is not None else None
    return int(Reservation.objects.filter(pk__in=ids).update(hold_due_at=due))


def _check(reason: str, evidence: str, cost: Decimal | None, provider: str, name: str) -> None:
    shows = "Name what shows it: a bill, a ticket."
    fields = (("/reason", reason, "Say why."), ("/evidence", evidence, shows))
    faults = [FieldError(at, detail) for at, text, detail in fields if not text.strip()]
    faults += [
        FieldError(at, f"At most {MOST_WORDS} characters.")
        for at, text, _ in fields
        if len(text) > MOST_WORDS
    ]
    if bool(provider) != bool(name):
        faults.append(FieldError("/name", "A model or tool is named with its provider, or neither is."))
    if provider and cost is None:
        faults.append(FieldError("/cost", "Money is freed for all of the run's usage; name a cost for one."))
    if faults:
        raise InvalidInput("The hold cannot be ended so.", errors=faults)


def _locked(ctx: Context, reservation_id: UUID) -> Reservation:
    missing = NotFound("There is no such reservation here.")
    reservation = lock(Reservation, reservation_id, missing=missing)
    if ctx.project_id not in (None, reservation.project_id):
        raise missing
    return reservation


def _unknown(reservation: Reservation, provider: str, name: str) -> list[UsageRecord]:
    rows = UsageRecord.objects.filter(run_id=reservation.run_id, state=UsageState.UNCERTAIN)
    if provider:
        rows = rows.filter(provider=provider, name=name)
    unknown = lock_many(rows)
    if not unknown:
        raise HoldOver("No usage of unknown cost is left there: it is settled, or there never was any.")
    models = sorted({f"{row.provider}/{row.name}" for row in unknown})
    if len(models) > 1:
        listed = ", ".join(models[:10])
        detail = f"A cost is that of one model or tool: say of which of {listed}."
        raise UsageOfSeveralModels(detail, errors=[FieldError("/name", detail)])
    return unknown


def _confirm(
    ctx: Context, reservation: Reservation, cost: Decimal, rows: Sequence[UsageRecord], why: dict[str, str]
) -> None:
    at = clock.now()
    for row, share in zip(rows, shares(cost, len(rows)), strict=True):
        row.settle(cost=share, at=at, by=ctx.actor.subject, **why)
    moves = [Move(row, "UsageSettled", [_event(ctx, row)], {"amountUsd": row.cost}) for row in rows]
    record_many(ctx, moves)
    settle_sums(rows)
    adjust(ctx, reservation)


def shares(cost: Decimal, calls: int) -> list[Decimal]:
    """Divide a cost evenly among calls, to the last millionth: what is left over goes to the first ones."""
    if cost >= CALL_LIMIT * calls:
        detail = f"No call is believed to cost {text_of(CALL_LIMIT)} or more."
        raise InvalidInput(detail, errors=[FieldError("/cost", detail)])
    share, over = divmod(int(cost / QUANTUM), calls)
    return [(share + (index < over)) * QUANTUM for index in range(calls)]


def _event(ctx: Context, row: UsageRecord) -> UsageReconciled:
    return UsageReconciled(
        usage_id=row.id,
        run_id=row.run_id,
        tenant_id=ctx.tenant_id,
        project_id=row.project_id,
        receipt_id=row.receipt_id,
        state="Confirmed",
        amount_usd=row.cost,
        by="person",
    )


def _what_became(reservation: Reservation) -> str:
    if reservation.hold_ended_at is None:
        return ""
    return f"Its hold was ended by {reservation.hold_ended_by} at {reservation.hold_ended_at.isoformat()}."
