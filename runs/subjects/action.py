"""A step's action as the subject of an approval: run and attempt move in the decision's transaction."""

from datetime import datetime
from typing import Any
from uuid import UUID

from approvals.operations import AnswerNotPossible
from approvals.selectors import ApprovalView, approvals_of_step
from approvals.states import ApprovalState, SubjectType
from approvals.subjects import Obstacle, Subject, Timeline
from factory.kernel.clock import now
from factory.kernel.context import Context
from factory.kernel.events import wire
from factory.kernel.hints import WORK, wake
from factory.kernel.recording import record, save
from runs.errors import RunNotFound
from runs.models import Attempt, Run, Step
from runs.operations.advancing import advance, end_if_spent
from runs.operations.asking import answer_human_step
from runs.operations.ending import fail_run, outcome_of
from runs.operations.holding import lock_run, lock_step
from runs.operations.metering import time_attempt
from runs.operations.moving import stop_waiting
from runs.operations.violations import fail_violated, note_violation, violation_of
from runs.selectors.timelines import asker_of, timeline_of_run
from runs.states import RUN_WORKING, AttemptState, FailureClass
from runs.subjects.obstacles import obstacles_of_run

MOST_ROUNDS = 10
"""So often may a step's proposals be sent back; then the step fails, class validation."""

ENDED = {
    ApprovalState.REJECTED: "ApprovalRejected",
    ApprovalState.EXPIRED: "ApprovalExpired",
}


class StepAction(Subject):
    """Move a run when somebody, or nobody, decides on what one of its steps proposed."""

    kind = SubjectType.RUN

    def lock(self, ctx: Context, subject_id: UUID, run_id: UUID | None) -> None:
        """Lock the run, which keeps out everybody else who would move anything of it, and the step."""
        lock_step(_run(ctx, run_id), subject_id)

    def obstacles(self) -> tuple[Obstacle, ...]:
        return obstacles_of_run(RUN_WORKING, "nobody needs an answer any more")

    def decided(self, ctx: Context, view: ApprovalView) -> None:
        """Let the attempt go on if approved or sent back; else fail the run, policy-denied."""
        run, at = _run(ctx, view.run_id), now()
        if not run.is_working:
            return
        cause = ENDED.get(ApprovalState(view.state))
        if cause is not None:
            reason = _reason(view)
            fail_run(ctx, run, cause=cause, failure_class=FailureClass.POLICY_DENIED, reason=reason)
            return
        step = lock_step(run, view.subject_id)
        if step.is_human:
            if view.state != ApprovalState.APPROVED:
                raise AnswerNotPossible("A question is approved or rejected: nobody could ask it anew.")
            _answered(ctx, run, step, view, at)
            return
        if view.sent_back and _rounds(step) >= MOST_ROUNDS:
            _give_up(ctx, run, step, at)
            return
        _go_on(ctx, step, view, at)
        stop_waiting(ctx, run, "ChangesRequested" if view.sent_back else "ApprovalGranted", at)
        end_if_spent(ctx, run)

    def renewed(self, ctx: Context, old: ApprovalView, new: ApprovalView) -> None:
        """Let the run and its attempt go on waiting, for the fresh request."""
        attempt = Attempt.objects.select_for_update(no_key=True).filter(approval_id=old.id).first()
        if attempt is not None:
            attempt.approval_id = new.id
            save(attempt)

    def timeline(self, ctx: Context, view: ApprovalView) -> Timeline | None:
        """Return the run so far."""
        return asker_of(timeline_of_run(view.run_id), view.step_id) if view.run_id else None


def _run(ctx: Context, run_id: UUID | None) -> Run:
    if run_id is None:
        raise RunNotFound("The request names no run.")
    return lock_run(ctx, run_id)


def _reason(view: ApprovalView) -> str:
    if view.state == ApprovalState.EXPIRED:
        return "Nobody decided on the proposal in time."
    words = f": {view.reason}" if view.reason else "."
    return f"{view.decided_by} rejected the proposal{words}"


def _rounds(step: Step) -> int:
    return sum(view.sent_back for view in approvals_of_step(step.id))


def answer_of(view: ApprovalView) -> dict[str, Any]:
    """A decision as the output of a human step."""
    facts = {"approvalId": view.id, "decision": view.decision, "decidedBy": view.decided_by}
    answer: dict[str, Any] = wire(facts | {"decidedAt": view.decided_at, "reason": view.reason})
    return answer


def _answered(ctx: Context, run: Run, step: Step, view: ApprovalView, at: datetime) -> None:
    """A person's yes is the whole work of a human step. What it leads to is planned before the run goes on,
    so that a run that asks the next question at once does not seem to have stopped waiting."""
    answer_human_step(ctx, step, answer_of(view), at)
    advance(ctx, run)
    if run.is_working:
        stop_waiting(ctx, run, "ApprovalGranted", at)
        end_if_spent(ctx, run)


def _parked(step: Step) -> Attempt | None:
    attempt = (
        Attempt.objects.select_for_update(no_key=True)
        .filter(step_id=step.id, state=AttemptState.PARKED)
        .first()
    )
    if attempt is not None:
        attempt.run, attempt.step = step.run, step
    return attempt


def _go_on(ctx: Context, step: Step, view: ApprovalView, at: datetime) -> None:
    """A parked attempt is due again; who holds its lease learns the decision by asking again."""
    attempt = _parked(step)
    if attempt is not None:
        attempt.decide(at=at)
        record(ctx, attempt, "Decided", detail={"approvalId": view.id, "decision": view.decision})
        wake(WORK)


def _give_up(ctx: Context, run: Run, step: Step, at: datetime) -> None:
    """Sent back too often: no further proposal will do."""
    reason = f"The proposal was sent back {MOST_ROUNDS} times."
    attempt = _parked(step)
    if attempt is not None:
        attempt.fail(at=at, failure_class=FailureClass.VALIDATION, reason=reason)
        record(ctx, attempt, "CorrectionsExhausted", outcome_of(attempt))
        time_attempt(ctx, attempt, step.agent_id)
    violation = violation_of(attempt) if attempt is not None else ""
    if attempt is not None and violation:
        note_violation(ctx, run, step, attempt, violation)
        fail_violated(ctx, step, violation, at)
    else:
        step.fail(at=at, failure_class=FailureClass.VALIDATION, reason=reason)
        record(ctx, step, "CorrectionsExhausted")
    advance(ctx, run)
