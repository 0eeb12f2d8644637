from datetime import datetime
from uuid import UUID

from factory.kernel import clock
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import NotFound
from factory.kernel.locking import lock
from projects.selectors import project
from projects.states import ProjectState
from usage.models import Reservation
from usage.operations.closing import EXPIRED, close
from usage.selectors.expiry import has_time
from usage.states import ReservationState


@command("ExpireReservation")
def expire_reservation(ctx: Context, *, reservation_id: UUID, expires_at: datetime) -> bool:
    """Give back the money of a run that never dispatched; says whether it did.

    Judged again under the reservation's lock, which dispatch takes as well: whoever comes first wins. What
    has dispatched, is over, or does not expire at exactly `expires_at` is left alone, and so is everything of
    a project that is not Active; the time of a suspension, and of a freeze of the run, is added to what was
    left. Emits ReservationSettled
    with the state Expired, which fails the run.
    """
    reservation = lock(Reservation, reservation_id, missing=NotFound("There is no such reservation here."))
    due = reservation.state == ReservationState.RESERVED and reservation.due_at == expires_at
    if not due or _paused(reservation.project_id) or has_time(reservation, clock.now()):
        return False
    close(ctx, reservation, EXPIRED)
    return True


def _paused(project_id: UUID) -> bool:
    row = project(project_id)
    return row is None or row.state != ProjectState.ACTIVE
