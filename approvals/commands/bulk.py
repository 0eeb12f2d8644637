"""Many answers at once are many decisions: each with its own version and hash, in its own transaction."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from approvals.commands.decide import decide_approval
from approvals.selectors import ApprovalView
from factory.kernel.bulk import one_by_one
from factory.kernel.context import Context
from factory.kernel.errors import DomainError

MOST_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class BulkDecision:
    """One answer, to exactly what was on the screen."""

    approval_id: UUID
    decision: str
    version: int
    proposal_hash: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BulkDecisionResult:
    """Hold what came of one answer: the request, or the refusal."""

    approval_id: UUID
    view: ApprovalView | None = None
    refusal: DomainError | None = None


def decide_each(ctx: Context, items: Iterable[BulkDecision]) -> list[BulkDecisionResult]:
    """Decide one after the other, in the order given; a refusal of one changes nothing about the others."""
    results = one_by_one(items, partial(_decide, ctx), key=lambda item: item.approval_id)
    return [_outcome(item, result) for item, result in results]


def _decide(ctx: Context, item: BulkDecision) -> ApprovalView:
    return decide_approval(
        ctx,
        approval_id=item.approval_id,
        decision=item.decision,
        version=item.version,
        proposal_hash=item.proposal_hash,
        reason=item.reason,
    )


def _outcome(item: BulkDecision, result: ApprovalView | DomainError) -> BulkDecisionResult:
    if isinstance(result, DomainError):
        return BulkDecisionResult(item.approval_id, refusal=result)
    return BulkDecisionResult(item.approval_id, result)
