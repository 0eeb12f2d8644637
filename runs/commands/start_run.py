"""What follows a run's acceptance: its money is set aside, and its first steps are made."""

from decimal import Decimal
from uuid import UUID

import usage.operations as usage
from factory.commanding import command
from factory.context import Context
from factory.recording import save
from runs.operations.advancing import advance
from runs.operations.ending import fail_run
from runs.operations.holding import lock_run
from runs.states import FailureClass, RunState
from usage.states import ReservationState


@command("StartRun", audited=False)
def start_run(ctx: Context, *, run_id: UUID) -> str:
    """Reserve an Accepted run's budget and make the steps that are ready; the state that it has then.

    The run stays Accepted until a worker is given its first step. A denied reservation fails it at once
    (class budget). A run that is over, or was started before, is left as it is. Emits BudgetReserved or
    BudgetReservationDenied, StepReady, RunFailed. Errors: `RunNotFound`.
    """
    run = lock_run(ctx, run_id)
    if run.state != RunState.ACCEPTED:
        return str(run.state)
    reserved = usage.reserve(
        ctx,
        run_id=run.id,
        project_id=run.project_id,
        amount=Decimal(str(run.limits["maxCostUsd"])),
    )
    if reserved.state != ReservationState.RESERVED:
        fail_run(ctx, run, cause="BudgetDenied", failure_class=FailureClass.BUDGET, reason=reserved.reason)
        return str(run.state)
    run.budget_reservation_id = reserved.id
    save(run)
    advance(ctx, run)
    return str(run.state)


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
