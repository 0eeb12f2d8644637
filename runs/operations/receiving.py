"""Receipts, each for itself: kept as evidence as they came and turned into usage, or refused by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import usage.operations as usage
from factory.kernel.clock import now
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.errors import InvalidInput
from factory.kernel.hashing import storable
from factory.kernel.recording import audit, named, save
from runs.models import Lease, Receipt, RefusedReceipt, Run, Step
from runs.operations.holding import LockedAttempt
from runs.operations.refusing import CONFLICT, FAULTY, MOST_DETAIL, Refusal, keep_refused
from runs.selectors.answers import ReceiptAnswer, ReceiptsTaken
from runs.states import Attention

DIFFERS = "A receipt of this provider and id stands in the run already, and says something else."


@dataclass(slots=True)
class _Sorted:
    """The receipts of a call by what becomes of them, and what their sender is told of each."""

    new: list[tuple[usage.ParsedReceipt, Receipt]] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    answers: list[ReceiptAnswer] = field(default_factory=list)


@operation
def take_receipts(
    ctx: Context, locked: LockedAttempt, lease: Lease, receipts: Sequence[Any], *, superseded: bool
) -> ReceiptsTaken:
    """Keep each receipt that is new, and say of each what became of it; a faulty one costs itself alone.

    A receipt is known by its run, its provider and its id. The same content again is a repeat; other content
    is refused, as a faulty one is, audited, and kept for a person. A refused receipt of a call is usage of
    unknown cost. An effect among what is refused, or under a lease that is over, asks for an Operator's
    attention. The caller holds the run's lock.
    """
    if not receipts:
        return ReceiptsTaken(0, superseded)
    taken = _sorted(ctx, locked, lease, receipts, superseded)
    rows = [row for _, row in taken.new]
    Receipt.objects.bulk_create(rows)
    kept = keep_refused(ctx, locked, lease, taken.refused)
    unknown = [_unknown_call(row) for refusal, row in kept if refusal.is_usage]
    _record_usage(ctx, locked, [receipt for receipt, _ in taken.new], unknown)
    late = [row.receipt_id for row in rows if superseded and row.kind == "effect"]
    unproven = [refusal.receipt_id for refusal, _ in kept if refusal.is_effect]
    if late or unproven:
        _raise_attention(ctx, locked.run, locked.step, late, unproven)
    return ReceiptsTaken(len(rows), superseded, tuple(taken.answers))


def _sorted(
    ctx: Context, locked: LockedAttempt, lease: Lease, receipts: Sequence[Any], superseded: bool
) -> _Sorted:
    """Compare each with what stands under its identity, also with those before it in the same call."""
    read = [_read(value, f"/receipts/{index}") for index, value in enumerate(receipts)]
    standing = _recorded(locked.run, [each for each in read if isinstance(each, usage.ParsedReceipt)])
    taken = _Sorted()
    for index, (value, each) in enumerate(zip(receipts, read, strict=True)):
        refusal = each if isinstance(each, Refusal) else None
        result = "accepted"
        if isinstance(each, usage.ParsedReceipt) and each.identity in standing:
            stands, recorded = standing[each.identity]
            result = "repeat"
            if stands != each.content:
                refusal = Refusal(value, CONFLICT, DIFFERS, recorded)
        elif isinstance(each, usage.ParsedReceipt):
            row = _row(ctx, locked, lease, each, value, superseded)
            standing[each.identity] = (each.content, row.id)
            taken.new.append((each, row))
        if refusal is not None:
            taken.refused.append(refusal)
        taken.answers.append(_answer(f"/receipts/{index}", value, result, refusal))
    return taken


def _read(value: Any, pointer: str) -> usage.ParsedReceipt | Refusal:
    try:
        return usage.read_receipt(value, pointer)
    except InvalidInput as fault:
        faults = "; ".join(f"{each.pointer}: {each.detail}" for each in fault.errors)
        return Refusal(value, FAULTY, storable(faults or fault.detail, MOST_DETAIL))


def _recorded(run: Run, read: Sequence[usage.ParsedReceipt]) -> dict[tuple[str, str], tuple[str, UUID]]:
    """Return what stands in the run under the identities of these receipts: its content, and its row."""
    ids = {each.receipt_id for each in read}
    rows = Receipt.objects.filter(run_id=run.id, receipt_id__in=ids) if ids else Receipt.objects.none()
    return {(row.provider, row.receipt_id): (_content_of(row), row.id) for row in rows}


def _content_of(row: Receipt) -> str:
    read = _read(row.content, "")
    return read.content if isinstance(read, usage.ParsedReceipt) else ""


def _answer(pointer: str, value: Any, result: str, refusal: Refusal | None) -> ReceiptAnswer:
    named = refusal or Refusal(value, "", "")
    names = (named.receipt_id or None, named.provider or None)
    if refusal is None:
        return ReceiptAnswer(pointer, *names, result)
    return ReceiptAnswer(pointer, *names, "refused", refusal.code, refusal.detail)


def _unknown_call(row: RefusedReceipt) -> usage.RefusedCall:
    return usage.RefusedCall(row.id, row.kind, row.provider, row.name, f"{row.code}: {row.detail}")


def _record_usage(
    ctx: Context,
    locked: LockedAttempt,
    receipts: Sequence[usage.ParsedReceipt],
    refused: Sequence[usage.RefusedCall],
) -> None:
    run, attempt = locked.run, locked.attempt
    usage.record_receipts(
        ctx,
        run_id=run.id,
        project_id=run.project_id,
        step_id=attempt.step_id,
        attempt_id=attempt.id,
        agent_id=locked.step.agent_id,
        workflow_id=run.workflow_id,
        release_id=run.release_id,
        receipts=receipts,
        refused=refused,
        dispatched_at=attempt.dispatched_at,
        settled_at=attempt.settled_at,
    )


def _row(
    ctx: Context,
    locked: LockedAttempt,
    lease: Lease,
    receipt: usage.ParsedReceipt,
    value: Mapping[str, Any],
    superseded: bool,
) -> Receipt:
    return Receipt(
        tenant_id=ctx.tenant_id,
        run_id=locked.run.id,
        step_id=locked.step.id,
        attempt_id=locked.attempt.id,
        lease_id=lease.id,
        fencing_token=lease.fencing_token,
        receipt_id=receipt.receipt_id,
        kind=receipt.kind,
        provider=receipt.provider,
        name=receipt.name,
        content=value,
        approval_id=_uuid(value.get("approvalId")),
        proposal_hash=str(value.get("proposalHash") or "")[:71],
        superseded=superseded,
        occurred_at=receipt.occurred_at,
        recorded_at=now(),
    )


def _uuid(value: Any) -> UUID | None:
    """An approval that nobody could have given is none: the receipt stays evidence without it."""
    try:
        return UUID(str(value)) if value else None
    except ValueError:
        return None


def _raise_attention(
    ctx: Context, run: Run, step: Step, late: Sequence[str], unproven: Sequence[str]
) -> None:
    """Ask an Operator to look at effects under a lease that was over, or that no sound receipt shows."""
    step.ask_for_attention(Attention.LATE_EFFECT)
    save(step)
    reasons = {
        "LateEffect": (late, "An effect was reported under a lease that was not current any more."),
        "UnprovenEffect": (unproven, "An effect was reported by a receipt that is refused."),
    }
    for action, (receipts, reason) in reasons.items():
        if receipts:
            audit(
                ctx,
                action,
                subject=f"step:{step.id}",
                outcome="noted",
                reason=reason,
                detail={"receipts": named(receipts)},
                stream=run.id,
            )
