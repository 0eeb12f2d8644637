"""Setting more money aside for a run that has begun, and has used what it was given."""

from decimal import Decimal
from uuid import UUID

from factory.kernel import clock
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.ids import uuid7
from factory.kernel.recording import record
from usage.errors import ReservationNotLive
from usage.operations.closing import lock_held, locked_reservation
from usage.operations.ledger import Posting, post
from usage.operations.reserving import not_enough, reserved
from usage.pricing.money import amount_of
from usage.states import Account, Movement, ReservationState


@operation
def extend(ctx: Context, *, run_id: UUID, to: Decimal) -> str:
    """Raise what is set aside for a run that has dispatched to `to`, in every budget that it draws on.

    Empty when it is there now; else why not, in a sentence: a denial is an answer, and moves nothing. What
    is set aside already is never lowered. The caller holds the run's lock. Emits BudgetReserved with the
    whole amount. Raises `ReservationNotLive` when there is no live reservation, `InvalidInput`.
    """
    wanted = amount_of(to, "/amount")
    reservation = locked_reservation(run_id)
    if reservation is None or reservation.state != ReservationState.RESERVED or not reservation.expires_at:
        raise ReservationNotLive("The run has no money set aside that could be added to.")
    more = wanted - reservation.total
    if more <= 0:
        return ""
    budgets = lock_held(reservation)
    fault = not_enough(budgets, more)
    if not fault:
        reservation.extend(by=more)
        event = reserved(ctx, reservation, reservation.expires_at)
        record(ctx, reservation, "BudgetExtended", event, detail={"by": more})
        posting = Posting(uuid7(), Movement.EXTENDED, clock.now(), reservation.id)
        post(budgets, {Account.AVAILABLE: -more, Account.COMMITTED: more}, posting, covered=True)
    return fault
