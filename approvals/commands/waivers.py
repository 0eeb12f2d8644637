"""A waiver ends: taken back by a person, or by its time."""

from uuid import UUID

from approvals.errors import NotDueYet, WaiverNotFound, WaiverOver
from approvals.models import MAX_REASON, Waiver
from approvals.operations.waiving import end_waiver, waiver_changed
from approvals.selectors import waivers
from approvals.states import WaiverState
from factory.kernel import clock
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import VersionMismatch
from factory.kernel.locking import lock
from factory.kernel.reasons import reasoned
from factory.kernel.recording import audit, record

OPEN = (WaiverState.REQUESTED, WaiverState.ACTIVE)


@command("RevokeWaiver")
def revoke_waiver(ctx: Context, *, waiver_id: UUID, reason: str) -> None:
    """Take a waiver back at once, or withdraw one that is not decided yet; its request is Cancelled then.

    What was authorized under it stays done; what was approved under it and is not used counts no more, and
    people are asked instead. Guards: Requested or Active, a reason. Emits `WaiverChanged`. Errors:
    `InvalidInput`, `WaiverNotFound`, `WaiverOver` (409).
    """
    reason = reasoned(reason, "Revoking a waiver needs a reason.", most=MAX_REASON)
    missing = WaiverNotFound("There is no such waiver here.")
    if not waivers(ctx).filter(pk=waiver_id).exists():
        raise missing
    row = lock(Waiver, waiver_id, missing=missing)
    if row.state not in OPEN or (row.state == WaiverState.ACTIVE and not row.in_force(clock.now())):
        raise WaiverOver(f"The waiver has ended: it is over since {row.end:%d %b %Y %H:%M:%S} UTC.")
    end_waiver(ctx, row, "RevokeRequested", reason)
    audit(ctx, "RevokeWaiver", subject=f"waiver:{row.id}", reason=reason, stream=row.id)


@command("ExpireWaiver")
def expire_waiver(ctx: Context, *, waiver_id: UUID, version: int) -> None:
    """Record that a waiver's time is over: Active → Expired; `WaiverChanged`. It gave nothing since then.

    Raises `WaiverNotFound`, `VersionMismatch` when it has moved since it was found, `NotDueYet`.
    """
    row = lock(Waiver, waiver_id, missing=WaiverNotFound("There is no such waiver here."))
    if row.version != version:
        raise VersionMismatch(f"It was found at version {version}, and is at {row.version} now.")
    at = clock.now()
    if at < row.expires_at:
        raise NotDueYet(f"It is in force until {row.expires_at:%d %b %Y %H:%M:%S} UTC.")
    row.expire(at=at, by=ctx.actor.subject)
    record(ctx, row, "ExpiresAtPassed", waiver_changed(ctx, row))
