"""DecideApproval as interfaces call it: a late answer makes the expiry true."""

from uuid import UUID

from approvals.commands.expire import expire_approval
from approvals.errors import ApprovalExpired
from approvals.operations import decide
from approvals.selectors import ApprovalView
from factory.kernel.context import Context, system
from factory.kernel.errors import DomainError


def decide_approval(
    ctx: Context,
    *,
    approval_id: UUID,
    decision: str,
    version: int,
    proposal_hash: str,
    reason: str = "",
    break_glass: bool = False,
) -> ApprovalView:
    """Answer a request: approve, reject, or request_changes (with a reason).

    `version` and `proposal_hash` are those that were on the screen. The subject moves in the same
    transaction; `ApprovalDecided`. Where the rule asks for several people, an approval before the last is
    a vote: the request stays Pending at the same version. `break_glass` (a PlatformAdmin, with a reason)
    decides outside the rule and tells whom it passed over; `ApprovalBreakGlass`. The first of these that
    holds refuses, is audited and changes nothing else: scope (403) → not in the caller's tenant and project
    (404) → not named by the approver rule (403), or asked for it or wrote it (403 separation-of-duties), or a
    service account (403 machine-never-decides) → already answered (409, with the decision) → Expired, Stale
    or Cancelled (410) → past `expiresAt` (it becomes Expired in a command that commits, then 410) → another
    version or hash (409) → voted already (409) → an answer that this subject does not know (422) → the
    subject needs no answer any more (410).
    """
    try:
        return decide(
            ctx,
            approval_id=approval_id,
            decision=decision,
            version=version,
            proposal_hash=proposal_hash,
            reason=reason,
            break_glass=break_glass,
        )
    except ApprovalExpired as late:
        _expire(ctx, approval_id, late)
        raise


def _expire(ctx: Context, approval_id: UUID, late: ApprovalExpired) -> None:
    """Make the expiry true that the decision has found; if somebody else was faster, it is true already."""
    system_ctx = system(
        ctx.tenant_id,
        "ApprovalExpiry",
        project_id=ctx.project_id,
        correlation_id=ctx.correlation_id,
        channel=ctx.channel,
    )
    try:
        expire_approval(system_ctx, approval_id=approval_id, version=late.extra["evidence"]["version"])
    except DomainError as refusal:
        late.extra["evidence"]["expiry"] = refusal.code
