"""Human steps: a person is asked instead of a worker, and the answer is what the step has done."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

import approvals.operations as approvals
import usage.operations as usage
from approvals.selectors import PolicyView, evaluate, policy_revision
from approvals.states import Effect, SubjectType
from factory.kernel.clock import now
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.hashing import canonical, digest
from factory.kernel.recording import Move, record, record_many
from runs.engine import Node, nodes
from runs.models import Run, Step
from runs.operations.ending import fail_run
from runs.operations.moving import moved, wait_for_approval
from runs.selectors.approvers import approvers_of
from runs.selectors.assignments import outputs_before
from runs.selectors.limits import environment_slug
from runs.states import FailureClass, RunState

MOST_SHOWN = 512 * 1024
"""Bytes of the predecessors' outputs that a question shows; beyond, it shows their hashes."""


@operation
def open_human_steps(ctx: Context, run: Run, steps: Sequence[Step]) -> None:
    """Ask for each human step among the ones just made; the run waits for the answers.

    Pending → Running, `ApprovalRequested`; an Accepted run starts (HumanStepOpened), on its reserved money.
    What the policy denies fails the run, policy-denied.
    """
    asked = [step for step in steps if step.is_human]
    if not asked:
        return
    at = now()
    by_key = {node.key: node for node in nodes(run.snapshot.content["workflow"])}
    policy = policy_revision(run.policy_id)
    if run.state == RunState.ACCEPTED:
        usage.confirm_live(ctx, run.id)
        run.start(at=at)
        moved(ctx, run, "HumanStepOpened")
    for step in asked:
        step.ask(at=at)
    record_many(ctx, [Move(step, "HumanStepOpened") for step in asked])
    denied = first_denied(run, asked)
    if denied is not None:
        reason = f"The policy {run.policy_revision} denies what {denied.node_key} asks for."
        cause, failure = "WorkflowFailed", FailureClass.POLICY_DENIED
        fail_run(ctx, run, cause=cause, failure_class=failure, reason=reason, node_key=denied.node_key)
        return
    before = outputs_before(run, [by_key[step.node] for step in asked])
    drafts = [_draft(run, step, by_key[step.node], before[step.node], policy) for step in asked]
    approvals.open_requests(ctx, drafts)
    wait_for_approval(ctx, run, at)


class OfAClass(Protocol):
    """A node, or the step that it has become."""

    @property
    def side_effect_class(self) -> str: ...


Asks = TypeVar("Asks", bound=OfAClass)


def first_denied(run: Run, asked: Sequence[Asks]) -> Asks | None:
    """Return the first of these whose question the pinned policy denies."""
    policy, slug = policy_revision(run.policy_id), environment_slug(run)
    verdicts = ((each, evaluate(policy, each.side_effect_class, slug)) for each in asked)
    return next((each for each, verdict in verdicts if verdict.effect == Effect.DENY), None)


def _draft(
    run: Run, step: Step, node: Node, before: dict[str, Any], policy: PolicyView
) -> approvals.ApprovalDraft:
    return approvals.ApprovalDraft(
        subject_type=SubjectType.RUN,
        subject_id=step.id,
        run_id=run.id,
        step_id=step.id,
        action_class=step.side_effect_class,
        environment_id=run.environment_id,
        proposal=_proposal(node, before),
        summary=node.question,
        requested_by=run.requested_by,
        requester_person=run.requester_person,
        release_id=run.release_id,
        policy=policy,
        project_id=run.project_id,
        approvers=approvers_of(run, step),
    )


def _proposal(node: Node, before: dict[str, Any]) -> dict[str, Any]:
    """Return what the person decides on: the question, and what was done before it."""
    shown: Any = before
    if len(canonical(shown)) > MOST_SHOWN:
        shown = {key: {"hash": digest(output)} for key, output in shown.items()}
    return {"kind": "question", "node": node.key, "question": node.question, "predecessors": shown}


@operation
def answer_human_step(ctx: Context, step: Step, answer: dict[str, Any], at: datetime) -> None:
    """Running → Succeeded by a person's yes, which is its output. The caller plans what is next."""
    step.succeed(at=at, output=answer)
    record(ctx, step, "ApprovalGranted")
