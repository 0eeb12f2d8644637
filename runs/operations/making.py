"""Making what the engine found: steps that can begin, and nodes that are done without any work."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from factory.kernel import reloading
from factory.kernel.clock import now
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.events import Event
from factory.kernel.recording import record_new
from runs.engine import Node, PlannedStep, Settled
from runs.events import StepReady
from runs.models import Run, Step
from runs.operations.moving import step_run_id
from runs.states import StepState

WORDS = {
    "ConditionFalse": "Its condition is false.",
    "PredecessorsSkipped": "All that it depends on was skipped.",
}


@operation
def make_steps(ctx: Context, run: Run, due: Sequence[PlannedStep]) -> list[Step]:
    """A Pending step for each, all in one statement: a node may fan out a hundredfold. `StepReady`."""
    at = now()
    steps = [_step(run, each.node, each.key, each.ordinal, at) for each in due]
    record_new(ctx, [(step, "StepReady", [_ready(ctx, run, step)]) for step in steps])
    return steps


@operation
def make_settled(ctx: Context, run: Run, settled: Sequence[Settled]) -> None:
    """Steps that never begin: skipped, or succeeded over an empty list."""
    if not settled:
        return
    at, made = now(), list[tuple[Step, str, Sequence[Event]]]()
    for each in settled:
        step = _step(run, each.node, each.node.key, each.node.ordinal, at, state="", next_dispatch_at=None)
        if each.state == StepState.SKIPPED:
            step.skip(at=at, reason=WORDS[each.cause])
        else:
            step.succeed_at_once(at=at, output=[])
        made.append((step, each.cause, ()))
    record_new(ctx, made)


def _step(run: Run, node: Node, key: str, ordinal: int, at: datetime, **other: Any) -> Step:
    values: dict[str, Any] = {
        "run": run,
        "node_key": key,
        "step_run_id": step_run_id(run, key),
        "ordinal": ordinal,
        "kind": node.kind,
        "agent_id": node.agent_id,
        "skill_id": node.skill_id,
        "side_effect_class": node.side_effect_class,
        "max_attempts": node.max_attempts or reloading.value("FACTORY_RETRIES_DEFAULT_MAX_ATTEMPTS"),
        "timeout_minutes": node.timeout_minutes,
        "created_at": at,
        "updated_at": at,
        "next_dispatch_at": at,
    }
    return Step(**values | other)


def _ready(ctx: Context, run: Run, step: Step) -> StepReady:
    return StepReady(
        run_id=run.id,
        tenant_id=ctx.tenant_id,
        step_run_id=step.step_run_id,
        node_id=step.node_key,
        kind="Human" if step.is_human else "Agent",
        ordinal=step.ordinal,
        agent_id=step.agent_id or None,
        action_class=step.side_effect_class,
        skill_id=step.skill_id or None,
    )
