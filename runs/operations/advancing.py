"""Asking the engine what comes next, and doing it in the same transaction."""

from factory import reloading
from factory.clock import now
from factory.commanding import operation
from factory.context import Context
from factory.hints import WORK, wake
from factory.recording import record
from runs.engine import Completed, Failed, Node, Ready, StepFact, plan
from runs.events import StepReady
from runs.models import Attempt, Run, Step
from runs.operations.ending import fail_run
from runs.operations.moving import complete_run, step_run_id
from runs.selectors.limits import over_its_limit
from runs.states import AttemptState, FailureClass, RunState


@operation
def advance(ctx: Context, run: Run) -> None:
    """Plan a locked run that is not over, and act on the plan: complete it, fail it, or make what is ready.

    A node that is a step already is never made twice.
    """
    found = plan(run.snapshot.content["workflow"], run.snapshot.content["input"], facts_of(run))
    if isinstance(found, Failed):
        fail_run(
            ctx,
            run,
            cause="WorkflowFailed" if run.state == RunState.ACCEPTED else "StepFailedTerminally",
            failure_class=found.failure_class,
            reason=found.reason,
            node_key=found.key,
        )
    elif isinstance(found, Completed):
        complete_run(ctx, run, found, now())
    else:
        _go_on(ctx, run, found)


def facts_of(run: Run) -> list[StepFact]:
    """The run's steps as the engine sees them."""
    rows = Step.objects.filter(run_id=run.id).order_by("ordinal")
    return [StepFact(s.node_key, str(s.state), s.output, s.failure_class, s.reason) for s in rows]


@operation
def end_if_spent(ctx: Context, run: Run) -> None:
    """Fail a locked Running run that is over its limit when no leased attempt is left that will settle.

    Nothing more of it is dispatched, so without this a parked attempt or a retry would wait for ever.
    """
    if run.state == RunState.RUNNING and over_its_limit(run):
        at_work = Attempt.objects.filter(run_id=run.id, state=AttemptState.OPEN)
        if not at_work.exists():
            _exhausted(ctx, run)


def _exhausted(ctx: Context, run: Run) -> None:
    reason = f"The run has used more than its limit of {run.limits['maxCostUsd']} USD."
    fail_run(ctx, run, cause="BudgetExhausted", failure_class=FailureClass.BUDGET, reason=reason)


def _go_on(ctx: Context, run: Run, found: Ready) -> None:
    if run.state != RunState.ACCEPTED and over_its_limit(run):
        _exhausted(ctx, run)
        return
    for node in found.nodes:
        _make(ctx, run, node)
    wake(WORK)


def _make(ctx: Context, run: Run, node: Node) -> None:
    at = now()
    step = Step(
        run=run,
        node_key=node.key,
        step_run_id=step_run_id(run, node.key),
        ordinal=node.ordinal,
        agent_id=node.agent_id,
        skill_id=node.skill_id,
        side_effect_class=node.side_effect_class,
        max_attempts=node.max_attempts or reloading.value("FACTORY_RETRIES_DEFAULT_MAX_ATTEMPTS"),
        timeout_minutes=node.timeout_minutes,
        created_at=at,
        updated_at=at,
        next_dispatch_at=at,
    )
    ready = StepReady(
        run_id=run.id,
        tenant_id=ctx.tenant_id,
        step_run_id=step.step_run_id,
        node_id=node.key,
        kind="Agent",
        ordinal=node.ordinal,
        agent_id=node.agent_id,
        action_class=node.side_effect_class,
        skill_id=node.skill_id or None,
    )
    record(ctx, step, "StepReady", ready)
