"""Parking: an attempt that waits for a person holds no worker."""

from datetime import datetime

from approvals.selectors import ApprovalView, approval, authorizations_of_attempt
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.hints import WORK, wake
from factory.kernel.recording import record
from runs.events import LeaseExpired
from runs.models import Attempt, Lease
from runs.operations.advancing import end_if_spent
from runs.operations.holding import HeldAttempt, LockedAttempt
from runs.operations.settling import attempts_used
from runs.operations.violations import violation_of


@operation
def park(ctx: Context, held: HeldAttempt, approval_id: object, checkpoint: object, at: datetime) -> None:
    """The holder hands its lease back with a checkpoint; the slot is free, the attempt stays open."""
    held.lease.release(at=at)
    record(ctx, held.lease, "Parked")
    held.attempt.park(resume_at=None)
    held.attempt.checkpoint = checkpoint
    record(ctx, held.attempt, "Parked", detail={"approvalId": approval_id})
    wake(WORK)


@operation
def lapse(ctx: Context, locked: LockedAttempt, lease: Lease, at: datetime) -> None:
    """End a current lease whose time is over: Expired, `LeaseExpired`."""
    lease.expire(at=at)
    expired = LeaseExpired(attempt_id=locked.attempt.id, lease_id=lease.id, holder=lease.holder)
    record(ctx, lease, "LeaseExpired", expired)
    wake(WORK)  # the slot is free


def goes_on_for(locked: LockedAttempt, at: datetime) -> ApprovalView | None:
    """Return the request for whose sake the attempt stays open, whose holder fell silent or gave up in time.

    One that is Pending: a person is at it. One that was approved: as long as attempts are left, for whatever
    stopped the holder after the yes may stop the next one. None after an effect that nobody authorised.
    """
    view = waits_for_a_person(locked.attempt, at) if locked.run.is_working else None
    if view is None or violation_of(locked.attempt):
        return None
    return view if view.is_pending or attempts_used(locked.step) < locked.step.max_attempts else None


def waits_for_a_person(attempt: Attempt, at: datetime) -> ApprovalView | None:
    """The request that keeps a lapsed attempt parked: Pending, or approved and still to be used.

    Not once an authorization was taken: from then on an effect may have happened.
    """
    if attempt.approval_id is None or authorizations_of_attempt(attempt.id):
        return None
    view = approval(attempt.approval_id)
    return view if view.is_pending or view.use(at) == "not-yet-used" else None


@operation
def park_lapsed(ctx: Context, locked: LockedAttempt, view: ApprovalView, at: datetime) -> None:
    """Let the attempt wait without its holder, whose lease lapsed while a person was asked."""
    locked.attempt.park(resume_at=None if view.is_pending else at)
    record(ctx, locked.attempt, "LeaseLapsedWhileWaiting", detail={"approvalId": view.id})
    end_if_spent(ctx, locked.run)


@operation
def withdraw(ctx: Context, attempt: Attempt, lease: Lease, cause: str, at: datetime) -> bool:
    """Nobody acquired the offer. True when the attempt was parked before, and is parked again."""
    if attempt.held_at is None:
        return False
    attempt.park(resume_at=at)
    record(ctx, attempt, "OfferWithdrawn", detail={"leaseId": lease.id, "because": cause})
    wake(WORK)
    return True
