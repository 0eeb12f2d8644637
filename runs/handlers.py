"""What runs do about news: their own acceptance, and money that was given back unused."""

import usage.states as usage
from factory.context import Context
from factory.relay import Received, on
from runs import gate  # noqa: F401  registers the subject of gated actions
from runs.commands import fail_run_on_expired_reservation, start_run
from runs.states import RUN_ACCEPTED

START = "runs.start_run"
EXPIRE = "runs.fail_run_on_expired_reservation"


@on(RUN_ACCEPTED, name=START)
def start_run_when_accepted(ctx: Context, event: Received) -> None:
    """A run was accepted: set its money aside and make its first steps."""
    if event.run_id is not None:
        start_run.under(event.once(START))(ctx, run_id=event.run_id)


@on(usage.RESERVATION_SETTLED, name=EXPIRE)
def fail_run_when_its_reservation_expires(ctx: Context, event: Received) -> None:
    """Nothing was dispatched in time: the run cannot go on without its money."""
    if event.run_id is not None and event.payload["state"] == usage.ReservationState.EXPIRED:
        fail_run_on_expired_reservation.under(event.once(EXPIRE))(ctx, run_id=event.run_id)
