"""Asking the engine what comes next, and doing it in the same transaction."""

from collections.abc import Sequence

import usage.operations as usage
from factory.kernel.clock import now
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.hints import WORK, wake
from runs.engine import Failed, Plan, PlanCompleted, StepFact, needed_outputs, node_of, plan
from runs.models import Attempt, Run, Step
from runs.operations.asking import open_human_steps
from runs.operations.ending import fail_run
from runs.operations.making import make_settled, make_steps
from runs.operations.moving import complete_run, moved, stop_waiting
from runs.operations.overspending import stop_for_money
from runs.operations.withdrawing import withdraw_unneeded
from runs.selectors.limits import why_money_stops
from runs.states import AttemptState, RunState


@operation
def advance(ctx: Context, run: Run) -> None:
    """Plan a locked run that is not over, and act on the plan: complete it, fail it, or make what is ready.

    What was asked of people and is needed no more, for lack of anything left to do, is withdrawn first.
    A node that is a step already is never made twice. The number of statements does not grow with the
    number of steps that there are, or that are made.
    """
    plan = plan_of(run)
    if isinstance(plan, Failed):
        fail_run(
            ctx,
            run,
            cause="WorkflowFailed" if run.state == RunState.ACCEPTED else "StepFailedTerminally",
            failure_class=plan.failure_class,
            reason=plan.reason,
            node_key=plan.key,
        )
        return
    make_settled(ctx, run, plan.settled)
    withdraw_unneeded(ctx, run)
    if isinstance(plan, PlanCompleted):
        _complete(ctx, run, plan)
    elif run.state != RunState.ACCEPTED and why_money_stops(run):
        stop_for_money(ctx, run)
    else:
        open_human_steps(ctx, run, make_steps(ctx, run, plan.due))
        wake(WORK)


def plan_of(run: Run, facts: Sequence[StepFact] | None = None) -> Plan:
    """Return what follows from the steps of a run as they are, or as they would be by `facts`."""
    known = facts_of(run) if facts is None else facts
    return plan(run.snapshot.content["workflow"], run.snapshot.content["input"], known)


def facts_of(run: Run) -> list[StepFact]:
    """The run's steps as the engine sees them, with those outputs alone that it may look at."""
    rows = Step.objects.filter(run_id=run.id).order_by("ordinal")
    steps = list(rows.values_list("id", "node_key", "state", "failure_class", "reason"))
    wanted = needed_outputs(run.snapshot.content["workflow"], [key for _, key, *_ in steps])
    ids = [step_id for step_id, key, *_ in steps if node_of(key)[0] in wanted]
    outputs = dict(Step.objects.filter(pk__in=ids).values_list("id", "output")) if ids else {}
    return [StepFact(key, state, outputs.get(i), failed, why) for i, key, state, failed, why in steps]


@operation
def end_if_spent(ctx: Context, run: Run) -> None:
    """Fail a locked Running run that its money stops, or ask a person, when no attempt is left to settle.

    Nothing more of it is dispatched, so without this a parked attempt or a retry would wait for ever.
    """
    if run.state == RunState.RUNNING and why_money_stops(run):
        at_work = Attempt.objects.filter(run_id=run.id, state=AttemptState.OPEN)
        if not at_work.exists():
            stop_for_money(ctx, run)


def _complete(ctx: Context, run: Run, found: PlanCompleted) -> None:
    """All is done. A run of which nothing had to run begins and ends in the same transaction."""
    if run.state == RunState.ACCEPTED:
        usage.confirm_live(ctx, run.id)
        run.start(at=now())
        moved(ctx, run, "NothingToRun")
    if run.state == RunState.WAITING:
        stop_waiting(ctx, run, "ApprovalGranted", now())
    complete_run(ctx, run, found, now())
