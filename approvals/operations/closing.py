"""Ending requests that nobody needs an answer to any more."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from approvals.errors import ApprovalNotFound
from approvals.events import ApprovalDecided
from approvals.models import ApprovalRequest
from approvals.selectors import ApprovalView, approval_view
from approvals.states import ApprovalState, SubjectType
from factory.kernel import clock
from factory.kernel.commanding import after_commit, operation
from factory.kernel.context import Context
from factory.kernel.events import Event
from factory.kernel.locking import lock, lock_many
from factory.kernel.recording import Move, record, record_many
from factory.kernel.telemetry import meters


@operation
def supersede(ctx: Context, approval_id: UUID) -> ApprovalView:
    """Make a request Stale, because the proposal changed; `ApprovalDecided`. The caller opens the next.

    Raises `ApprovalNotFound`, `TransitionRefused` when it is closed already.
    """
    row = lock(ApprovalRequest, approval_id, missing=ApprovalNotFound(f"There is no approval {approval_id}."))
    row.supersede(at=clock.now())
    close(ctx, row, "ProposalChanged")
    return approval_view(row)


@operation
def cancel_pending(
    ctx: Context,
    *,
    run_id: UUID | None = None,
    subject: UUID | None = None,
    ids: Collection[UUID] = (),
    cause: str = "RunCancelled",
) -> list[ApprovalView]:
    """Cancel whatever is Pending of a run, about a subject, or of these ids; `ApprovalDecided` for each.

    `cause` is RunCancelled, RunEnded (it failed meanwhile) or SubjectWithdrawn.
    """
    about: dict[str, Any] = {"subject_id": subject} if subject is not None else {"pk__in": ids}
    about = {"run_id": run_id} if run_id is not None else about
    rows = lock_many(ApprovalRequest.objects.filter(**about, state=ApprovalState.PENDING))
    at = clock.now()
    for row in rows:
        row.cancel(at=at)
    record_many(ctx, [Move(row, cause, [decided(row)], answer_of(row)) for row in rows])
    for row in rows:
        _time(ctx, row)
    return [approval_view(row) for row in rows]


def close(ctx: Context, row: ApprovalRequest, cause: str, *more: Event) -> None:
    """Record that a request is closed, and tell it; with what else this closing tells."""
    record(ctx, row, cause, decided(row), *more, detail=answer_of(row))
    _time(ctx, row)


def _time(ctx: Context, row: ApprovalRequest) -> None:
    """Tell the meters how long it was pending."""
    if row.closed_at is not None:
        pending = (row.closed_at - row.requested_at).total_seconds()
        after_commit(
            lambda: meters.approval_closed(pending, tenant=ctx.tenant_id, action_class=row.action_class)
        )


MOST_PASSED_OVER = 400
"""So many people the journal names beside a broken glass; its event, and the request, name all."""


def answer_of(row: ApprovalRequest) -> dict[str, Any]:
    """Return who answered what, as the journal keeps it beside the event; nothing where nobody did."""
    if not row.decision:
        return {}
    answer: dict[str, Any] = {
        "decision": row.decision,
        "decidedAt": row.decided_at,
        "decidedPerson": row.decided_person,
        "proposalHash": row.proposal_hash,
    }
    if row.decided_for:
        answer |= {"onBehalfOf": row.decided_for, "delegationId": row.delegation_id}
    if row.break_glass:
        answer |= {"breakGlass": True, "passedOver": row.passed_over[:MOST_PASSED_OVER]}
    return answer


def decided(row: ApprovalRequest) -> ApprovalDecided:
    """Return the event of a request that is closed as it is now."""
    return ApprovalDecided(
        approval_id=row.id,
        run_id=row.run_id,
        tenant_id=row.tenant_id,
        state=row.state,
        decided_by=row.decided_by or None,
        reason=row.reason or None,
        subject=None if row.subject_type == SubjectType.RUN else f"{row.subject_type}:{row.subject_id}",
        on_behalf_of=row.decided_for or None,
        break_glass=row.break_glass,
        waiver_id=row.waiver_id,
    )
