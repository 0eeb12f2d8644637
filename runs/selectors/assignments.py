"""What a worker is told about an attempt that it was offered."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from approvals.selectors import ApprovalView, approval
from approvals.states import ApprovalState
from factory.kernel.context import Context
from factory.kernel.tenancy import scanning
from runs.engine import Node, elements, node_of, nodes
from runs.errors import AttemptNotFound
from runs.models import Attempt, Lease, Run, Step
from runs.selectors.answers import DecisionNote, OfferedAttempt
from runs.states import StepState

_SCOPE = """
SELECT a.tenant_id, r.project_id FROM runs_attempt a JOIN runs_run r ON r.id = a.run_id
JOIN runs_workerpool p ON p.name = %s AND a.tenant_id = ANY(p.tenants) WHERE a.id = %s
"""


def assignment_scope(ctx: Context, attempt_id: UUID) -> Context:
    """The scope in which a worker's call about an attempt is worked: the attempt's tenant and project.

    Only if the worker's pool serves that tenant. Raises `AttemptNotFound`: to a worker of another pool
    the attempt does not exist.
    """
    with scanning() as cursor:
        cursor.execute(_SCOPE, [ctx.actor.pool, attempt_id])
        row = cursor.fetchone()
    if row is None:
        raise AttemptNotFound(f"There is no attempt {attempt_id} here.")
    return replace(ctx, tenant_id=row[0], project_id=row[1], channel="worker")


def assignment(run: Run, step: Step, attempt: Attempt, lease: Lease) -> OfferedAttempt:
    """One attempt under its lease, with all that its skill is given."""
    return OfferedAttempt(
        run_id=run.id,
        step_id=step.id,
        attempt_id=attempt.id,
        number=attempt.number,
        lease_id=lease.id,
        fencing_token=lease.fencing_token,
        expires_at=lease.expires_at,
        agent_id=step.agent_id,
        skill_id=step.skill_id or None,
        input=_input(run, step),
        snapshot=_snapshot(run, step),
        checkpoint=attempt.checkpoint,
        decision=decision_of(attempt),
        release={
            "id": str(run.release_id),
            "hash": run.release_hash,
            "manifestUrl": f"/factory/releases/{run.release_id}/manifest",
        },
    )


def decision_of(attempt: Attempt) -> DecisionNote | None:
    """Return what a person has said about the attempt's last proposal, if anything yet."""
    return None if attempt.approval_id is None else decision_note(approval(attempt.approval_id))


def decision_note(view: ApprovalView) -> DecisionNote | None:
    """A person's decision in the words that a worker gets; None while there is none."""
    is_decided = view.state in (ApprovalState.APPROVED, ApprovalState.REJECTED) or view.sent_back
    if not is_decided or view.decided_at is None:
        return None
    return DecisionNote(
        approval_id=view.id,
        decision=view.decision,
        proposal_hash=view.proposal_hash,
        reason=view.reason,
        decided_by=view.decided_by,
        decided_at=view.decided_at,
        waiver_id=view.waiver_id,
    )


def offered_assignment(lease_id: UUID, *, holder: str, grace: timedelta) -> OfferedAttempt | None:
    """Return an offer again, for an answer that was lost on its way; None when `holder` could not acquire it.

    The guards are those of acquiring: the offer stands, is the holder's, is not over, and its run not frozen.
    """
    lease = (
        Lease.objects.select_related("attempt", "step", "run__snapshot")
        .filter(pk=lease_id, state="Offered", holder=holder, run__frozen_at=None)
        .filter(expires_at__gte=Now() - grace)
        .first()
    )
    return assignment(lease.run, lease.step, lease.attempt, lease) if lease else None


def _snapshot(run: Run, step: Step) -> dict[str, Any]:
    return {
        "snapshotId": str(run.snapshot_id),
        "policyRevision": run.policy_revision,
        "modelProfileId": run.model_profile_id,
        "environmentId": str(run.environment_id) if run.environment_id else None,
        "stepKey": step.node_key,
        "limits": run.limits,
    }


def _input(run: Run, step: Step) -> dict[str, Any]:
    """The run's input, what came before, and, for one of many, its element of the list with its index."""
    name, index = node_of(step.node_key)
    node = next(n for n in nodes(run.snapshot.content["workflow"]) if n.key == name)
    given, before = run.snapshot.content["input"], outputs_of_predecessors(run, node)
    content = {"run": given, "predecessors": before, "correctionLimit": node.correction_limit}
    if index is not None:
        content |= {"item": elements(node, given, before)[index], "index": index}
    return content


def outputs_of_predecessors(run: Run, node: Node) -> dict[str, Any]:
    """The outputs by key: none for a skipped one, a list in its order for one that fanned out."""
    return outputs_before(run, [node])[node.key]


def outputs_before(run: Run, following: Sequence[Node]) -> dict[str, dict[str, Any]]:
    """`outputs_of_predecessors` for many nodes of one run, by their keys, in one statement."""
    every = {n.key: n for n in nodes(run.snapshot.content["workflow"])}
    asked = tuple({key for node in following for key in node.depends_on})
    steps = Step.objects.filter(run_id=run.id, ordinal__in=_ordinals(every, asked))
    steps = steps.exclude(state=StepState.SKIPPED)
    outputs: dict[str, Any] = {}
    for key, output in steps.order_by("ordinal").values_list("node_key", "output"):
        name, index = node_of(key)
        if index is None:
            outputs[name] = output
        else:
            outputs.setdefault(name, []).append(output)
    return {n.key: {k: v for k, v in outputs.items() if k in n.depends_on} for n in following}


def _ordinals(every: dict[str, Node], keys: tuple[str, ...]) -> list[int]:
    return [place for key in keys for place in every[key].ordinals]
