"""The gate between money set aside and work that spends it."""

from uuid import UUID

from factory.kernel import clock
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.recording import save
from usage.errors import ReservationNotLive
from usage.operations.closing import locked_reservation
from usage.selectors import ReservationView, reservation_view
from usage.selectors.expiry import has_time
from usage.states import ReservationState


@operation
def confirm_live(ctx: Context, run_id: UUID) -> ReservationView:
    """Lock the run's reservation and confirm that its money is there; called by every dispatch.

    The first call is what keeps it from expiring ever after: expiry takes the same lock, so one of the two
    wins. Raises `ReservationNotLive` when there is none, when it is over, or when its time has come.
    """
    reservation = locked_reservation(run_id)
    if reservation is None or reservation.state != ReservationState.RESERVED:
        raise ReservationNotLive("The run has no money set aside, so nothing of it is dispatched.")
    if reservation.dispatched_at is None:
        at = clock.now()
        if not has_time(reservation, at):
            raise ReservationNotLive("The money set aside for the run was not used in time and has expired.")
        reservation.confirm(at=at)
        save(reservation)
    return reservation_view(reservation)
