"""Effects that nobody authorised. Whatever ends an attempt asks here, so that none goes unseen."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from approvals.selectors import AuthorizationView, authorizations_of_attempts
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.recording import audit, record
from runs.models import Attempt, Receipt, Run, Step
from runs.states import Attention, FailureClass


def violation_of(attempt: Attempt) -> str:
    """Return the violation of one attempt: see `violations_of`. Empty if there is none."""
    return violations_of([attempt]).get(attempt.id, "")


def violations_of(attempts: Sequence[Attempt]) -> dict[UUID, str]:
    """Return what receipts show that no authorization covers, in a sentence, by attempt.

    Each effect needs an authorization taken under its attempt for exactly its proposal, and no two effects
    share one. A receipt that says that no effect took place is none.
    """
    ids = [attempt.id for attempt in attempts if attempt.held_at is not None]
    if not ids:
        return {}
    effects = Receipt.objects.filter(attempt_id__in=ids, kind="effect").order_by("recorded_at", "id")
    happened = [receipt for receipt in effects if took_place(receipt)]
    if not happened:
        return {}
    left = {_key_of(taken) for taken in authorizations_of_attempts(ids)}
    violations: dict[UUID, str] = {}
    for receipt in happened:
        key = (receipt.attempt_id, receipt.approval_id, receipt.proposal_hash)
        if key not in left:
            reason = f"The effect {receipt.receipt_id} happened without an authorization"
            violations.setdefault(receipt.attempt_id, f"{reason}, or with one that was already used.")
        left.discard(key)
    return violations


def _key_of(taken: AuthorizationView) -> tuple[UUID, UUID, str]:
    return taken.attempt_id, taken.approval_id, taken.proposal_hash


def took_place(receipt: Receipt) -> bool:
    """Return whether an effect receipt is of something that happened: `details.tookPlace` may deny it."""
    details = receipt.content.get("details")
    return not (isinstance(details, dict) and details.get("tookPlace") is False)


@operation
def note_violation(ctx: Context, run: Run, step: Step, attempt: Attempt, violation: str) -> None:
    """Audit a violation, on the chain of its run."""
    audit(
        ctx,
        "PolicyViolation",
        subject=f"attempt:{attempt.id}",
        outcome="noted",
        reason=violation,
        detail={"stepId": step.id, "outcome": str(attempt.state)},
        stream=run.id,
    )


@operation
def fail_violated(ctx: Context, step: Step, violation: str, at: datetime) -> None:
    """Fail a running step, class policy-denied, and ask an Operator to look at it."""
    step.fail(
        at=at,
        failure_class=FailureClass.POLICY_DENIED,
        reason=violation,
        attention=Attention.VIOLATION,
    )
    record(ctx, step, "PolicyViolated")
