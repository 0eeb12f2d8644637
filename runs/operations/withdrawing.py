"""Taking back the questions of a run whose answers nothing needs any more."""

from uuid import UUID

import approvals.operations as approvals
from approvals.selectors import ApprovalView, pending_of_run
from approvals.states import SubjectType
from factory.kernel.clock import now
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from runs.models import Run, Step
from runs.operations.moving import stop_waiting
from runs.operations.overspending import needs_more_money
from runs.states import STEP_ACTIVE, RunState


@operation
def withdraw_unneeded(ctx: Context, run: Run) -> None:
    """Cancel each pending request of a locked run that nothing needs any more; `ApprovalDecided` for each.

    The proposal and the question of a step are needed while the step is not over; more money while
    something of the run is still to be dispatched. A run that waits for nothing else goes on
    (ApprovalWithdrawn). A run that fails or is cancelled withdraws all of its requests (`stop_everything`).
    """
    if run.state != RunState.WAITING:
        return
    unneeded = _unneeded(run, pending_of_run(run.id))
    if unneeded:
        approvals.cancel_pending(ctx, ids=unneeded, cause="SubjectWithdrawn")
        stop_waiting(ctx, run, "ApprovalWithdrawn", now())


def _unneeded(run: Run, pending: list[ApprovalView]) -> list[UUID]:
    money = [view.id for view in pending if view.subject_type == SubjectType.SPEND]
    asked = {view.id: view.step_id for view in pending if view.subject_type == SubjectType.RUN}
    active = Step.objects.filter(pk__in=asked.values(), state__in=sorted(STEP_ACTIVE))
    going_on = set(active.values_list("id", flat=True)) if asked else set()
    over = [approval_id for approval_id, step_id in asked.items() if step_id not in going_on]
    return over + (money if money and not needs_more_money(run) else [])
