"""What goes over the wire about runs, and what is accepted."""

from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from factory.api.serializers import (
    Identifier,
    QueryTimeField,
    StrictSerializer,
    TextField,
    TimeField,
    Whole,
    WordField,
)
from runs.commands.cancel_run import MOST_REASON
from runs.commands.resolve_step import MOST_EVIDENCE
from runs.engine import AGENT, HUMAN
from runs.models.evidence import RESOLUTIONS
from runs.selectors.clocks import STOPS
from runs.states import AttemptState, LeaseState, RunState, StepState

KINDS = ((AGENT, AGENT), (HUMAN, HUMAN))


class LimitsBody(StrictSerializer):
    """Describe the most that a run may cost, and the longest that it may take."""

    maxCostUsd = serializers.FloatField()
    maxMinutes = Whole()


class Links(StrictSerializer):
    self = TextField()
    watch = TextField()


class AcceptedBody(StrictSerializer):
    """An accepted run: everything that it was pinned to."""

    runId = Identifier()
    state = WordField(choices=RunState.choices)
    workflowId = TextField()
    releaseId = Identifier()
    releaseHash = TextField()
    policyRevision = TextField()
    modelProfileId = TextField()
    templateId = Identifier(allow_null=True)
    snapshotId = Identifier()
    inputHash = TextField()
    requestedBy = TextField()
    version = Whole()
    createdAt = TimeField()
    links = Links()


class CancelBody(StrictSerializer):
    """Give the reason why the run is to stop."""

    reason = TextField(max_length=MOST_REASON)


class StateBody(StrictSerializer):
    """The state that was reached."""

    runId = Identifier()
    state = WordField(choices=RunState.choices)


class UncertainResolutionBody(StrictSerializer):
    """Say what was found out about an uncertain attempt; `version` is the step's."""

    resolution = WordField(choices=RESOLUTIONS)
    evidence = TextField(max_length=MOST_EVIDENCE)
    version = Whole()


class AttentionBody(StrictSerializer):
    """Say what was found about a violation or a late effect; `version` is the step's."""

    reason = TextField(max_length=MOST_EVIDENCE)
    version = Whole()


class RunsQuery(StrictSerializer):
    """The filters of the list."""

    state = WordField(choices=RunState.choices, required=False)
    workflowId = TextField(max_length=63, required=False)
    requestedBy = TextField(required=False)
    updatedAfter = QueryTimeField(required=False)


class MoneyBody(StrictSerializer):
    amount = TextField()
    currency = TextField()


@extend_schema_field(MoneyBody)
class DollarsField(serializers.Field[Any, Any, Any, Any]):
    """An amount of US dollars, to six places."""

    def to_representation(self, value: Decimal) -> dict[str, str]:
        return {"amount": f"{value:.6f}", "currency": "USD"}


class RunUsageBody(StrictSerializer):
    """Sum what was used so far; `uncertain` calls have no known cost, and are in no sum."""

    cost = DollarsField()
    uncertain = Whole()
    records = Whole()


class ClockBody(StrictSerializer):
    """Name what stops the clock by which `maxMinutes` counts, since when, and the seconds that are left then.

    While it runs nothing stops it, and `deadlineAt` says when the time is over.
    """

    stoppedSince = TimeField(source="stopped_since", allow_null=True)
    because = serializers.ListField(child=WordField(choices=STOPS))
    secondsLeft = serializers.IntegerField(source="seconds_left", allow_null=True)


class RunBody(StrictSerializer):
    """A run as a list shows it."""

    runId = Identifier(source="id")
    state = WordField(choices=RunState.choices)
    workflowId = TextField(source="workflow_id")
    environmentId = Identifier(source="environment_id", allow_null=True)
    releaseId = Identifier(source="release_id")
    releaseHash = TextField(source="release_hash")
    policyId = TextField(source="policy_id")
    policyRevision = TextField(source="policy_revision")
    modelProfileId = TextField(source="model_profile_id")
    snapshotId = Identifier(source="snapshot_id")
    inputHash = TextField(source="input_hash")
    limits = LimitsBody()
    requestedBy = TextField(source="requested_by")
    previousRunId = Identifier(source="previous_run_id", allow_null=True)
    templateId = Identifier(source="template_id", allow_null=True)
    version = Whole()
    sequence = Whole()
    createdAt = TimeField(source="created_at")
    updatedAt = TimeField(source="updated_at")
    startedAt = TimeField(source="started_at", allow_null=True)
    deadlineAt = TimeField(source="deadline_at", allow_null=True)
    clock = ClockBody()
    finishedAt = TimeField(source="finished_at", allow_null=True)
    failureClass = TextField(source="failure_class", allow_blank=True)
    reason = TextField(allow_blank=True, max_length=10_000)
    outputHash = TextField(source="output_hash", allow_blank=True)
    usage = RunUsageBody()
    links = serializers.SerializerMethodField()

    @extend_schema_field(Links)
    def get_links(self, view: Any) -> dict[str, str]:
        return {"self": f"/factory/runs/{view.id}", "watch": f"/factory/watch?runId={view.id}"}


class LeaseBody(StrictSerializer):
    """The current lease of an attempt."""

    leaseId = Identifier(source="id")
    state = WordField(choices=LeaseState.choices)
    holder = TextField()
    workerId = Identifier(source="worker_id")
    workerName = TextField(source="worker_name")
    fencingToken = Whole(source="fencing_token")
    offeredAt = TimeField(source="offered_at")
    acquiredAt = TimeField(source="acquired_at", allow_null=True)
    expiresAt = TimeField(source="expires_at")


class ArtifactBody(StrictSerializer):
    """Name what an attempt left in a store of its own; `size` is in bytes."""

    uri = TextField(max_length=2048)
    hash = TextField()
    size = Whole()


class AttemptBody(StrictSerializer):
    """Describe an attempt."""

    attemptId = Identifier(source="id")
    number = Whole()
    state = WordField(choices=AttemptState.choices)
    outcome = TextField(allow_null=True)
    failureClass = TextField(source="failure_class", allow_blank=True)
    reason = TextField(allow_blank=True, max_length=10_000)
    outcomeHash = TextField(source="outcome_hash", allow_blank=True)
    dispatchedAt = TimeField(source="dispatched_at")
    settledAt = TimeField(source="settled_at", allow_null=True)
    approvalId = Identifier(source="approval_id", allow_null=True)
    artifacts = ArtifactBody(many=True)
    lease = LeaseBody(allow_null=True)


class StepBody(StrictSerializer):
    """A step with its attempts; `output` is there for those who may see payloads."""

    stepId = Identifier(source="id")
    nodeKey = TextField(source="node_key")
    ordinal = Whole()
    kind = WordField(choices=KINDS)
    agentId = TextField(source="agent_id", allow_blank=True)
    skillId = TextField(source="skill_id", allow_blank=True)
    sideEffectClass = TextField(source="side_effect_class")
    gated = serializers.BooleanField()
    state = WordField(choices=StepState.choices)
    version = Whole()
    maxAttempts = Whole(source="max_attempts")
    nextDispatchAt = TimeField(source="next_dispatch_at", allow_null=True)
    attention = TextField(allow_blank=True)
    failureClass = TextField(source="failure_class", allow_blank=True)
    reason = TextField(allow_blank=True, max_length=10_000)
    waitingFor = TextField(source="waiting", allow_blank=True)
    createdAt = TimeField(source="created_at")
    updatedAt = TimeField(source="updated_at")
    finishedAt = TimeField(source="finished_at", allow_null=True)
    output = serializers.JSONField(required=False)
    attempts = AttemptBody(many=True)


class PendingBody(StrictSerializer):
    """An approval that the run waits for."""

    approvalId = Identifier(source="id")
    stepId = Identifier(source="step_id", allow_null=True)
    actionClass = TextField(source="action_class")
    summary = TextField(max_length=500)
    proposalHash = TextField(source="proposal_hash")
    version = Whole()
    requestedAt = TimeField(source="requested_at")
    expiresAt = TimeField(source="expires_at")


class CancellationBody(StrictSerializer):
    """Name who asked the run to stop, and why."""

    requestedBy = TextField(source="requested_by")
    reason = TextField(max_length=MOST_REASON)
    requestedAt = TimeField(source="requested_at")


class KinBody(StrictSerializer):
    """A run of the same work."""

    runId = Identifier(source="run_id")
    previousRunId = Identifier(source="previous_run_id", allow_null=True)
    state = WordField(choices=RunState.choices)
    releaseId = Identifier(source="release_id")
    requestedBy = TextField(source="requested_by")
    createdAt = TimeField(source="created_at")


class RunDetailBody(RunBody):
    """A run with all that belongs to it. `input` and `output` are there for those who may see payloads.

    `limits` are those that it was pinned to; `effectiveLimits` hold, with what was approved since.
    """

    effectiveLimits = LimitsBody(source="effective_limits")
    waitingFor = TextField(source="waiting", allow_blank=True)
    budgetReservationId = Identifier(source="budget_reservation_id", allow_null=True)
    cancellation = CancellationBody(allow_null=True)
    cancelDeadline = TimeField(source="cancel_deadline", allow_null=True)
    reruns = KinBody(many=True, source="family")
    steps = StepBody(many=True)
    approvals = PendingBody(many=True, source="pending")
    input = serializers.JSONField(required=False)
    output = serializers.JSONField(required=False)


class JournalBody(StrictSerializer):
    """One transition of the run, or of something of it."""

    sequence = Whole()
    entity = TextField()
    entityId = Identifier(source="entity_id")
    cause = TextField()
    fromState = TextField(source="from_state")
    toState = TextField(source="to_state")
    actor = TextField()
    actorKind = TextField(source="actor_kind")
    operation = TextField()
    correlationId = Identifier(source="correlation_id")
    detail = serializers.JSONField()
    events = serializers.JSONField()
    occurredAt = TimeField(source="occurred_at")
    prevHash = TextField(source="prev_hash", allow_blank=True)
    hash = TextField()


class InstanceBody(StrictSerializer):
    """One step of a node that has fanned out."""

    key = TextField()
    state = WordField(choices=StepState.choices)
    stepId = Identifier(source="step_id")


class NodeBody(StrictSerializer):
    """A node; its state is `Waiting` until it has become a step. One that fans out has its instances."""

    key = TextField()
    ordinal = Whole()
    kind = WordField(choices=KINDS)
    agentId = TextField(source="agent_id", allow_blank=True)
    skillId = TextField(source="skill_id", allow_blank=True)
    sideEffectClass = TextField(source="side_effect_class")
    question = TextField(allow_blank=True, max_length=500)
    when = TextField(allow_blank=True, max_length=500)
    forEach = TextField(source="for_each", allow_blank=True, max_length=500)
    state = TextField()
    stepId = Identifier(source="step_id", allow_null=True)
    attention = TextField(allow_blank=True)
    instances = InstanceBody(many=True)


class EdgeBody(StrictSerializer):
    """`to` needs `from`."""

    to = TextField()

    def get_fields(self) -> dict[str, Any]:
        return {"from": TextField(), **super().get_fields()}


class GraphBody(StrictSerializer):
    """The pinned workflow with the states of its steps."""

    runId = Identifier(source="run_id")
    state = WordField(choices=RunState.choices)
    nodes = NodeBody(many=True)
    edges = EdgeBody(many=True)
