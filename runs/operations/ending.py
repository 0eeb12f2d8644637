"""What must stop when a run stops: undispatched steps, offers, parked attempts, pending requests, money.

Who holds a lease is not interrupted by force: it is told at its next renewal, and may report once.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

import approvals.operations as approvals
import usage.operations as usage
from approvals.selectors import authorizations_of_attempts
from factory.kernel.clock import now
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.locking import lock_many
from factory.kernel.recording import Move, record_many
from runs.events import AttemptOutcomeRecorded
from runs.models import Attempt, CancellationIntent, Lease, Run, Step
from runs.operations.metering import time_attempt
from runs.operations.moving import move_to_cancelled, move_to_failed
from runs.operations.violations import note_violation, violations_of
from runs.selectors.clocks import out_of_time, stands_still
from runs.states import (
    ATTEMPT_ACTIVE,
    LEASE_CURRENT,
    STEP_ACTIVE,
    AttemptState,
    Attention,
    FailureClass,
    LeaseState,
    RunState,
)

S = AttemptState
REASONS = {
    "RunCancelled": "The run was cancelled.",
    "RunEnded": "The run has ended.",
}


@operation
def fail_run(
    ctx: Context, run: Run, *, cause: str, failure_class: str, reason: str, node_key: str = ""
) -> None:
    """Fail a locked run at once, with all of it that is not in a worker's hands; its money is settled."""
    before, at = run.state, now()
    move_to_failed(ctx, run, cause, failure_class, reason, at, node_key)
    stop_everything(ctx, run, "RunEnded", at)
    settle_money(ctx, run, before=before, cause=cause)


@operation
def end_if_out_of_time(ctx: Context, run: Run) -> bool:
    """Fail a locked Running run whose `maxMinutes` are over (DeadlineExceeded, class permanent); return
    whether it did. While its clock stands still nothing of it runs out."""
    at = now()
    if run.state != RunState.RUNNING or not out_of_time(run, at) or stands_still(run, at):
        return False
    reason = f"The run took longer than its limit of {run.limits['maxMinutes']} minutes."
    fail_run(ctx, run, cause="DeadlineExceeded", failure_class=FailureClass.PERMANENT, reason=reason)
    return True


@operation
def finish_cancelling(ctx: Context, run: Run) -> None:
    """Cancelling → Cancelled once no attempt is open any more; the money is settled."""
    if run.state != RunState.CANCELLING or open_attempts(run):
        return
    run.finish_cancelling(at=now())
    intent = CancellationIntent.objects.get(run_id=run.id)
    move_to_cancelled(ctx, run, "AllAttemptsSettled", intent)
    usage.settle(ctx, run.id)


def settle_money(ctx: Context, run: Run, *, before: str, cause: str) -> None:
    """Spend what was set aside, or give it back whole if nothing was ever dispatched."""
    if before == RunState.ACCEPTED:
        usage.release(ctx, run.id, cause)
    else:
        usage.settle(ctx, run.id)


def open_attempts(run: Run) -> bool:
    return bool(Attempt.objects.filter(run_id=run.id, state__in=sorted(ATTEMPT_ACTIVE)).exists())


def stop_everything(ctx: Context, run: Run, cause: str, at: datetime) -> None:
    """Settle offers and parked attempts, cancel the steps that nobody works at, and pending requests.

    The number of statements does not grow with what is open.
    """
    steps = lock_many(Step.objects.filter(run_id=run.id, state__in=sorted(STEP_ACTIVE)))
    attempts = lock_many(Attempt.objects.filter(run_id=run.id, state__in=sorted(ATTEMPT_ACTIVE)))
    leases = lock_many(Lease.objects.filter(run_id=run.id, state__in=sorted(LEASE_CURRENT)))
    for row in (*steps, *attempts, *leases):
        row.run = run
    held = {lease.attempt_id for lease in leases if lease.state == LeaseState.HELD}
    left = [attempt for attempt in attempts if attempt.id not in held]
    _revoke(ctx, [lease for lease in leases if lease.attempt_id not in held], cause, at)
    _give_up(ctx, left, {step.id: step.agent_id for step in steps}, cause, at)
    at_work = {attempt.step_id for attempt in attempts if attempt.id in held}
    asked = {attempt.step_id: Attention.UNCERTAIN for attempt in left if attempt.state == S.UNCERTAIN}
    asked |= _note_violations(ctx, run, left, steps)
    _cancel_steps(ctx, [step for step in steps if step.id not in at_work], asked, cause, at)
    approvals.cancel_pending(ctx, run_id=run.id, cause=cause)


def _revoke(ctx: Context, leases: Sequence[Lease], cause: str, at: datetime) -> None:
    for lease in leases:
        lease.revoke(at=at)
    record_many(ctx, [Move(lease, cause) for lease in leases])


def _give_up(
    ctx: Context, attempts: Sequence[Attempt], agents: Mapping[UUID, str], cause: str, at: datetime
) -> None:
    """Nobody works at them. After an authorization an effect may have happened all the same."""
    authorized = {taken.attempt_id for taken in authorizations_of_attempts(a.id for a in attempts)}
    for attempt in attempts:
        if attempt.id in authorized:
            attempt.mark_uncertain(at=at, reason=f"{REASONS[cause]} An authorization had been taken.")
        else:
            attempt.cancel(at=at, reason=REASONS[cause])
    record_many(ctx, [Move(attempt, cause, [outcome_of(attempt)]) for attempt in attempts])
    for attempt in attempts:
        time_attempt(ctx, attempt, agents[attempt.step_id])


def _note_violations(
    ctx: Context, run: Run, attempts: Sequence[Attempt], steps: Sequence[Step]
) -> dict[UUID, Attention]:
    """Audit each effect that nobody authorised; the attention that its step asks for."""
    by_id = {step.id: step for step in steps}
    violations = violations_of(attempts)
    violated = [attempt for attempt in attempts if attempt.id in violations]
    for attempt in violated:
        note_violation(ctx, run, by_id[attempt.step_id], attempt, violations[attempt.id])
    return {attempt.step_id: Attention.VIOLATION for attempt in violated}


def _cancel_steps(
    ctx: Context, steps: Sequence[Step], asked: Mapping[UUID, Attention], cause: str, at: datetime
) -> None:
    for step in steps:
        step.cancel(at=at, attention=asked.get(step.id, Attention.NONE))
    record_many(ctx, [Move(step, cause) for step in steps])


def outcome_of(attempt: Attempt) -> AttemptOutcomeRecorded:
    """The event of a settled attempt."""
    return AttemptOutcomeRecorded(
        run_id=attempt.run_id,
        step_id=attempt.step_id,
        attempt_id=attempt.id,
        outcome=str(attempt.state),
        failure_class=attempt.failure_class or None,
        outcome_hash=attempt.outcome_hash or None,
    )
