"""Many answers at once are many decisions: each with its own version and hash, in its own transaction."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from approvals.commands.decide import decide_approval
from approvals.selectors import ApprovalView
from factory.context import Context
from factory.errors import DomainError

MOST_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Item:
    """One answer, to exactly what was on the screen."""

    approval_id: UUID
    decision: str
    version: int
    proposal_hash: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one answer: the request, or the refusal."""

    approval_id: UUID
    view: ApprovalView | None = None
    refusal: DomainError | None = None


def decide_each(ctx: Context, items: Iterable[Item]) -> list[Outcome]:
    """Decide one after the other, in the order given; a refusal of one changes nothing about the others."""
    return [_decided(ctx, item) for item in items]


def _decided(ctx: Context, item: Item) -> Outcome:
    try:
        view = decide_approval(
            ctx,
            approval_id=item.approval_id,
            decision=item.decision,
            version=item.version,
            proposal_hash=item.proposal_hash,
            reason=item.reason,
        )
    except DomainError as refusal:
        return Outcome(item.approval_id, refusal=refusal)
    return Outcome(item.approval_id, view)
