"""What a holder brings at the end: its outcome, and what it paid even if the outcome comes too late."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import structlog

from factory.kernel.context import Context
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from runs.commands.record_receipts import record_receipts
from runs.commands.report_outcome import report_outcome
from runs.errors import AttemptSettled, RunFrozen, StaleFencingToken
from runs.models import Lease
from runs.selectors.answers import OutcomeRecorded

log = structlog.get_logger("runs.commands")


def report(
    ctx: Context,
    *,
    attempt_id: UUID,
    lease_id: UUID,
    fencing_token: int,
    receipts: Sequence[Any] = (),
    **told: Any,
) -> OutcomeRecorded:
    """`report_outcome`; when it refuses the token of who once held it, the receipts are taken all the same.

    So they are when the run is frozen. From whose lease is over they are marked superseded. The refusal says
    how many there were (`receiptsRecorded`), and which were refused (`refusedReceipts`). Errors: those of
    `report_outcome`.
    """
    fence: dict[str, Any] = {"attempt_id": attempt_id, "lease_id": lease_id, "fencing_token": fencing_token}
    try:
        return report_outcome(ctx, **fence, receipts=receipts, **told)
    except (StaleFencingToken, AttemptSettled, RunFrozen) as refusal:
        if receipts:
            _keep(ctx, fence, receipts, refusal)
        raise


def _keep(ctx: Context, fence: Mapping[str, Any], receipts: Sequence[Any], refusal: DomainError) -> None:
    """Take the receipts alone, and let the refusal say so; not where the lease never was the caller's."""
    with reading(ctx):
        own = Lease.objects.filter(
            pk=fence["lease_id"],
            attempt_id=fence["attempt_id"],
            fencing_token=fence["fencing_token"],
            holder=ctx.actor.subject,
            acquired_at__isnull=False,
        ).exists()
    if not own:
        return
    try:
        kept = record_receipts(ctx, **fence, receipts=receipts)
    except DomainError as fault:
        log.warning("late_receipts_refused", attempt=str(fence["attempt_id"]), code=fault.code)
        refusal.detail += f" Its receipts were not kept: {fault.detail}"
        return
    refusal.detail += " Its receipts were kept all the same: they were paid for."
    refusal.extra |= {"receiptsRecorded": kept.recorded, "superseded": kept.superseded}
    if kept.refused:
        refusal.extra["refusedReceipts"] = [each.named() for each in kept.refused]
