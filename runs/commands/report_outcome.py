"""ReportAttemptOutcome: how an attempt ended, said once, by who holds its lease."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError
from factory.kernel.hashing import digest
from factory.kernel.hints import WORK, wake
from factory.kernel.recording import record
from runs.errors import AttemptSettled, LeaseOver, MalformedOutcome, OutcomeHashMismatch, StaleFencingToken
from runs.models import Attempt, Lease, Worker
from runs.operations.artifacts import judge_artifacts, keep_artifacts
from runs.operations.ending import outcome_of
from runs.operations.holding import HeldAttempt, LockedAttempt, current_lease, lock_attempt, why_not_held
from runs.operations.metering import time_attempt
from runs.operations.parking import goes_on_for, lapse, park_lapsed
from runs.operations.receiving import take_receipts
from runs.operations.settling import denies_the_effect, effect_may_have_happened, follow_up
from runs.operations.timing import is_timed_out, took_too_long
from runs.selectors.answers import OutcomeRecorded, ReceiptsTaken, RefusedItem
from runs.states import AttemptState, FailureClass, LeaseState

F = FailureClass
CLASSES: Mapping[str, frozenset[str | None]] = {
    "Succeeded": frozenset({None}),
    "Failed": frozenset({F.TRANSIENT, F.PERMANENT, F.VALIDATION, F.POLICY_DENIED}),
    "Cancelled": frozenset({F.CANCELLATION}),
    "Uncertain": frozenset({F.UNCERTAIN}),
}
"""What a worker may report, and of which class. TimedOut is the clock's word."""


@dataclass(frozen=True, slots=True)
class OutcomeReport:
    """An outcome as it was told."""

    outcome: str
    failure_class: str | None
    reason: str | None
    output: Any
    hash: str
    artifacts: Sequence[Any] = ()


@command("ReportAttemptOutcome")
def report_outcome(
    ctx: Context,
    *,
    attempt_id: UUID,
    lease_id: UUID,
    fencing_token: int,
    outcome: str,
    outcome_hash: str,
    failure_class: str | None = None,
    reason: str | None = None,
    output: Any = None,
    receipts: Sequence[Any] = (),
    artifacts: Sequence[Any] = (),
) -> OutcomeRecorded:
    """Settle an attempt, once; its step and its run move in the same transaction.

    The outcome counts, whatever of its receipts and artifacts is faulty: what is refused is named in the
    answer, audited, and receipts are kept for a person. The identical repeat under the same lease (the same
    hash: receipts are no part of it, each is known by itself) gets what is recorded; a receipt that only the
    repeat brings is taken as one that comes late. Succeeded: the engine plans what is
    next. Failed/transient: another attempt after a back-off while any are left, unless an authorization was
    taken and nothing shows that no effect took place; then it is Uncertain. Given up (transient, or
    Cancelled) once the step's own time is over: TimedOut, and as transient; but while a person is asked, or
    has said yes and attempts are left, the lease lapses and the attempt is parked, as that of a silent holder
    is: the answer says Parked, and nothing of the outcome is kept but its receipts. So it is when a worker
    that drains gives up (transient) while a person is asked. Uncertain: an Operator's
    attention. Receipts that show an effect without an authorization fail the step (policy-denied).
    Of a run that is Cancelling or over, the outcome is recorded and moves nothing else. Emits
    AttemptOutcomeRecorded and what follows. Errors: `StaleFencingToken`, `AttemptSettled` (409),
    `MalformedOutcome` (400), `OutcomeHashMismatch` (422),
    `AttemptNotFound`.
    """
    report = OutcomeReport(outcome, failure_class, reason, output, outcome_hash, artifacts)
    _check(report)
    sound, refused = judge_artifacts(artifacts)
    locked = lock_attempt(ctx, attempt_id)
    lease = current_lease(ctx, locked, lease_id, fencing_token)
    if lease is None or lease.state != LeaseState.HELD:
        own = _repeated(ctx, locked, lease_id, fencing_token, report)
        taken = take_receipts(ctx, locked, own, receipts, superseded=True)
        return _recorded(locked.attempt, taken, refused)
    held = HeldAttempt(locked.run, locked.step, locked.attempt, lease)
    taken = take_receipts(ctx, held, lease, receipts, superseded=False)
    at = now()
    timed_out = _stopped_in_time(held, report, at)
    asked = goes_on_for(held, at) if timed_out or _is_drained(held, report) else None
    if asked is not None and (timed_out or asked.is_pending):
        lapse(ctx, held, lease, at)
        park_lapsed(ctx, held, asked, at)
        return _recorded(held.attempt, taken, refused)
    _settle(ctx, held, report, at, timed_out)
    keep_artifacts(ctx, held, sound, refused, at)
    follow_up(ctx, held.run, held.step, held.attempt, at)
    return _recorded(held.attempt, taken, refused)


def _check(report: OutcomeReport) -> None:
    if report.outcome not in CLASSES:
        errors = [FieldError("/outcome", f"One of {', '.join(CLASSES)}.")]
        raise MalformedOutcome("There is no such outcome for a worker to report.", errors=errors)
    if report.failure_class not in CLASSES[report.outcome]:
        allowed = ", ".join(sorted(str(c) for c in CLASSES[report.outcome] if c)) or "none"
        errors = [FieldError("/failureClass", f"For {report.outcome}: {allowed}.")]
        raise MalformedOutcome("The failure class does not fit the outcome.", errors=errors)
    hashed = {
        "outcome": report.outcome,
        "failureClass": report.failure_class,
        "reason": report.reason,
        "output": report.output,
    }
    if report.artifacts:  # without any they are not hashed either: most outcomes have none
        hashed["artifacts"] = list(report.artifacts)
    true_hash = digest(hashed)
    if report.hash != true_hash:
        raise OutcomeHashMismatch(f"The outcome's hash is {true_hash}.")


def _repeated(
    ctx: Context, locked: LockedAttempt, lease_id: UUID, fencing_token: int, report: OutcomeReport
) -> Lease:
    """Return the lease that settled the attempt with the same report; anything else is refused."""
    own: Lease | None = Lease.objects.filter(
        pk=lease_id,
        attempt_id=locked.attempt.id,
        fencing_token=fencing_token,
        holder=ctx.actor.subject,
        state=LeaseState.SETTLED,
    ).first()
    if own is None:
        raise _stale(why_not_held(ctx, locked, lease_id, fencing_token))
    if locked.attempt.outcome_hash != report.hash:
        raise AttemptSettled(
            f"The attempt is {locked.attempt.state} already; an attempt has one outcome.",
            extra={"subject": f"attempt:{locked.attempt.id}", "stream": locked.run.id},
        )
    return own


def _stale(refusal: Any) -> StaleFencingToken:
    """A lapsed lease, too, is a stale token to an outcome: somebody else has settled the attempt."""
    if isinstance(refusal, LeaseOver):
        return StaleFencingToken(refusal.detail, extra=refusal.extra)
    stale: StaleFencingToken = refusal
    return stale


def _settle(ctx: Context, held: HeldAttempt, report: OutcomeReport, at: datetime, timed_out: bool) -> None:
    held.lease.settle(at=at)
    record(ctx, held.lease, "OutcomeReported")
    attempt, reason = held.attempt, report.reason or ""
    if report.outcome == AttemptState.SUCCEEDED:
        attempt.succeed(at=at, outcome_hash=report.hash)
    elif report.outcome == AttemptState.UNCERTAIN or _must_be_uncertain(held, report, timed_out):
        attempt.mark_uncertain(at=at, reason=reason, outcome_hash=report.hash)
    elif timed_out:
        attempt.time_out(at=at, reason=took_too_long(held.step), outcome_hash=report.hash)
    elif report.outcome == AttemptState.CANCELLED:
        attempt.cancel(at=at, reason=reason, outcome_hash=report.hash)
    else:
        attempt.fail(at=at, failure_class=str(report.failure_class), reason=reason, outcome_hash=report.hash)
    attempt.output = report.output
    record(ctx, attempt, "OutcomeReported", outcome_of(attempt))
    wake(WORK)  # a slot is free, for whichever run waits
    time_attempt(ctx, attempt, held.step.agent_id)


def _stopped_in_time(held: HeldAttempt, report: OutcomeReport, at: datetime) -> bool:
    """Return whether a holder gave up because the time of its step was over, as a renewal told it to.

    It may say Cancelled, or Failed/transient: nobody cancelled anything, and the attempt is TimedOut.
    """
    gave_up = report.failure_class in (FailureClass.TRANSIENT, FailureClass.CANCELLATION)
    return gave_up and held.run.is_working and is_timed_out(held.step, held.lease, at)


def _is_drained(held: HeldAttempt, report: OutcomeReport) -> bool:
    """Return whether a worker that takes no new work gives this up: it ends, and the work does not fail."""
    return (
        report.failure_class == FailureClass.TRANSIENT
        and Worker.objects.filter(pk=held.lease.worker_id, draining_at__isnull=False).exists()
    )


def _must_be_uncertain(held: HeldAttempt, report: OutcomeReport, timed_out: bool) -> bool:
    """Given up after an authorization: the holder has to show that nothing was done."""
    return (
        (timed_out or report.failure_class == FailureClass.TRANSIENT)
        and effect_may_have_happened(held.step, held.attempt)
        and not denies_the_effect(held.attempt)
    )


def _recorded(attempt: Attempt, taken: ReceiptsTaken, refused: Sequence[RefusedItem]) -> OutcomeRecorded:
    return OutcomeRecorded(
        attempt.id, str(attempt.state), attempt.outcome_hash, taken.refused, tuple(refused)
    )
