"""After a restore nobody knows what became of the leases that the backup shows: they are settled as such."""

from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.recording import record
from runs.errors import AttemptNotFound
from runs.events import LeaseExpired
from runs.models import FencingEpoch, Lease
from runs.operations.ending import outcome_of
from runs.operations.holding import lock_attempt
from runs.operations.metering import time_attempt
from runs.operations.settling import follow_up
from runs.states import LEASE_CURRENT, StepState

REASON = "The database was restored: what the worker did after the backup is not known."


@command("RecoverLease")
def recover_lease(ctx: Context, *, lease_id: UUID) -> bool:
    """Make the attempt of a lease from before the restore Uncertain, whatever its class; whether it was one.

    Lease → Expired, attempt → Uncertain, and an Operator is asked: nothing is retried by itself, because
    the backup may be older than what the worker did, an authorization included. A lease of the present
    epoch is left alone. Emits LeaseExpired, AttemptOutcomeRecorded. Errors: `AttemptNotFound`.
    """
    attempt_id = Lease.objects.filter(pk=lease_id).values_list("attempt_id", flat=True).first()
    if attempt_id is None:
        raise AttemptNotFound(f"There is no lease {lease_id} here.")
    locked = lock_attempt(ctx, attempt_id)
    lease = Lease.objects.select_for_update(no_key=True).filter(pk=lease_id).get()
    epoch = FencingEpoch.objects.get().epoch
    if lease.state not in LEASE_CURRENT or lease.fencing_token >> 40 >= epoch:
        return False
    lease.run = locked.run
    at = now()
    lease.expire(at=at)
    expired = LeaseExpired(attempt_id=attempt_id, lease_id=lease.id, holder=lease.holder)
    record(ctx, lease, "Restored", expired)
    if locked.step.state == StepState.DISPATCHED:  # the worker may have begun after the backup
        locked.step.begin(at=at)
        record(ctx, locked.step, "Restored")
    locked.attempt.mark_uncertain(at=at, reason=REASON)
    record(ctx, locked.attempt, "Restored", outcome_of(locked.attempt))
    time_attempt(ctx, locked.attempt, locked.step.agent_id)
    follow_up(ctx, locked.run, locked.step, locked.attempt, at)
    return True
