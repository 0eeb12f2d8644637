"""AcquireLease: a worker takes what it was offered, and later keeps it."""

from datetime import datetime
from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.recording import record, save
from runs.commands.workers import note_heartbeat
from runs.errors import LeaseOver
from runs.models import Lease
from runs.operations.holding import LockedAttempt, current_lease, lock_attempt, why_not_held
from runs.operations.timing import grace, is_timed_out, renewed
from runs.selectors.answers import CANCELLED, TIMED_OUT, LeaseGrant
from runs.states import LeaseState, StepState


@command("AcquireLease", audited=False)
def acquire_lease(
    ctx: Context,
    *,
    attempt_id: UUID,
    lease_id: UUID,
    fencing_token: int,
    instance_id: UUID | None = None,
) -> LeaseGrant:
    """Acquire an offered lease (the first call), or renew a held one; a heartbeat as well.

    The first call moves lease Offered → Held and step Dispatched → Running. `expiresAt` is now + TTL, but not
    past the step's own time-out. Once that has come a renewal moves nothing and says to `stop`
    (`timed-out`), and so it does once the run is Cancelling or over (`cancelled`, `cancel_requested`).
    Judged by the database's clock after the locks are held; within the grace a late call is still accepted.
    Errors: `AttemptNotFound`, `WorkerSuperseded` and `StaleFencingToken` (409), `LeaseOver` (410).
    """
    note_heartbeat(ctx, lease_id, instance_id)
    locked = lock_attempt(ctx, attempt_id)
    lease = current_lease(ctx, locked, lease_id, fencing_token)
    if lease is None:
        raise why_not_held(ctx, locked, lease_id, fencing_token)
    at = now()
    if at > lease.expires_at + grace():
        raise LeaseOver("The lease ended before this call: stop, and report nothing more.")
    if lease.state == LeaseState.OFFERED:
        return _acquire(ctx, locked, lease, at)
    return _renew(locked, lease, at)


def _acquire(ctx: Context, locked: LockedAttempt, lease: Lease, at: datetime) -> LeaseGrant:
    lease.acquire(at=at, expires_at=renewed(locked.step, lease, at))
    record(ctx, lease, "LeaseAcquired", detail={"holder": lease.holder, "fencingToken": lease.fencing_token})
    if locked.attempt.held_at is None:
        locked.attempt.held_at = at
        save(locked.attempt)
    if locked.step.state == StepState.DISPATCHED:
        locked.step.begin(at=at)
        record(ctx, locked.step, "LeaseAcquired")
    return _grant(lease)


def _renew(locked: LockedAttempt, lease: Lease, at: datetime) -> LeaseGrant:
    stop = _stop(locked, lease, at)
    if stop is None:
        lease.expires_at = renewed(locked.step, lease, at)
        save(lease)
    return _grant(lease, stop)


def _stop(locked: LockedAttempt, lease: Lease, at: datetime) -> str | None:
    if not locked.run.is_working:
        return CANCELLED
    return TIMED_OUT if is_timed_out(locked.step, lease, at) else None


def _grant(lease: Lease, stop: str | None = None) -> LeaseGrant:
    return LeaseGrant(lease.id, lease.fencing_token, lease.expires_at, stop == CANCELLED, stop)
