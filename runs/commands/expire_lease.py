"""What time alone does to a lease, an offer and a run. Due by the schedule, and in the path of every poll."""

from datetime import datetime
from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.recording import record, save
from runs.errors import AttemptNotFound
from runs.models import Lease, Step
from runs.operations.advancing import end_if_spent
from runs.operations.clock import note_clock
from runs.operations.ending import end_if_out_of_time, outcome_of
from runs.operations.holding import LockedAttempt, lock_attempt, lock_run
from runs.operations.metering import count_expired, time_attempt
from runs.operations.parking import goes_on_for, lapse, park_lapsed, withdraw
from runs.operations.settling import effect_may_have_happened, follow_up, retry_or_fail
from runs.operations.timing import grace, is_timed_out, took_too_long
from runs.selectors.clocks import clock_of
from runs.states import LEASE_CURRENT, LeaseState, RunState


@command("ExpireLease", audited=False)
def expire_lease(ctx: Context, *, lease_id: UUID, fencing_token: int) -> bool:
    """Settle what a silent worker has left, once its lease and the grace are over; whether it did.

    Lease → Expired, `LeaseExpired`. An offer that nobody acquired is withdrawn and uses up no attempt. An
    attempt whose request is Pending, or Approved and unused while attempts are left, is parked. Otherwise it
    is Uncertain if an effect may have happened (or its run is being cancelled), else TimedOut, which may be
    retried. A lease that was renewed or settled meanwhile is left alone. Errors: `AttemptNotFound`.
    """
    attempt_id = Lease.objects.filter(pk=lease_id).values_list("attempt_id", flat=True).first()
    if attempt_id is None:
        raise AttemptNotFound(f"There is no lease {lease_id} here.")
    locked = lock_attempt(ctx, attempt_id)
    lease = _still_current(locked, lease_id, fencing_token)
    at = now()
    if lease is None or at <= lease.expires_at + grace():
        return False
    was_held = lease.state == LeaseState.HELD
    lapse(ctx, locked, lease, at)
    count_expired(ctx)
    if was_held:
        _settle_held(ctx, locked, lease, at)
    else:
        withdraw_offer(ctx, locked, lease, "LeaseExpired", at)
    return True


def _still_current(locked: LockedAttempt, lease_id: UUID, fencing_token: int) -> Lease | None:
    lease = (
        Lease.objects.select_for_update(no_key=True)
        .filter(pk=lease_id, fencing_token=fencing_token, state__in=sorted(LEASE_CURRENT))
        .first()
    )
    if lease is not None:
        lease.run = locked.run
    return lease


def _settle_held(ctx: Context, locked: LockedAttempt, lease: Lease, at: datetime) -> None:
    run, step, attempt = locked.run, locked.step, locked.attempt
    waiting_for = goes_on_for(locked, at)
    if waiting_for is not None:
        park_lapsed(ctx, locked, waiting_for, at)
        return
    if run.state == RunState.CANCELLING or effect_may_have_happened(step, attempt):
        attempt.mark_uncertain(at=at, reason="The worker fell silent; whether it acted is not known.")
    else:
        attempt.time_out(at=at, reason=_why(step, lease))
    record(ctx, attempt, "LeaseExpired", outcome_of(attempt))
    time_attempt(ctx, attempt, step.agent_id)
    follow_up(ctx, run, step, attempt, at)


def _why(step: Step, lease: Lease) -> str:
    """A lease that stood until the step's own time-out was not renewed because of it."""
    return took_too_long(step) if is_timed_out(step, lease, lease.expires_at) else "The worker fell silent."


def withdraw_offer(ctx: Context, locked: LockedAttempt, lease: Lease, cause: str, at: datetime) -> None:
    """Take back what nobody acquired: parked again if it was parked before, else TimedOut at no cost.

    Of a frozen run nothing else follows: its step waits until the freeze is lifted.
    """
    frozen = locked.run.frozen_at is not None
    if withdraw(ctx, locked.attempt, lease, cause, at):
        if not frozen:
            end_if_spent(ctx, locked.run)
        return
    locked.attempt.time_out(at=at, reason="No worker acquired the offer.")
    record(ctx, locked.attempt, "OfferWithdrawn", outcome_of(locked.attempt))
    time_attempt(ctx, locked.attempt, locked.step.agent_id)
    if frozen and locked.run.is_working:
        retry_or_fail(ctx, locked.step, locked.attempt, at)
    else:
        follow_up(ctx, locked.run, locked.step, locked.attempt, at)


@command("WithdrawOffer", audited=False)
def withdraw_from_drained(ctx: Context, *, lease_id: UUID, attempt_id: UUID) -> bool:
    """Revoke an offer that a draining worker has not acquired, so that another gets the work at once."""
    return _take_back(ctx, lock_attempt(ctx, attempt_id), lease_id, "WorkerDrained")


@command("WithdrawFrozenOffer", audited=False)
def withdraw_from_frozen(ctx: Context, *, lease_id: UUID) -> bool:
    """Revoke an offer of a frozen run: nobody could acquire it, and its worker has room for others' work.

    After the freeze is lifted the step is offered anew. An offer of a run that is not frozen is left alone.
    Errors: `AttemptNotFound`.
    """
    attempt_id = Lease.objects.filter(pk=lease_id).values_list("attempt_id", flat=True).first()
    if attempt_id is None:
        raise AttemptNotFound(f"There is no lease {lease_id} here.")
    locked = lock_attempt(ctx, attempt_id)
    return locked.run.frozen_at is not None and _take_back(ctx, locked, lease_id, "RunFrozen")


def _take_back(ctx: Context, locked: LockedAttempt, lease_id: UUID, cause: str) -> bool:
    lease = Lease.objects.select_for_update(no_key=True).filter(pk=lease_id, state=LeaseState.OFFERED).first()
    if lease is None:
        return False
    lease.run = locked.run
    at = now()
    lease.revoke(at=at)
    record(ctx, lease, cause)
    withdraw_offer(ctx, locked, lease, cause, at)
    return True


@command("EnforceDeadline", audited=False)
def enforce_deadline(ctx: Context, *, run_id: UUID) -> bool:
    """Fail a Running run whose `maxMinutes` are over (DeadlineExceeded, class permanent); whether it did.

    The time for which its clock stood still does not count: the stored deadline is brought up to that, and
    to what stops the clock now. Emits RunFailed. Errors: `RunNotFound`.
    """
    run = lock_run(ctx, run_id)
    if run.deadline_at is None or not run.is_working:
        return False
    note_clock(ctx, run, now())
    if end_if_out_of_time(ctx, run):
        return True
    at = now()
    clock = clock_of(run)
    if clock is not None and run.deadline_at <= at:
        run.set_clock(clock.changed(clock.because, at))
        save(run)
    return False
