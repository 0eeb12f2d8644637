"""The run's own transitions, each with the events that it always tells."""

from datetime import datetime
from typing import Any

import approvals.operations as approvals
import usage.operations as usage
from approvals.selectors import pending_of_run
from factory.kernel.context import Context
from factory.kernel.events import Event
from factory.kernel.hashing import digest
from factory.kernel.hints import WORK, wake
from factory.kernel.recording import record
from runs.engine import PlanCompleted
from runs.events import (
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunStateChanged,
    WorkflowRunCompleted,
    WorkflowRunFailed,
)
from runs.models import CancellationIntent, Run
from runs.operations.clock import keep_clock
from runs.states import RunState

OF_THE_ENGINE = frozenset({"StepFailedTerminally", "WorkflowFailed"})


def moved(ctx: Context, run: Run, cause: str, *events: Event) -> None:
    """Record a run's transition: what every one tells, and what this one adds; its clock follows."""
    keep_clock(run, run.updated_at)
    changed = RunStateChanged(
        run_id=run.id,
        tenant_id=ctx.tenant_id,
        from_state=run.recorded_state,
        to_state=str(run.state),
        cause=cause,
    )
    record(ctx, run, cause, changed, *events)


def step_run_id(run: Run, node_key: str) -> str:
    """The engine's key of a node in a run."""
    return f"{run.id}/{node_key}"


def complete_run(ctx: Context, run: Run, plan: PlanCompleted, at: datetime) -> None:
    """Running → Completed with the output of the node that the definition names; the money is settled."""
    output_hash = digest(plan.output)
    run.complete(at=at, output=plan.output, output_hash=output_hash)
    completed = RunCompleted(run_id=run.id, tenant_id=ctx.tenant_id, outcome_hash=output_hash)
    engine = WorkflowRunCompleted(
        run_id=run.id,
        tenant_id=ctx.tenant_id,
        output_ref=step_run_id(run, plan.key),
        output_hash=output_hash,
    )
    moved(ctx, run, "LastStepSucceeded", completed, engine)
    usage.settle(ctx, run.id)


def move_to_failed(
    ctx: Context, run: Run, cause: str, failure_class: str, reason: str, at: datetime, node_key: str = ""
) -> None:
    """→ Failed. What else must end with it is `ending.fail_run`'s business."""
    run.fail(at=at, failure_class=failure_class, reason=reason)
    facts: dict[str, Any] = {
        "run_id": run.id,
        "tenant_id": ctx.tenant_id,
        "failure_class": failure_class,
        "reason": reason,
    }
    events: list[Event] = [RunFailed(**facts)]
    if cause in OF_THE_ENGINE:
        events.append(
            WorkflowRunFailed(**facts, step_run_id=step_run_id(run, node_key) if node_key else None)
        )
    moved(ctx, run, cause, *events)


def move_to_cancelled(ctx: Context, run: Run, cause: str, intent: CancellationIntent) -> None:
    """Record that a cancelled run has come to its end."""
    cancelled = RunCancelled(
        run_id=run.id,
        tenant_id=ctx.tenant_id,
        reason=intent.reason,
        requested_by=intent.requested_by,
    )
    moved(ctx, run, cause, cancelled)


def wait_for_approval(ctx: Context, run: Run, at: datetime) -> None:
    """Running → WaitingForApproval; a run that waits already goes on waiting."""
    if run.state == RunState.RUNNING:
        run.wait(at=at)
        moved(ctx, run, "ApprovalRequested")


def stop_waiting(ctx: Context, run: Run, cause: str, at: datetime) -> None:
    """WaitingForApproval → Running once nothing is Pending; the approvals' validity starts only now."""
    if run.state == RunState.WAITING and not pending_of_run(run.id):
        run.resume(at=at)
        moved(ctx, run, cause)
        approvals.start_validity(ctx, run.id)
        wake(WORK)
