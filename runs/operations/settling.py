"""What an attempt's outcome means: for its step, and then for its run."""

from datetime import datetime

from approvals.selectors import authorizations_of_attempt
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.hints import WORK, wake
from factory.kernel.recording import record, save
from runs.models import Attempt, Lease, Receipt, Run, Step
from runs.models.lease import USED
from runs.operations.advancing import advance
from runs.operations.clock import note_clock
from runs.operations.ending import finish_cancelling
from runs.operations.timing import back_off
from runs.operations.violations import fail_violated, note_violation, took_place, violation_of
from runs.states import STEP_TERMINAL, AttemptState, Attention, FailureClass, RunState, StepState


@operation
def follow_up(ctx: Context, run: Run, step: Step, attempt: Attempt, at: datetime) -> None:
    """Move the step, and plan the run, after `attempt` was settled, by whomever.

    An effect that nobody authorised fails the step (policy-denied), is audited, and an Operator is asked to
    look at it. Of a run that is Cancelling or over nothing moves on: what was reported is kept, and that is
    all.
    """
    violation = violation_of(attempt)
    if violation:
        note_violation(ctx, run, step, attempt, violation)
    if not run.is_working:
        _close_late(ctx, run, step, attempt, at, violation)
        finish_cancelling(ctx, run)
        return
    if violation:
        fail_violated(ctx, step, violation, at)
    else:
        _move_step(ctx, run, step, attempt, at)
    if step.attention == Attention.UNCERTAIN:
        note_clock(ctx, run, at)
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
        retry_or_fail(ctx, step, attempt, at)
    else:
        step.fail(at=at, failure_class=attempt.failure_class, reason=attempt.reason)
        record(ctx, step, "AttemptFailed")


def attempts_used(step: Step) -> int:
    """Return how many of a step's `maxAttempts` are used up: its leases that were ever Held, but for those
    that were handed back, or lapsed, while a person was asked.

    An attempt that is never parked has one such lease. One that is leased again after a person's yes has
    another for every holder that fell silent, so that what kills its workers comes to an end.
    """
    return Lease.objects.filter(USED, step_id=step.id).count()


@operation
def retry_or_fail(ctx: Context, step: Step, attempt: Attempt, at: datetime) -> None:
    """Let a step wait for another attempt, or fail it with its last; an offer not acquired uses up none."""
    used = attempts_used(step)
    if attempt.held_at is None:
        cause = "OfferWithdrawn" if step.state == StepState.DISPATCHED else "RetryScheduled"
        step.retry(at=at, due_at=at)
        record(ctx, step, cause)
    elif used < step.max_attempts:
        step.retry(at=at, due_at=at + back_off(used))
        record(ctx, step, "RetryScheduled", detail={"tries": used, "dueAt": step.next_dispatch_at})
    else:
        reason = f"{attempt.reason} (the last of {step.max_attempts} attempts)".strip()
        step.fail(at=at, failure_class=attempt.failure_class, reason=reason)
        record(ctx, step, "AttemptsExhausted")
    wake(WORK)


def _close_late(ctx: Context, run: Run, step: Step, attempt: Attempt, at: datetime, violation: str) -> None:
    """The run does not go on: a success stays visible as one, anything else ends the step."""
    if step.state in STEP_TERMINAL:
        if violation:
            step.ask_for_attention(Attention.VIOLATION)
            save(step)
        return
    if attempt.state == AttemptState.SUCCEEDED and not violation:
        step.succeed(at=at, output=attempt.output)
        record(ctx, step, "AttemptSucceeded")
        return
    uncertain = attempt.state == AttemptState.UNCERTAIN and step.gated
    attention = Attention.VIOLATION if violation else Attention.UNCERTAIN if uncertain else ""
    step.cancel(at=at, attention=attention)
    cancelling = run.state in (RunState.CANCELLING, RunState.CANCELLED)
    record(ctx, step, "RunCancelled" if cancelling else "RunEnded")


def effect_may_have_happened(step: Step, attempt: Attempt) -> bool:
    """Only what is gated by class can have an effect, and only once the gate was passed."""
    return step.gated and bool(authorizations_of_attempt(attempt.id))


def denies_the_effect(attempt: Attempt) -> bool:
    """Return whether the holder has evidence that nothing was done under the authorization that it took."""
    effects = list(Receipt.objects.filter(attempt_id=attempt.id, kind="effect"))
    return bool(effects) and not any(took_place(receipt) for receipt in effects)
