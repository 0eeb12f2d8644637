"""What runs tell the other apps. Identifiers, states and hashes; never the content of the work."""

from typing import Annotated, Literal
from uuid import UUID

from factory.kernel.events import Event, FixedWords, Hash, event
from runs import states

State = Annotated[str, FixedWords(states.RunState.values)]
Failure = Annotated[str, FixedWords(states.FailureClass.values)]
Outcome = Annotated[str, FixedWords(sorted(states.ATTEMPT_TERMINAL))]


@event(
    states.RUN_ACCEPTED,
    consumers=("CostUsageService", "DashboardService", "StudioBff", "WorkflowEngineService"),
)
class RunAccepted(Event):
    """A submission is pinned and journaled; nothing has been executed."""

    run_id: UUID
    tenant_id: str
    project_id: UUID
    workflow_id: str
    release_id: UUID
    policy_revision: str
    model_profile_id: str
    requested_by: str


@event(states.RUN_STATE_CHANGED, consumers=("DashboardService", "StudioBff"))
class RunStateChanged(Event):
    """A run moved, and why."""

    run_id: UUID
    tenant_id: str
    from_state: State
    to_state: State
    cause: str


@event(
    states.RUN_COMPLETED,
    consumers=(
        "ArtifactService",
        "CostUsageService",
        "DashboardService",
        "FeedbackService",
        "GenerationRecipeService",
        "MemoryPromotionService",
        "QualityScoreService",
        "StudioBff",
    ),
)
class RunCompleted(Event):
    """A run ended with an output, whose hash this is."""

    run_id: UUID
    tenant_id: str
    outcome_hash: Hash


@event(
    states.RUN_FAILED,
    consumers=("CostUsageService", "DashboardService", "GenerationRecipeService", "StudioBff"),
)
class RunFailed(Event):
    """A run ended without an output."""

    run_id: UUID
    tenant_id: str
    failure_class: Failure
    reason: str


@event(
    states.RUN_CANCELLED,
    consumers=(
        "AgentRuntimeService",
        "CostUsageService",
        "SecretBrokerService",
        "StudioBff",
        "WorkflowEngineService",
    ),
)
class RunCancelled(Event):
    """A run was stopped, and every attempt of it is settled."""

    run_id: UUID
    tenant_id: str
    reason: str
    requested_by: str


@event(states.STEP_READY)
class StepReady(Event):
    """Everything that a node depends on is done; `stepRunId` is the engine's own key of it.

    `nodeId` is the step's key: that of its node, or `node[i]` for one of many. A Human one has no agent.
    """

    run_id: UUID
    tenant_id: str
    step_run_id: str
    node_id: str
    kind: Literal["Agent", "Human"]
    ordinal: int
    agent_id: str | None
    action_class: str
    skill_id: str | None = None


@event(states.WORKFLOW_RUN_COMPLETED)
class WorkflowRunCompleted(Event):
    """The engine found that nothing is left to do; `outputRef` names the step whose output is the run's."""

    run_id: UUID
    tenant_id: str
    output_ref: str
    output_hash: Hash


@event(states.WORKFLOW_RUN_FAILED)
class WorkflowRunFailed(Event):
    """The engine found that the workflow cannot be completed any more."""

    run_id: UUID
    tenant_id: str
    failure_class: Failure
    reason: str
    step_run_id: str | None = None


@event(states.ATTEMPT_DISPATCHED, consumers=("AgentRuntimeService", "DashboardService"))
class AttemptDispatched(Event):
    """An attempt was offered to a worker under a lease; a parked one comes back under a higher token."""

    run_id: UUID
    step_id: UUID
    attempt_id: UUID
    lease_id: UUID
    fencing_token: int
    agent_id: str
    skill_id: str | None = None


@event(
    states.ATTEMPT_OUTCOME_RECORDED,
    consumers=(
        "CostUsageService",
        "DashboardService",
        "ExecutionCapacityService",
        "QualityScoreService",
        "WorkflowEngineService",
    ),
)
class AttemptOutcomeRecorded(Event):
    """An attempt ended; there is no second outcome."""

    run_id: UUID
    step_id: UUID
    attempt_id: UUID
    outcome: Outcome
    failure_class: Failure | None = None
    outcome_hash: Hash | None = None


@event(states.LEASE_EXPIRED, consumers=("AgentRuntimeService", "DashboardService", "SecretBrokerService"))
class LeaseExpired(Event):
    """A worker lost its right to an attempt by silence."""

    attempt_id: UUID
    lease_id: UUID
    holder: str


@event(states.RUN_TEMPLATE_CHANGED)
class RunTemplateChanged(Event):
    """A template was made, or retired. It never changes otherwise: `contentHash` is that of what it fixes."""

    template_id: UUID
    tenant_id: str
    project_id: UUID
    name: str
    state: Annotated[str, FixedWords(states.TemplateState.values)]
    workflow_id: str
    content_hash: Hash
    changed_by: str
    reason: str | None = None
