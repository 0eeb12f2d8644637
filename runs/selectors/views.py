"""Frozen views of a run, for pages and for the wire."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from approvals.selectors import ApprovalView
from runs.selectors.reruns import Kin
from usage.selectors import UsageView


@dataclass(frozen=True, slots=True)
class LeaseView:
    """Show who has, or had, the right to an attempt."""

    id: UUID
    attempt_id: UUID
    state: str
    holder: str
    worker_id: UUID
    worker_name: str
    fencing_token: int
    offered_at: datetime
    acquired_at: datetime | None
    expires_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class ArtifactView:
    """Something that an attempt left in a store of its own."""

    uri: str
    hash: str
    size: int


@dataclass(frozen=True, slots=True)
class AttemptView:
    """Show an attempt; `lease` is its current one, and None while it is parked or once it is settled."""

    id: UUID
    number: int
    state: str
    outcome: str | None
    failure_class: str
    reason: str
    outcome_hash: str
    dispatched_at: datetime
    held_at: datetime | None
    settled_at: datetime | None
    approval_id: UUID | None
    lease: LeaseView | None
    artifacts: tuple[ArtifactView, ...]


@dataclass(frozen=True, slots=True)
class StepView:
    """A node that has become a step; `waiting` says in words what it waits for, if anything."""

    id: UUID
    node_key: str
    ordinal: int
    kind: str
    agent_id: str
    skill_id: str
    side_effect_class: str
    gated: bool
    state: str
    version: int
    max_attempts: int
    next_dispatch_at: datetime | None
    attention: str
    failure_class: str
    reason: str
    output: Any
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    waiting: str
    attempts: tuple[AttemptView, ...]


@dataclass(frozen=True, slots=True)
class CancellationView:
    """Show who asked the run to stop."""

    requested_by: str
    reason: str
    requested_at: datetime


@dataclass(frozen=True, slots=True)
class ClockView:
    """Show what stops the clock of a run, since when, and the seconds left then; empty while it runs."""

    stopped_since: datetime | None = None
    because: tuple[str, ...] = ()
    seconds_left: int | None = None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run as a list shows it. `sequence` is its last journal sequence.

    `deadline_at` is when its time is over if its clock goes on running; none while that stands still.
    """

    id: UUID
    project_id: UUID
    environment_id: UUID | None
    state: str
    workflow_id: str
    release_id: UUID
    release_hash: str
    policy_id: str
    policy_revision: str
    model_profile_id: str
    snapshot_id: UUID
    input_hash: str
    limits: dict[str, Any]
    requested_by: str
    previous_run_id: UUID | None
    template_id: UUID | None
    version: int
    sequence: int
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    deadline_at: datetime | None
    clock: ClockView
    finished_at: datetime | None
    failure_class: str
    reason: str
    output_hash: str
    usage: UsageView


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with all that belongs to it. `input` and `output` are payloads: not everybody may see them.

    `effective_limits` are the pinned ones, with whatever was approved and set aside since.
    """

    summary: RunSummary
    workflow: dict[str, Any]
    release: dict[str, Any]
    input: Any
    output: Any
    waiting: str
    steps: tuple[StepView, ...]
    pending: tuple[ApprovalView, ...]
    cancellation: CancellationView | None
    cancel_deadline: datetime | None
    family: tuple[Kin, ...]
    budget_reservation_id: UUID | None
    effective_limits: dict[str, Any]


@dataclass(frozen=True, slots=True)
class InstanceView:
    """One step of a node that has fanned out."""

    key: str
    state: str
    step_id: UUID


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node of the workflow with the step that it has become, if it has, or with its instances."""

    key: str
    ordinal: int
    kind: str
    agent_id: str
    skill_id: str
    side_effect_class: str
    question: str
    when: str
    for_each: str
    state: str
    step_id: UUID | None
    attention: str
    instances: tuple[InstanceView, ...]


@dataclass(frozen=True, slots=True)
class GraphView:
    """The workflow as it was pinned; an edge goes from what must be done first to what needs it."""

    run_id: UUID
    state: str
    nodes: tuple[NodeView, ...]
    edges: tuple[tuple[str, str], ...]
