"""What must stop when a run stops: undispatched steps, offers, parked attempts, pending requests, money.

Who holds a lease is not interrupted by force: it is told at its next renewal, and may report once.
"""

from datetime import datetime
from uuid import UUID

import approvals.operations as approvals
import usage.operations as usage
from approvals.selectors import authorizations_of_attempt
from factory.clock import now
from factory.commanding import operation
from factory.context import Context
from factory.locking import lock_many
from factory.recording import record
from runs.events import AttemptOutcomeRecorded
from runs.models import Attempt, CancellationIntent, Lease, Run, Step
from runs.operations.metering import time_attempt
from runs.operations.moving import move_to_cancelled, move_to_failed
from runs.states import (
    ATTEMPT_ACTIVE,
    LEASE_CURRENT,
    STEP_ACTIVE,
    AttemptState,
    Attention,
    LeaseState,
    RunState,
)

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
def finish_cancelling(ctx: Context, run: Run) -> None:
    """Cancelling → Cancelled once no attempt is open any more; the money is settled."""
    if run.state != RunState.CANCELLING or open_attempts(run):
        return
    run.finish_cancelling(at=now())
    intent = CancellationIntent.objects.get(run_id=run.id)
    move_to_cancelled(ctx, run, "AllAttemptsSettled", intent)
    usage.settle(ctx, run.id)


def settle_money(ctx: Context, run: Run, *, before: str, cause: str) -> None:
    """What was set aside becomes spending, or goes back whole if nothing was ever dispatched."""
    if before == RunState.ACCEPTED:
        usage.release(ctx, run.id, cause)
    else:
        usage.settle(ctx, run.id)


def open_attempts(run: Run) -> bool:
    return bool(Attempt.objects.filter(run_id=run.id, state__in=sorted(ATTEMPT_ACTIVE)).exists())


def stop_everything(ctx: Context, run: Run, cause: str, at: datetime) -> None:
    """Settle offers and parked attempts, cancel the steps that nobody works at, and pending requests."""
    steps = lock_many(Step.objects.filter(run_id=run.id, state__in=sorted(STEP_ACTIVE)))
    attempts = lock_many(Attempt.objects.filter(run_id=run.id, state__in=sorted(ATTEMPT_ACTIVE)))
    leases = lock_many(Lease.objects.filter(run_id=run.id, state__in=sorted(LEASE_CURRENT)))
    by_attempt = {lease.attempt_id: lease for lease in leases}
    agents = {step.id: step.agent_id for step in steps}
    at_work: set[UUID] = set()
    for attempt in attempts:
        lease = by_attempt.get(attempt.id)
        attempt.run = run
        if lease is not None and lease.state == LeaseState.HELD:
            at_work.add(attempt.step_id)
            continue
        if lease is not None:
            _revoke(ctx, run, lease, cause, at)
        _give_up(ctx, attempt, agents[attempt.step_id], cause, at)
    doubtful = {a.step_id for a in attempts if a.state == AttemptState.UNCERTAIN}
    for step in steps:
        if step.id not in at_work:
            step.run = run
            step.cancel(at=at, attention=Attention.UNCERTAIN if step.id in doubtful else "")
            record(ctx, step, cause)
    approvals.cancel_pending(ctx, run_id=run.id, cause=cause)


def _revoke(ctx: Context, run: Run, lease: Lease, cause: str, at: datetime) -> None:
    lease.run = run
    lease.revoke(at=at)
    record(ctx, lease, cause)


def _give_up(ctx: Context, attempt: Attempt, agent_id: str, cause: str, at: datetime) -> None:
    """Nobody works at it. After an authorization an effect may have happened all the same."""
    if authorizations_of_attempt(attempt.id):
        attempt.doubt(at=at, reason=f"{REASONS[cause]} An authorization had been taken.")
    else:
        attempt.cancel(at=at, reason=REASONS[cause])
    record(ctx, attempt, cause, outcome_of(attempt))
    time_attempt(ctx, attempt, agent_id)


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
