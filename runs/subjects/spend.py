"""The money of a run as the subject of an approval: it begins, goes on, or fails with the decision."""

from decimal import Decimal
from uuid import UUID

import usage.operations as usage
from approvals.selectors import ApprovalView, proposal
from approvals.states import ApprovalState, SubjectType
from approvals.subjects import Obstacle, Subject, Timeline
from factory.kernel.clock import now
from factory.kernel.context import Context
from runs.models import Run
from runs.operations.advancing import advance, end_if_spent
from runs.operations.ending import fail_run
from runs.operations.holding import lock_run
from runs.operations.moving import stop_waiting
from runs.operations.overspending import run_out_of_money
from runs.operations.spending import set_aside_and_go
from runs.selectors.limits import calls_asked_about
from runs.selectors.timelines import timeline_of_spend
from runs.states import RUN_WORKING, FailureClass, RunState
from runs.subjects.obstacles import obstacles_of_run

ENDED = {
    ApprovalState.REJECTED: ("SpendRejected", "{by} rejected what the run may cost{why}"),
    ApprovalState.EXPIRED: ("SpendExpired", "Nobody decided in time about what the run may cost."),
}
ENDED_UNKNOWN = {
    ApprovalState.REJECTED: "{by} rejected that the run goes on with calls of unknown cost{why}",
    ApprovalState.EXPIRED: "Nobody decided in time whether the run goes on with calls of unknown cost.",
}


class RunSpend(Subject):
    """Move a run when somebody, or nobody, decides about its money."""

    kind = SubjectType.SPEND

    def lock(self, ctx: Context, subject_id: UUID, run_id: UUID | None) -> None:
        lock_run(ctx, subject_id)

    def obstacles(self) -> tuple[Obstacle, ...]:
        return obstacles_of_run({RunState.ACCEPTED, *RUN_WORKING}, "its money is not in question any more")

    def decided(self, ctx: Context, view: ApprovalView) -> None:
        """Of an Accepted run, approved: the budget is reserved and the run begins, or is denied; else it
        fails, policy-denied. Of one at work, approved: more is set aside and it goes on; else it fails,
        class budget."""
        run = lock_run(ctx, view.subject_id)
        if run.is_working:
            _at_the_limit(ctx, run, view)
            return
        if run.state != RunState.ACCEPTED:
            return
        if view.state == ApprovalState.APPROVED:
            set_aside_and_go(ctx, run)
            return
        cause, reason = _refused(view)
        fail_run(ctx, run, cause=cause, failure_class=FailureClass.POLICY_DENIED, reason=reason)

    def renewed(self, ctx: Context, old: ApprovalView, new: ApprovalView) -> None:
        """The run goes on waiting: it knows its request by its own id."""

    def timeline(self, ctx: Context, view: ApprovalView) -> Timeline | None:
        """Return the run, and the budgets that would pay for it, as they are at this moment."""
        return timeline_of_spend(view.subject_id, _amount(view))


def _amount(view: ApprovalView) -> Decimal:
    """Return what the run may cost in all, exactly as it was asked and signed."""
    return Decimal(proposal(view.id).content["amount"]["amount"])


def _refused(view: ApprovalView) -> tuple[str, str]:
    state = ApprovalState(view.state)
    cause, words = ENDED[state]
    if calls_asked_about(view.id):
        words = ENDED_UNKNOWN[state]
    return cause, words.format(by=view.decided_by, why=f": {view.reason}" if view.reason else ".")


def _at_the_limit(ctx: Context, run: Run, view: ApprovalView) -> None:
    """The answer to a run that has used all that it was given, or something of unknown cost."""
    if view.state != ApprovalState.APPROVED:
        run_out_of_money(ctx, run, _refused(view)[1])
        return
    missing = usage.extend(ctx, run_id=run.id, to=_amount(view))
    if missing:
        run_out_of_money(ctx, run, f"More money was approved for the run, and is not there. {missing}")
        return
    advance(ctx, run)
    if run.is_working:
        stop_waiting(ctx, run, "ApprovalGranted", now())
        end_if_spent(ctx, run)
