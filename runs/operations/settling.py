"""What an attempt's outcome means: for its step, and then for its run."""

from datetime import datetime

from approvals.selectors import authorizations_of_attempt
from factory.commanding import operation
from factory.context import Context
from factory.hints import WORK, wake
from factory.recording import audit, record
from runs.models import Attempt, Receipt, Run, Step
from runs.operations.advancing import advance
from runs.operations.ending import finish_cancelling
from runs.operations.timing import back_off
from runs.states import STEP_TERMINAL, AttemptState, Attention, FailureClass, RunState, StepState


@operation
def follow_up(
    ctx: Context, run: Run, step: Step, attempt: Attempt, at: datetime, violation: str = ""
) -> None:
    """Move the step, and plan the run, after `attempt` was settled.

    Of a run that is Cancelling or over nothing moves on: what was reported is kept, and that is all.
    """
    if violation:
        _note_violation(ctx, run, step, attempt, violation)
    if not run.is_working:
        _close_late(ctx, run, step, attempt, at, violation)
        finish_cancelling(ctx, run)
        return
    if violation:
        step.fail(
            at=at,
            failure_class=FailureClass.POLICY_DENIED,
            reason=violation,
            attention=Attention.VIOLATION,
        )
        record(ctx, step, "PolicyViolated")
    else:
        _move_step(ctx, run, step, attempt, at)
    advance(ctx, run)


def _move_step(ctx: Context, run: Run, step: Step, attempt: Attempt, at: datetime) -> None:
    if attempt.state == AttemptState.SUCCEEDED:
        step.succeed(at=at, output=attempt.output)
        record(ctx, step, "AttemptSucceeded")
    elif attempt.state == AttemptState.UNCERTAIN:
        step.raise_attention(at=at, attention=Attention.UNCERTAIN, reason=attempt.reason)
        record(ctx, step, "AttentionRaised")
    elif attempt.state == AttemptState.CANCELLED:
        step.cancel(at=at)
        record(ctx, step, "AttemptCancelled")
    elif attempt.failure_class == FailureClass.TRANSIENT:
        _retry_or_fail(ctx, step, attempt, at)
    else:
        step.fail(at=at, failure_class=attempt.failure_class, reason=attempt.reason)
        record(ctx, step, "AttemptFailed")


def _retry_or_fail(ctx: Context, step: Step, attempt: Attempt, at: datetime) -> None:
    """An offer that nobody acquired uses up no try, and waits for none."""
    tries = Attempt.objects.filter(step_id=step.id, held_at__isnull=False).count()
    if attempt.held_at is None:
        cause = "OfferWithdrawn" if step.state == StepState.DISPATCHED else "RetryScheduled"
        step.retry(at=at, due_at=at)
        record(ctx, step, cause)
    elif tries < step.max_attempts:
        step.retry(at=at, due_at=at + back_off(tries))
        record(ctx, step, "RetryScheduled", detail={"tries": tries, "dueAt": step.next_dispatch_at})
    else:
        reason = f"{attempt.reason} (the last of {step.max_attempts} attempts)".strip()
        step.fail(at=at, failure_class=attempt.failure_class, reason=reason)
        record(ctx, step, "AttemptsExhausted")
    wake(WORK)


def _close_late(ctx: Context, run: Run, step: Step, attempt: Attempt, at: datetime, violation: str) -> None:
    """The run does not go on: a success stays visible as one, anything else ends the step."""
    if step.state in STEP_TERMINAL:
        return
    if attempt.state == AttemptState.SUCCEEDED and not violation:
        step.succeed(at=at, output=attempt.output)
        record(ctx, step, "AttemptSucceeded")
        return
    doubt = attempt.state == AttemptState.UNCERTAIN and step.gated
    attention = Attention.VIOLATION if violation else Attention.UNCERTAIN if doubt else ""
    step.cancel(at=at, attention=attention)
    cancelling = run.state in (RunState.CANCELLING, RunState.CANCELLED)
    record(ctx, step, "RunCancelled" if cancelling else "RunEnded")


def _note_violation(ctx: Context, run: Run, step: Step, attempt: Attempt, violation: str) -> None:
    audit(
        ctx,
        "PolicyViolation",
        subject=f"attempt:{attempt.id}",
        outcome="noted",
        reason=violation,
        detail={"stepId": step.id, "outcome": str(attempt.state)},
        stream=run.id,
    )


def effect_may_have_happened(step: Step, attempt: Attempt) -> bool:
    """Only what is gated by class can have an effect, and only once the gate was passed."""
    return step.gated and bool(authorizations_of_attempt(attempt.id))


def violation_of(attempt: Attempt) -> str:
    """What the receipts show that no authorization covers, in a sentence; empty if nothing.

    Each effect needs an authorization taken under this attempt for exactly its proposal, and no two
    effects share one. A receipt that says that no effect took place is none.
    """
    effects = [r for r in Receipt.objects.filter(attempt_id=attempt.id, kind="effect") if took_place(r)]
    if not effects:
        return ""
    taken = {(a.approval_id, a.proposal_hash) for a in authorizations_of_attempt(attempt.id)}
    for receipt in effects:
        key = (receipt.approval_id, receipt.proposal_hash)
        if key not in taken:
            happened = f"The effect {receipt.receipt_id} happened without an authorization"
            return f"{happened}, or with one that was already used."
        taken.discard(key)
    return ""


def took_place(receipt: Receipt) -> bool:
    """Whether an effect receipt is of something that happened: `details.tookPlace` may deny it."""
    details = receipt.content.get("details")
    return not (isinstance(details, dict) and details.get("tookPlace") is False)


def denies_the_effect(attempt: Attempt) -> bool:
    """Whether the holder has evidence that nothing was done under the authorization that it took."""
    effects = list(Receipt.objects.filter(attempt_id=attempt.id, kind="effect"))
    return bool(effects) and not any(took_place(receipt) for receipt in effects)
