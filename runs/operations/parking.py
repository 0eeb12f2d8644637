"""Parking: an attempt that waits for a person holds no worker."""

from datetime import datetime

from approvals.selectors import ApprovalView, approval, authorizations_of_attempt
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.hints import WORK, wake
from factory.kernel.recording import record
from runs.models import Attempt, Lease
from runs.operations.holding import HeldAttempt


@operation
def park(ctx: Context, held: HeldAttempt, approval_id: object, checkpoint: object, at: datetime) -> None:
    """The holder hands its lease back with a checkpoint; the slot is free, the attempt stays open."""
    held.lease.release(at=at)
    record(ctx, held.lease, "Parked")
    held.attempt.park(resume_at=None)
    held.attempt.checkpoint = checkpoint
    record(ctx, held.attempt, "Parked", detail={"approvalId": approval_id})
    wake(WORK)


def waits_for_a_person(attempt: Attempt, at: datetime) -> ApprovalView | None:
    """The request that keeps a lapsed attempt parked: Pending, or approved and still to be used.

    Not once an authorization was taken: from then on an effect may have happened.
    """
    if attempt.approval_id is None or authorizations_of_attempt(attempt.id):
        return None
    view = approval(attempt.approval_id)
    return view if view.is_pending or view.use(at) == "not-yet-used" else None


@operation
def park_lapsed(ctx: Context, attempt: Attempt, view: ApprovalView, at: datetime) -> None:
    """The holder fell silent while a person was asked: the attempt waits without it."""
    attempt.park(resume_at=None if view.is_pending else at)
    record(ctx, attempt, "LeaseLapsedWhileWaiting", detail={"approvalId": view.id})


@operation
def withdraw(ctx: Context, attempt: Attempt, lease: Lease, cause: str, at: datetime) -> bool:
    """Nobody acquired the offer. True when the attempt was parked before, and is parked again."""
    if attempt.held_at is None:
        return False
    attempt.park(resume_at=at)
    record(ctx, attempt, "OfferWithdrawn", detail={"leaseId": lease.id, "because": cause})
    wake(WORK)
    return True
