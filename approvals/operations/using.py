"""Using an approval: the gate at execution. What was signed is what is done, once, while it holds."""

from datetime import datetime
from uuid import UUID

from approvals.errors import (
    ApprovalExpired,
    ApprovalLapsed,
    ApprovalNotFound,
    AuthorizationUsed,
    NotAuthorized,
)
from approvals.models import ApprovalRequest, Authorization
from approvals.operations.waiving import hold_waiver_of
from approvals.selectors import (
    AuthorizationView,
    authorization_view,
    genuine,
    machine_among,
    valid_until,
    votes_of,
)
from approvals.states import ApprovalState
from factory.kernel import clock
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.locking import lock, lock_many
from factory.kernel.recording import Move, record, record_many, save


@operation
def consume(
    ctx: Context,
    *,
    approval_id: UUID,
    run_id: UUID,
    step_id: UUID,
    attempt_id: UUID,
    lease_id: UUID,
    fencing_token: int,
    proposal_hash: str,
) -> AuthorizationView:
    """Take the authorization: from this moment an effect may have happened.

    The caller holds run, step, attempt and lease, and has checked that the lease and its token are
    current. The identical repeat by the same holder gets the same answer.

    Raises `ApprovalNotFound`, `NotAuthorized` (not approved, another step's, another proposal's),
    `AuthorizationUsed`, `ApprovalExpired` and `ApprovalLapsed` (410), `ProposalCorrupted`.
    """
    missing = ApprovalNotFound(f"There is no approval {approval_id} here.")
    hold_waiver_of(ctx, approval_id)
    row = lock(ApprovalRequest, approval_id, missing=missing)
    wanted = Authorization(
        approval_id=row.id,
        run_id=run_id,
        step_id=step_id,
        attempt_id=attempt_id,
        lease_id=lease_id,
        fencing_token=fencing_token,
        proposal_hash=proposal_hash,
        waiver_id=row.waiver_id,
        authorized_by=ctx.actor.subject,
    )
    _require_covered(row, wanted)
    taken = Authorization.objects.filter(approval_id=row.id).first()
    return _repeated(taken, wanted) if taken else _take(ctx, row, wanted)


@operation
def start_validity(ctx: Context, run_id: UUID) -> list[UUID]:
    """Begin the validity of a run's approvals: the run leaves WaitingForApproval.

    Not earlier, because a sibling's request may have kept them from being used.
    """
    waiting = ApprovalRequest.objects.filter(
        run_id=run_id,
        state=ApprovalState.APPROVED,
        valid_until__isnull=True,
        attempt_id__isnull=False,
    )
    rows = lock_many(waiting)
    at = clock.now()
    for row in rows:
        row.start_validity(at=at)
    record_many(ctx, [Move(row, "ValidityStarted") for row in rows])
    return [row.id for row in rows]


def _require_covered(row: ApprovalRequest, wanted: Authorization) -> None:
    if (row.run_id, row.step_id) != (wanted.run_id, wanted.step_id):
        raise NotAuthorized("The approval was given to another step.")
    if row.proposal_hash != wanted.proposal_hash:
        raise NotAuthorized(
            "What was approved is another proposal: only exactly what was signed may be done."
        )


def _repeated(taken: Authorization, wanted: Authorization) -> AuthorizationView:
    holder = ("attempt_id", "lease_id", "fencing_token")
    if any(getattr(taken, name) != getattr(wanted, name) for name in holder):
        raise AuthorizationUsed(
            "An approval is good for one act, and was used by another attempt or under another lease."
        )
    return authorization_view(taken)


def _take(ctx: Context, row: ApprovalRequest, wanted: Authorization) -> AuthorizationView:
    at = clock.now()
    _require_valid(row, at)
    genuine(row.proposal, row.proposal_hash)
    wanted.authorized_at = at
    save(wanted)
    row.authorize(at=at)
    used = {
        "attemptId": wanted.attempt_id,
        "leaseId": wanted.lease_id,
        "fencingToken": wanted.fencing_token,
        "proposalHash": wanted.proposal_hash,
        **({"waiverId": wanted.waiver_id} if wanted.waiver_id else {}),
    }
    record(ctx, row, "Authorized", detail=used)
    return authorization_view(wanted)


def _require_valid(row: ApprovalRequest, at: datetime) -> None:
    """Half-open: the end itself is already too late."""
    if row.state == ApprovalState.EXPIRED:
        raise ApprovalExpired("Nobody decided in time.")
    if row.state != ApprovalState.APPROVED:
        raise NotAuthorized(f"The request is {row.state}, not approved.")
    machine = _machine_that_decided(row)
    if machine:
        raise NotAuthorized(
            f"It was decided by {machine}, which is a service account, and a machine never decides. "
            "Once it has lapsed, ask again, and let a person decide."
        )
    until = valid_until(row, at)
    if until is not None and at >= until:
        whose = "waiver that allowed it" if row.waiver and until == row.waiver.end else "approval"
        raise ApprovalLapsed(f"The {whose} was good until {until.isoformat()}, and was not used.")


def _machine_that_decided(row: ApprovalRequest) -> str:
    """Return the service account by which a row from before was decided, itself or its waiver; else empty."""
    votes = votes_of(row.id) if row.quorum > 1 else []
    voters = (who for vote in votes for who in (vote.voter, vote.acting_for))
    waived = (row.waiver.decided_by, *row.waiver.deciders) if row.waiver else ()
    return machine_among((row.decided_by, row.decided_for, *voters, *waived))
