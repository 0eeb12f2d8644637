"""Reads of runs."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery

from approvals.selectors import pending_of_run
from factory.kernel import reloading
from factory.kernel.clock import now
from factory.kernel.context import Context
from factory.kernel.models import ChainHead, JournalEntry
from runs.engine import Clock
from runs.errors import RunNotFound
from runs.models import Artifact, Attempt, CancellationIntent, Lease, Run, Step
from runs.selectors.clocks import clock_view, clocks_of
from runs.selectors.limits import limit_of
from runs.selectors.node_progress import NodeProgress, progress_of_nodes
from runs.selectors.reasons import Reasons
from runs.selectors.reruns import family
from runs.selectors.views import (
    ArtifactView,
    AttemptView,
    CancellationView,
    GraphView,
    InstanceView,
    LeaseView,
    NodeView,
    RunSummary,
    RunView,
    StepView,
)
from runs.states import LEASE_CURRENT, RunState
from usage.selectors import UsageView, usage_of_runs

PAYLOADS = "factory.payloads.read"
ZERO = Decimal(0)


def may_see_payloads(ctx: Context) -> bool:
    """Inputs, outputs and the details of receipts are for those with the scope and the grant."""
    actor = ctx.actor
    return actor.kind == "system" or (PAYLOADS in actor.scopes and "payloads" in actor.grants)


def runs(ctx: Context) -> QuerySet[Run]:
    """The runs within the caller's scope, each with its last journal sequence."""
    head = ChainHead.objects.filter(stream_id=OuterRef("pk")).values("sequence")
    rows: QuerySet[Run] = Run.objects.all()
    rows = rows.annotate(sequence=Subquery(head))
    return rows if ctx.project_id is None else rows.filter(project_id=ctx.project_id)


def find_run(ctx: Context, run_id: UUID) -> Run:
    """The row, for this app's own rooms. Raises `RunNotFound`."""
    row = runs(ctx).select_related("snapshot").filter(pk=run_id).first()
    if row is None:
        raise RunNotFound(f"There is no run {run_id} here.")
    return row


def summaries(rows: Sequence[Run]) -> list[RunSummary]:
    """The runs of a page, with their usage in one query."""
    used, clocks, at = usage_of_runs(row.id for row in rows), clocks_of(rows), now()
    return [_summary(row, used.get(row.id), clocks.get(row.id), at) for row in rows]


def run_view(ctx: Context, run_id: UUID) -> RunView:
    """A run with its steps, attempts, current leases, pending approvals and usage. Raises `RunNotFound`."""
    row = find_run(ctx, run_id)
    steps = list(Step.objects.filter(run_id=run_id).order_by("ordinal"))
    attempts = attempts_of(run_id)
    reasons = Reasons(row, steps, attempts)
    intent = CancellationIntent.objects.filter(run_id=run_id).first()
    return RunView(
        summary=summaries([row])[0],
        workflow=row.snapshot.content["workflow"],
        release=row.snapshot.content["release"],
        input=row.snapshot.content["input"],
        output=row.output,
        waiting=reasons.of_run(),
        steps=tuple(_step(step, attempts.get(step.id, ()), reasons) for step in steps),
        pending=tuple(pending_of_run(run_id)),
        cancellation=CancellationView(intent.requested_by, intent.reason, intent.requested_at)
        if intent
        else None,
        cancel_deadline=_cancel_deadline(row, attempts),
        family=family(run_id),
        budget_reservation_id=row.budget_reservation_id,
        effective_limits={**row.limits, "maxCostUsd": float(limit_of(row))},
    )


def _cancel_deadline(row: Run, attempts: dict[UUID, list[AttemptView]]) -> datetime | None:
    """Return when the last silent holder is waited for no longer; None unless a holder is awaited."""
    if row.state != RunState.CANCELLING:
        return None
    ends = [one.lease.expires_at for own in attempts.values() for one in own if one.lease is not None]
    grace = timedelta(seconds=reloading.value("FACTORY_LEASES_RENEWAL_GRACE_SECONDS"))
    return max(ends) + grace if ends else None


def graph(ctx: Context, run_id: UUID) -> GraphView:
    """The nodes and edges of the pinned workflow with the states of their steps. Raises `RunNotFound`."""
    row = find_run(ctx, run_id)
    every = progress_of_nodes(
        row.snapshot.content["workflow"], Step.objects.filter(run_id=run_id).order_by("ordinal")
    )
    return GraphView(
        run_id=row.id,
        state=str(row.state),
        nodes=tuple(_node(standing) for standing in every),
        edges=tuple((needed, each.node.key) for each in every for needed in each.node.depends_on),
    )


def _node(standing: NodeProgress) -> NodeView:
    node, steps = standing.node, standing.steps
    return NodeView(
        key=node.key,
        ordinal=node.ordinal,
        kind=node.kind,
        agent_id=node.agent_id,
        skill_id=node.skill_id,
        side_effect_class=node.side_effect_class,
        question=node.question,
        when=node.when,
        for_each=node.for_each,
        state=standing.state,
        step_id=steps[0].id if len(steps) == 1 and not standing.instances else None,
        attention=next((step.attention for step in steps if step.attention), ""),
        instances=tuple(InstanceView(s.node_key, str(s.state), s.id) for s in standing.instances),
    )


def journal(ctx: Context, run_id: UUID) -> QuerySet[JournalEntry]:
    """The run's own chain, to be paged oldest first. Raises `RunNotFound`."""
    if not runs(ctx).filter(pk=run_id).exists():
        raise RunNotFound(f"There is no run {run_id} here.")
    rows: QuerySet[JournalEntry] = JournalEntry.objects.filter(stream_id=run_id)
    return rows


def attempts_of(run_id: UUID) -> dict[UUID, list[AttemptView]]:
    """The run's attempts by their step, in their order, each with its current lease."""
    current = Lease.objects.filter(run_id=run_id, state__in=sorted(LEASE_CURRENT))
    leases = {row.attempt_id: _lease(row) for row in current}
    left: dict[UUID, list[ArtifactView]] = {}
    for made in Artifact.objects.filter(run_id=run_id).order_by("id"):
        left.setdefault(made.attempt_id, []).append(ArtifactView(made.uri, made.hash, made.size))
    attempts_by_step: dict[UUID, list[AttemptView]] = {}
    for row in Attempt.objects.filter(run_id=run_id).order_by("number"):
        view = _attempt(row, leases.get(row.id), tuple(left.get(row.id, ())))
        attempts_by_step.setdefault(row.step_id, []).append(view)
    return attempts_by_step


def _lease(row: Lease) -> LeaseView:
    return LeaseView(**{name: getattr(row, name) for name in LeaseView.__slots__} | {"state": str(row.state)})


def _attempt(row: Attempt, lease: LeaseView | None, artifacts: tuple[ArtifactView, ...]) -> AttemptView:
    return AttemptView(
        id=row.id,
        number=row.number,
        state=str(row.state),
        outcome=row.outcome,
        failure_class=row.failure_class,
        reason=row.reason,
        outcome_hash=row.outcome_hash,
        dispatched_at=row.dispatched_at,
        held_at=row.held_at,
        settled_at=row.settled_at,
        approval_id=row.approval_id,
        lease=lease,
        artifacts=artifacts,
    )


def _step(row: Step, attempts: Iterable[AttemptView], reasons: Reasons) -> StepView:
    own = {name: getattr(row, name) for name in StepView.__slots__ if name not in ("waiting", "attempts")}
    return StepView(**own | {"state": str(row.state)}, waiting=reasons.of_step(row), attempts=tuple(attempts))


def _summary(row: Any, used: UsageView | None, clock: Clock | None, at: datetime) -> RunSummary:
    other = {"state", "policy_id", "usage", "deadline_at", "clock"}
    stands = clock_view(row, clock, at)
    own = {name: getattr(row, name) for name in RunSummary.__slots__ if name not in other}
    return RunSummary(
        **own,
        state=str(row.state),
        policy_id=row.policy_name,
        deadline_at=clock.due_at(row.finished_at or at) if clock and stands.stopped_since is None else None,
        clock=stands,
        usage=used or UsageView(cost=ZERO, uncertain=0, records=0),
    )
