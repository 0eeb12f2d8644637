"""The end of a reservation: what was used is spent, what is unknown stays held, the rest goes back."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db.models import QuerySet

from approvals.selectors import unknown_hold
from factory.kernel import clock
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.ids import uuid7
from factory.kernel.locking import lock_many
from factory.kernel.recording import record
from usage.events import ReservationSettled
from usage.models import Budget, Reservation, UsageRecord
from usage.operations.ledger import Posting, post
from usage.operations.serial import one_at_a_time
from usage.pricing.money import QUANTUM, ZERO
from usage.selectors import ReservationView, UsageView, reservation_view, usage_of_run
from usage.states import Account, Movement, ReservationState, UsageState


@dataclass(frozen=True, slots=True)
class Ending:
    """One way in which a reservation ends."""

    transition: Callable[..., None]
    cause: str
    movement: Movement


SETTLED = Ending(Reservation.settle, "RunEnded", Movement.SETTLED)
RELEASED = Ending(Reservation.release, "RunEndedBeforeDispatch", Movement.RELEASED)
EXPIRED = Ending(Reservation.expire, "ReservationExpired", Movement.EXPIRED)


@operation
def settle(ctx: Context, run_id: UUID) -> ReservationView | None:
    """Settle the run's reservation at its terminal state; without one, or once it is over, a no-op.

    In each of its budgets committed falls by the reservation and spent rises by the known usage; while
    usage is Uncertain, what is left of the reservation stays held. Emits ReservationSettled.
    """
    reservation = locked_reservation(run_id)
    if reservation is not None and reservation.state == ReservationState.RESERVED:
        close(ctx, reservation, SETTLED)
    return reservation_view(reservation) if reservation else None


@operation
def release(ctx: Context, run_id: UUID, cause: str) -> ReservationView | None:
    """Give everything back for a run that ended, by `cause`, before anything was dispatched.

    A run that did dispatch is settled instead: ending is never refused. Without a live reservation a no-op.
    Emits ReservationSettled with the state Released.
    """
    reservation = locked_reservation(run_id)
    if reservation is not None and reservation.state == ReservationState.RESERVED:
        close(ctx, reservation, SETTLED if reservation.dispatched_at else RELEASED, because=cause)
    return reservation_view(reservation) if reservation else None


def locked_reservation(run_id: UUID) -> Reservation | None:
    """Return the run's reservation under its lock."""
    reservation: Reservation | None = (
        Reservation.objects.select_for_update(no_key=True).filter(run_id=run_id).first()
    )
    return reservation


def hold_for(reservation: Reservation, used: UsageView) -> Decimal:
    """Return what must stay set aside for usage of unknown cost: all that was reserved and is not spent.

    Nobody knows less, and a budget must not be overspent by what nobody knows. For usage that was there when
    a hold was ended, nothing is held again: of the rest, calls that came later hold their even share among
    all calls of unknown cost, as a cost that a person names is divided.
    """
    rest = max(reservation.total - used.cost, ZERO)
    if not used.uncertain or reservation.hold_ended_at is None:
        return rest if used.uncertain else ZERO
    later = _unknown_calls(reservation).filter(recorded_at__gt=reservation.hold_ended_at).count()
    return int(rest / QUANTUM) * later // used.uncertain * QUANTUM


def hold_due(reservation: Reservation) -> datetime | None:
    """Return when what a closed reservation holds is free again by its age; None where no policy says so.

    It is as old as the reservation's end; one that follows a hold that was ended is as its newest call.
    """
    if not reservation.held or reservation.closed_at is None:
        return None
    one_at_a_time("holds", ["of the tenant"], shared=True)  # a policy that is published meanwhile is seen
    lasts, since = unknown_hold(), reservation.closed_at
    if reservation.hold_ended_at is not None:
        since = _unknown_calls(reservation).latest("recorded_at").recorded_at
    return since + lasts if lasts is not None else None


def _unknown_calls(reservation: Reservation) -> QuerySet[UsageRecord]:
    rows: QuerySet[UsageRecord] = UsageRecord.objects.filter(
        run_id=reservation.run_id, state=UsageState.UNCERTAIN
    )
    return rows


def close(ctx: Context, reservation: Reservation, ending: Ending, *, because: str = "") -> None:
    """End a locked, live reservation and move its money in every budget that it draws on."""
    used = usage_of_run(reservation.run_id)
    spent, held = used.cost, hold_for(reservation, used)
    budgets, at = lock_held(reservation), clock.now()
    ending.transition(reservation, at=at, spent=spent, held=held)
    reservation.hold_due_at = hold_due(reservation)
    event = ReservationSettled(
        reservation_id=reservation.id,
        run_id=reservation.run_id,
        tenant_id=ctx.tenant_id,
        state=reservation.state,
        committed_usd=spent,
        released_usd=max(reservation.total - spent - held, ZERO),
        held_usd=held,
    )
    figures = {"committedUsd": spent, "heldUsd": held}  # the journal outlives its events
    record(ctx, reservation, ending.cause, event, detail=figures | ({"because": because} if because else {}))
    posting = Posting(uuid7(), ending.movement, at, reservation.id)
    deltas = {
        Account.COMMITTED: -reservation.total,
        Account.SPENT: spent,
        Account.HELD: held,
        Account.AVAILABLE: reservation.total - spent - held,
    }
    post(budgets, deltas, posting)


def adjust(ctx: Context, reservation: Reservation) -> None:
    """Bring a closed reservation, and its budgets, up to usage that arrived or became known after its end."""
    used = usage_of_run(reservation.run_id)
    held = hold_for(reservation, used)
    more_spent, more_held = used.cost - reservation.spent, held - reservation.held
    budgets = lock_held(reservation)
    reservation.adjust(spent=used.cost, held=held)
    reservation.hold_due_at = hold_due(reservation)
    record(ctx, reservation, "UsageAdjusted", detail={"spent": more_spent, "held": more_held})
    posting = Posting(uuid7(), Movement.ADJUSTED, clock.now(), reservation.id)
    deltas = {
        Account.SPENT: more_spent,
        Account.HELD: more_held,
        Account.AVAILABLE: -(more_spent + more_held),
    }
    post(budgets, deltas, posting)


def end_hold(
    ctx: Context, reservation: Reservation, cause: str, *, reason: str = "", evidence: str = ""
) -> None:
    """Free what a locked, closed reservation holds, in each of its budgets; its usage stays Uncertain."""
    held, budgets, at = reservation.held, lock_held(reservation), clock.now()
    reservation.end_hold(at=at, by=ctx.actor.subject, reason=reason, evidence=evidence)
    record(ctx, reservation, cause, detail={"spent": ZERO, "held": -held})
    posting = Posting(uuid7(), Movement.HOLD_ENDED, at, reservation.id)
    post(budgets, {Account.HELD: -held, Account.AVAILABLE: held}, posting)


def lock_held(reservation: Reservation) -> list[Budget]:
    """Return the budgets that it draws on, locked: those of its own month, whatever month it is now."""
    return lock_many(Budget, reservation.holds.values_list("budget_id", flat=True))
