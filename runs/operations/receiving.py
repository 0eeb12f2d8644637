"""Receipts: kept as evidence as they came, and turned into usage."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import usage.operations as usage
from factory.clock import now
from factory.commanding import operation
from factory.context import Context
from factory.recording import audit, named, save
from runs.models import Lease, Receipt, Run, Step
from runs.operations.holding import Tried
from runs.states import Attention


@operation
def take_receipts(
    ctx: Context, tried: Tried, lease: Lease, receipts: Sequence[Mapping[str, Any]], *, superseded: bool
) -> int:
    """Keep the receipts that are new, and say how many: an id that was seen before is a no-op.

    Raises `InvalidInput` with a pointer to each faulty one; then none is taken.
    """
    if not receipts:
        return 0
    run, attempt = tried.run, tried.attempt
    usage.record_receipts(
        ctx,
        run_id=run.id,
        project_id=run.project_id,
        step_id=attempt.step_id,
        attempt_id=attempt.id,
        agent_id=tried.step.agent_id,
        workflow_id=run.workflow_id,
        release_id=run.release_id,
        receipts=receipts,
        dispatched_at=attempt.dispatched_at,
        settled_at=attempt.settled_at,
    )
    rows = _unseen([_row(ctx, tried, lease, receipt, superseded) for receipt in receipts])
    Receipt.objects.bulk_create(rows, ignore_conflicts=True)
    if superseded:
        _raise_attention(ctx, run, tried.step, rows)
    return len(rows)


def _row(ctx: Context, tried: Tried, lease: Lease, receipt: Mapping[str, Any], superseded: bool) -> Receipt:
    return Receipt(
        tenant_id=ctx.tenant_id,
        run_id=tried.run.id,
        step_id=tried.step.id,
        attempt_id=tried.attempt.id,
        lease_id=lease.id,
        fencing_token=lease.fencing_token,
        receipt_id=receipt["receiptId"],
        kind=receipt["kind"],
        provider=receipt["provider"],
        name=receipt["name"],
        content=receipt,
        approval_id=_uuid(receipt.get("approvalId")),
        proposal_hash=str(receipt.get("proposalHash") or "")[:71],
        superseded=superseded,
        occurred_at=datetime.fromisoformat(receipt["occurredAt"]),
        recorded_at=now(),
    )


def _uuid(value: Any) -> UUID | None:
    """An approval that nobody could have given is none: the receipt stays evidence without it."""
    try:
        return UUID(str(value)) if value else None
    except ValueError:
        return None


def _unseen(rows: list[Receipt]) -> list[Receipt]:
    by_id = {row.receipt_id: row for row in reversed(rows)}
    seen = set(Receipt.objects.filter(receipt_id__in=by_id).values_list("receipt_id", flat=True))
    return [row for receipt_id, row in by_id.items() if receipt_id not in seen]


def _raise_attention(ctx: Context, run: Run, step: Step, rows: Sequence[Receipt]) -> None:
    """An effect by somebody whose right had ended: an Operator has to look at it."""
    effects = [row.receipt_id for row in rows if row.kind == "effect"]
    if not effects:
        return
    step.ask_for_attention(Attention.LATE_EFFECT)
    save(step)
    audit(
        ctx,
        "LateEffect",
        subject=f"step:{step.id}",
        outcome="noted",
        reason="An effect was reported under a lease that was not current any more.",
        detail={"receipts": named(effects)},
        stream=run.id,
    )
