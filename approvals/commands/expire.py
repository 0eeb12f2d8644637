"""ExpireApproval: silence is never a yes. What nobody answered in time is over."""

from uuid import UUID

from approvals.errors import ApprovalNotFound, NotDueYet
from approvals.models import ApprovalRequest
from approvals.operations import close, renew
from approvals.selectors import approval_view
from approvals.states import OnExpiry
from approvals.subjects import subject_of
from factory.kernel import clock
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import VersionMismatch
from factory.kernel.locking import lock


@command("ExpireApproval")
def expire_approval(ctx: Context, *, approval_id: UUID, version: int) -> None:
    """Close a request at or past its `expiresAt`: Pending → Expired; the subject moves; `ApprovalDecided`.

    Where the policy says `re-request`, the same question is asked once more and the subject goes on
    waiting; the second expiry is an end. Silence is never a yes.

    Raises `ApprovalNotFound`, `VersionMismatch` when it has moved since it was found, `NotDueYet`, and
    `TransitionRefused` when it is closed.
    """
    missing = ApprovalNotFound(f"There is no approval {approval_id} here.")
    unlocked = ApprovalRequest.objects.filter(pk=approval_id).first()
    if unlocked is None:
        raise missing
    subject = subject_of(unlocked.subject_type)
    subject.lock(ctx, unlocked.subject_id, unlocked.run_id)
    row = lock(ApprovalRequest, approval_id, missing=missing)
    if row.version != version:
        raise VersionMismatch(f"It was found at version {version}, and is at {row.version} now.")
    at = clock.now()
    if at < row.expires_at:
        raise NotDueYet(f"It can be answered until {row.expires_at:%d %b %Y %H:%M:%S} UTC.")
    renews = row.on_expiry == OnExpiry.RE_REQUEST and row.renews is None
    renews = renews and subject.refusal(approval_view(row)) is None
    row.expire(at=at)
    close(ctx, row, "ExpiresAtPassed")
    if renews:
        subject.renewed(ctx, approval_view(row), renew(ctx, row))
    else:
        subject.decided(ctx, approval_view(row))
