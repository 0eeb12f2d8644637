"""A run that stood still goes on: its requests and approvals get back the time that they lost."""

from datetime import datetime
from uuid import UUID

from approvals.models import ApprovalRequest
from approvals.operations.closing import close
from approvals.operations.requesting import renew
from approvals.selectors import approval_view, valid_until
from approvals.states import ApprovalState
from approvals.subjects import subject_of
from factory.kernel import clock
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.locking import lock_many
from factory.kernel.recording import Move, record_many
from projects.selectors import paused, suspensions


@operation
def resume(ctx: Context, run_id: UUID, *, since: datetime) -> None:
    """Give back the time since `since`, in which nobody could decide on, or use, anything of a run.

    An approval that was still good then, and is not used, is good for so much longer. A request whose time
    ran out is opened once more, for as long as before; what no answer would be taken to is left to expire.
    Emits `ApprovalDecided` and `ApprovalRequested`. The caller holds the run's lock.
    """
    at, rows = clock.now(), ApprovalRequest.objects.filter(run_id=run_id)
    for row in lock_many(rows.filter(state=ApprovalState.PENDING, expires_at__gt=since, expires_at__lte=at)):
        subject = subject_of(row.subject_type)
        if subject.refusal(approval_view(row)) is None:
            row.expire(at=at)
            close(ctx, row, "ExpiresAtPassed")
            subject.renewed(ctx, approval_view(row), renew(ctx, row, second=False))
    given = rows.filter(state=ApprovalState.APPROVED, valid_until__isnull=False)
    unused = given.exclude(authorizations__isnull=False)
    good = [row for row in lock_many(unused) if _is_good(row, since)]
    for row in good:
        row.resume_validity(until=_resumed_end(row, since, at))
    moves = [Move(row, "ValidityResumed", detail={"validUntil": row.valid_until}) for row in good]
    record_many(ctx, moves)


def _is_good(row: ApprovalRequest, at: datetime) -> bool:
    end = valid_until(row, at)
    return end is not None and at < end


def _resumed_end(row: ApprovalRequest, since: datetime, at: datetime) -> datetime:
    """Return the `valid_until` by which an approval is good at `at` for as long as it was at `since`.

    What suspensions of the project put it off by is added to that when it is read (`valid_until`), so a time
    in which it was suspended as well is not given twice.
    """
    if row.valid_until is None:
        raise ValueError("What has no end gets none.")
    begun = row.valid_until - row.valid_for
    used = since - begun - paused(row.project_id, begun, row.valid_until, since)
    spans = suspensions([row.project_id], begun).get(row.project_id, []) if row.project_id else []
    start = at
    for suspended_at, resumed_at in reversed(spans):
        free = start - min(resumed_at or at, at)
        if used <= free:
            break
        used, start = used - free, suspended_at
    return start - used + row.valid_for
