"""What follows a run's acceptance: its money is set aside, and its first steps are made."""

from uuid import UUID

from approvals.operations import PolicyDenied
from factory.kernel.commanding import command
from factory.kernel.context import Context
from runs.models import Run
from runs.operations.ending import fail_run
from runs.operations.holding import lock_run
from runs.operations.spending import ask_for_money, needs_a_decision, set_aside_and_go
from runs.states import FailureClass, RunState


@command("StartRun", audited=False)
def start_run(ctx: Context, *, run_id: UUID) -> str:
    """Reserve an Accepted run's budget and make the steps that are ready; the state that it has then.

    The run stays Accepted until a worker is given its first step. Past the policy's threshold its money is
    a person's decision first, a request of class spend; until then nothing is set aside. A denied
    reservation fails it at once (class budget). A run that is over, or was started before, is left as it
    is. Emits BudgetReserved or BudgetReservationDenied, StepReady, RunFailed. Errors: `RunNotFound`.
    """
    run = lock_run(ctx, run_id)
    if run.state != RunState.ACCEPTED:
        return str(run.state)
    if needs_a_decision(run):
        _ask(ctx, run)
    else:
        set_aside_and_go(ctx, run)
    return str(run.state)


def _ask(ctx: Context, run: Run) -> None:
    try:
        ask_for_money(ctx, run)
    except PolicyDenied as no:
        reason = no.detail
        fail_run(ctx, run, cause="SpendRejected", failure_class=FailureClass.POLICY_DENIED, reason=reason)


@command("FailRunOnExpiredReservation", audited=False)
def fail_run_on_expired_reservation(ctx: Context, *, run_id: UUID) -> str:
    """Fail a run whose money was given back because nothing was dispatched in time (class budget).

    Only an Accepted run: one that moved on meanwhile is left as it is. Emits RunFailed.
    """
    run = lock_run(ctx, run_id)
    if run.state == RunState.ACCEPTED:
        fail_run(
            ctx,
            run,
            cause="ReservationExpired",
            failure_class=FailureClass.BUDGET,
            reason="No worker took the run before its budget reservation expired.",
        )
    return str(run.state)
