"""Receipts while the work goes on, so that what a dead worker spent is not lost."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from factory.kernel.commanding import command
from factory.kernel.context import Context
from runs.errors import LeaseOver
from runs.models import Lease
from runs.operations.advancing import end_if_spent
from runs.operations.holding import LockedAttempt, current_lease, lock_attempt, why_not_held
from runs.operations.receiving import take_receipts
from runs.selectors.answers import ReceiptsTaken
from runs.states import LeaseState


@command("RecordReceipts", audited=False)
def record_receipts(
    ctx: Context,
    *,
    attempt_id: UUID,
    lease_id: UUID,
    fencing_token: int,
    receipts: Sequence[Any],
) -> ReceiptsTaken:
    """Keep receipts of model calls, tool calls and effects, each for itself, and say what became of each.

    The same receipt again is a repeat; one that is faulty, or says something else than the one that stands
    under its identity, is refused by name, audited and kept for a person, and the others are taken.
    From who held a lease that is over they are taken too, marked superseded: they were paid for all the
    same, and an effect among them asks for an Operator's attention. Nothing else moves, unless they show
    that the run is over its limit while nobody is at work; of a frozen run not even then. Emits
    UsageRecorded, RunFailed. Errors: `AttemptNotFound`, `StaleFencingToken` (a lease that never was the
    caller's), `LeaseOver` (one that was never acquired).
    """
    locked = lock_attempt(ctx, attempt_id)
    current = current_lease(ctx, locked, lease_id, fencing_token)
    lease = current or _own_past_lease(ctx, locked, lease_id, fencing_token)
    if lease.acquired_at is None:
        raise LeaseOver("The lease was never acquired.")
    superseded = current is None or current.state != LeaseState.HELD
    taken = take_receipts(ctx, locked, lease, receipts, superseded=superseded)
    if locked.run.frozen_at is None:
        end_if_spent(ctx, locked.run)
    return taken


def _own_past_lease(ctx: Context, locked: LockedAttempt, lease_id: UUID, fencing_token: int) -> Lease:
    row: Lease | None = Lease.objects.filter(
        pk=lease_id, attempt_id=locked.attempt.id, fencing_token=fencing_token, holder=ctx.actor.subject
    ).first()
    if row is None:
        raise why_not_held(ctx, locked, lease_id, fencing_token)
    return row
