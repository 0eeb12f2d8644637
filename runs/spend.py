"""The money of a run as the subject of an approval: the run begins, or fails, with the decision."""

from uuid import UUID

from approvals.selectors import ApprovalView
from approvals.states import ApprovalState, SubjectType
from approvals.subjects import Story, register
from factory.context import Context
from factory.errors import DomainError
from registry.selectors import loadable
from runs.errors import ReleaseRevoked, RunNotWorking
from runs.operations.ending import fail_run
from runs.operations.holding import lock_run
from runs.operations.spending import set_aside_and_go
from runs.selectors.stories import story_of_spend
from runs.states import FailureClass, RunState

ENDED = {
    ApprovalState.REJECTED: ("SpendRejected", "{by} rejected what the run may cost{why}"),
    ApprovalState.EXPIRED: ("SpendExpired", "Nobody decided in time about what the run may cost."),
}


class RunSpend:
    """What happens to an Accepted run when somebody, or nobody, decides about its money."""

    def lock(self, ctx: Context, subject_id: UUID, run_id: UUID | None) -> None:
        lock_run(ctx, subject_id)

    def still_current(self, ctx: Context, view: ApprovalView) -> DomainError | None:
        run = lock_run(ctx, view.subject_id)
        if run.state != RunState.ACCEPTED:
            return RunNotWorking(f"The run is {run.state}: its money is not in question any more.")
        if not loadable(run.release_id):
            return ReleaseRevoked("The release was taken back: nothing may be done with it any more.")
        return None

    def decided(self, ctx: Context, view: ApprovalView) -> None:
        """Approved: the budget is reserved and the run begins, or is denied. Else it fails, policy-denied."""
        run = lock_run(ctx, view.subject_id)
        if run.state != RunState.ACCEPTED:
            return
        if view.state == ApprovalState.APPROVED:
            set_aside_and_go(ctx, run)
            return
        cause, words = ENDED[ApprovalState(view.state)]
        reason = words.format(by=view.decided_by, why=f": {view.reason}" if view.reason else ".")
        fail_run(ctx, run, cause=cause, failure_class=FailureClass.POLICY_DENIED, reason=reason)

    def renewed(self, ctx: Context, old: ApprovalView, new: ApprovalView) -> None:
        """The run goes on waiting: it knows its request by its own id."""

    def story(self, ctx: Context, view: ApprovalView) -> Story | None:
        """The run, and the budgets that would pay for it, as they are at this moment."""
        return story_of_spend(view.subject_id)


register(SubjectType.SPEND, RunSpend())
