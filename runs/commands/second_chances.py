"""What the events of the engine and of money ask for: done if it was not done yet, and nothing otherwise.

In this product the command that records such an event has done its work in the same transaction. These are
the second chances, for after a repair or a restore, and the door for an engine or a ledger outside.
"""

from uuid import UUID

from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InvalidInput
from factory.kernel.hints import WORK, wake
from factory.kernel.recording import save
from runs.engine import Failed
from runs.models import Step
from runs.operations.advancing import advance, plan_of
from runs.operations.ending import fail_run
from runs.operations.holding import lock_run
from runs.states import RUN_WORKING, FailureClass, RunState
from usage.selectors import reservation_of
from usage.states import ReservationState

DONE, NOTHING = "done", "nothing to do"


@command("CreateStepAndDispatch", audited=False)
def create_step_and_dispatch(ctx: Context, *, run_id: UUID, step_run_id: str) -> str:
    """Make the step of a node that is ready, unless there is one with this `stepRunId`; wake the workers.

    What is ready, the plan says; the event is believed in no more than that. A run that is over, is being
    cancelled or has no money yet is left as it is. Emits StepReady. Errors: `RunNotFound`.
    """
    run = lock_run(ctx, run_id)
    if run.state not in RUN_WORKING and (run.state != RunState.ACCEPTED or run.budget_reservation_id is None):
        return NOTHING
    if Step.objects.filter(run_id=run.id, step_run_id=step_run_id).exists():
        wake(WORK)
        return NOTHING
    advance(ctx, run)
    return DONE


@command("CompleteRun", audited=False)
def complete_run_when_told(ctx: Context, *, run_id: UUID) -> str:
    """Complete a Running run whose steps have all succeeded; any other is left as it is.

    Emits RunStateChanged, RunCompleted, WorkflowRunCompleted. Errors: `RunNotFound`.
    """
    run = lock_run(ctx, run_id)
    if run.state != RunState.RUNNING:
        return NOTHING
    advance(ctx, run)
    return DONE if run.state == RunState.COMPLETED else NOTHING


@command("FailRun", audited=False)
def fail_run_when_told(ctx: Context, *, run_id: UUID, failure_class: str, reason: str) -> str:
    """Fail a run whose workflow cannot be completed; one that is over or being cancelled is left as it is.

    Where the steps say themselves why, theirs is the class and the reason, and the event is believed in no
    more than that; else it is the word of an engine outside. Emits RunStateChanged, RunFailed,
    WorkflowRunFailed. Errors: `RunNotFound`, `InvalidInput` (there is no such class).
    """
    if failure_class not in FailureClass.values:
        fault = FieldError("/failureClass", f"One of {', '.join(FailureClass.values)}.")
        raise InvalidInput("There is no such failure class.", errors=[fault])
    run = lock_run(ctx, run_id)
    if run.state not in RUN_WORKING and run.state != RunState.ACCEPTED:
        return NOTHING
    if isinstance(plan_of(run), Failed):
        advance(ctx, run)
        return DONE
    fail_run(ctx, run, cause="WorkflowFailed", failure_class=failure_class, reason=reason)
    return DONE


@command("ReleaseFirstStepOnReservation", audited=False)
def release_first_step(ctx: Context, *, run_id: UUID, reservation_id: UUID) -> str:
    """Give an Accepted run the reservation that is live for it, and make its first steps.

    Only an Accepted run without one: a later reservation of a run at work has its own command. Emits
    StepReady. Errors: `RunNotFound`.
    """
    run = lock_run(ctx, run_id)
    if run.state != RunState.ACCEPTED or run.budget_reservation_id is not None:
        wake(WORK)
        return NOTHING
    reserved = reservation_of(run.id)
    if reserved is None or (reserved.id, reserved.state) != (reservation_id, ReservationState.RESERVED):
        return NOTHING
    run.budget_reservation_id = reservation_id
    save(run)
    advance(ctx, run)
    return DONE


@command("FailRunOnBudgetDenial", audited=False)
def fail_run_on_budget_denial(ctx: Context, *, run_id: UUID, reason: str) -> str:
    """Fail an Accepted run for which no money was set aside (class budget); any other is left as it is.

    Emits RunStateChanged, RunFailed. Errors: `RunNotFound`.
    """
    run = lock_run(ctx, run_id)
    if run.state != RunState.ACCEPTED or run.budget_reservation_id is not None:
        return NOTHING
    fail_run(ctx, run, cause="BudgetDenied", failure_class=FailureClass.BUDGET, reason=reason)
    return DONE
