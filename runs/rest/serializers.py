"""What goes over the wire about runs, and what is accepted."""

from typing import Any

from rest_framework import serializers

from factory.api.serializers import Choice, Identifier, Moment, QueryMoment, StrictSerializer, Text, Whole
from runs.commands.cancel_run import MOST_REASON
from runs.commands.resolve_step import MOST_EVIDENCE
from runs.engine import AGENT, HUMAN
from runs.models.evidence import RESOLUTIONS
from runs.selectors.clocks import STOPS
from runs.states import AttemptState, LeaseState, RunState, StepState

KINDS = ((AGENT, AGENT), (HUMAN, HUMAN))


class Limits(StrictSerializer):
    """What the run may cost, and how long it may take."""

    maxCostUsd = serializers.FloatField(required=False)
    maxMinutes = Whole(required=False, min_value=1)


class SubmissionBody(StrictSerializer):
    """A submission. Its members are checked by the command itself, with a pointer to each fault.

    With a `templateId`, what the template fixes (workflow, model profile, limits) may be left out, or said
    the same; without a release, `latest` is meant.
    """

    workflowId = Text(max_length=63, required=False)
    releaseAlias = Text(max_length=63, required=False)
    releaseId = Identifier(required=False)
    modelProfileId = Text(max_length=64, required=False)
    environmentId = Identifier(required=False)
    input = serializers.DictField()
    limits = Limits(required=False)
    previousRunId = Identifier(required=False)
    templateId = Identifier(required=False)


class Links(StrictSerializer):
    self = Text()
    watch = Text()


class AcceptedBody(StrictSerializer):
    """An accepted run: everything that it was pinned to."""

    runId = Identifier()
    state = Choice(choices=RunState.choices)
    workflowId = Text()
    releaseId = Identifier()
    releaseHash = Text()
    policyRevision = Text()
    modelProfileId = Text()
    templateId = Identifier(allow_null=True)
    snapshotId = Identifier()
    inputHash = Text()
    requestedBy = Text()
    version = Whole()
    createdAt = Moment()
    links = Links()


class CancelBody(StrictSerializer):
    """Why the run is to stop."""

    reason = Text(max_length=MOST_REASON)


class StateBody(StrictSerializer):
    """The state that was reached."""

    runId = Identifier()
    state = Choice(choices=RunState.choices)


class ResolutionBody(StrictSerializer):
    """What was found out about an uncertain attempt; `version` is the step's."""

    resolution = Choice(choices=RESOLUTIONS)
    evidence = Text(max_length=MOST_EVIDENCE)
    version = Whole()


class AttentionBody(StrictSerializer):
    """What was found about a violation or a late effect; `version` is the step's."""

    reason = Text(max_length=MOST_EVIDENCE)
    version = Whole()


class RunsQuery(StrictSerializer):
    """The filters of the list."""

    state = Choice(choices=RunState.choices, required=False)
    workflowId = Text(max_length=63, required=False)
    requestedBy = Text(required=False)
    updatedAfter = QueryMoment(required=False)


class Money(StrictSerializer):
    amount = Text()
    currency = Text()


class UsageBody(StrictSerializer):
    """What was used so far; `uncertain` calls have no known cost, and are in no sum."""

    cost = Money()
    uncertain = Whole()
    records = Whole()


class ClockBody(StrictSerializer):
    """What stops the clock by which `maxMinutes` counts, since when, and the seconds that are left then.

    While it runs nothing stops it, and `deadlineAt` says when the time is over.
    """

    stoppedSince = Moment(source="stopped_since", allow_null=True)
    because = serializers.ListField(child=Choice(choices=STOPS))
    secondsLeft = serializers.IntegerField(source="seconds_left", allow_null=True)


class RunBody(StrictSerializer):
    """A run as a list shows it."""

    runId = Identifier(source="id")
    state = Choice(choices=RunState.choices)
    workflowId = Text(source="workflow_id")
    environmentId = Identifier(source="environment_id", allow_null=True)
    releaseId = Identifier(source="release_id")
    releaseHash = Text(source="release_hash")
    policyId = Text(source="policy_id")
    policyRevision = Text(source="policy_revision")
    modelProfileId = Text(source="model_profile_id")
    snapshotId = Identifier(source="snapshot_id")
    inputHash = Text(source="input_hash")
    limits = Limits()
    requestedBy = Text(source="requested_by")
    previousRunId = Identifier(source="previous_run_id", allow_null=True)
    templateId = Identifier(source="template_id", allow_null=True)
    version = Whole()
    sequence = Whole()
    createdAt = Moment(source="created_at")
    updatedAt = Moment(source="updated_at")
    startedAt = Moment(source="started_at", allow_null=True)
    deadlineAt = Moment(source="deadline_at", allow_null=True)
    clock = ClockBody()
    finishedAt = Moment(source="finished_at", allow_null=True)
    failureClass = Text(source="failure_class", allow_blank=True)
    reason = Text(allow_blank=True, max_length=10_000)
    outputHash = Text(source="output_hash", allow_blank=True)
    usage = serializers.SerializerMethodField()
    links = serializers.SerializerMethodField()

    def get_usage(self, view: Any) -> dict[str, Any]:
        used = view.usage
        cost = {"amount": f"{used.cost:.6f}", "currency": "USD"}
        return {"cost": cost, "uncertain": used.uncertain, "records": used.records}

    def get_links(self, view: Any) -> dict[str, str]:
        return {"self": f"/factory/runs/{view.id}", "watch": f"/factory/watch?runId={view.id}"}


class LeaseBody(StrictSerializer):
    """The current lease of an attempt."""

    leaseId = Identifier(source="id")
    state = Choice(choices=LeaseState.choices)
    holder = Text()
    workerId = Identifier(source="worker_id")
    workerName = Text(source="worker_name")
    fencingToken = Whole(source="fencing_token")
    offeredAt = Moment(source="offered_at")
    acquiredAt = Moment(source="acquired_at", allow_null=True)
    expiresAt = Moment(source="expires_at")


class ArtifactBody(StrictSerializer):
    """What an attempt left in a store of its own; `size` is in bytes."""

    uri = Text(max_length=2048)
    hash = Text()
    size = Whole()


class AttemptBody(StrictSerializer):
    """One try."""

    attemptId = Identifier(source="id")
    number = Whole()
    state = Choice(choices=AttemptState.choices)
    outcome = Text(allow_null=True)
    failureClass = Text(source="failure_class", allow_blank=True)
    reason = Text(allow_blank=True, max_length=10_000)
    outcomeHash = Text(source="outcome_hash", allow_blank=True)
    dispatchedAt = Moment(source="dispatched_at")
    settledAt = Moment(source="settled_at", allow_null=True)
    approvalId = Identifier(source="approval_id", allow_null=True)
    artifacts = ArtifactBody(many=True)
    lease = LeaseBody(allow_null=True)


class StepBody(StrictSerializer):
    """A step with its attempts; `output` is there for those who may see payloads."""

    stepId = Identifier(source="id")
    nodeKey = Text(source="node_key")
    ordinal = Whole()
    kind = Choice(choices=KINDS)
    agentId = Text(source="agent_id", allow_blank=True)
    skillId = Text(source="skill_id", allow_blank=True)
    sideEffectClass = Text(source="side_effect_class")
    gated = serializers.BooleanField()
    state = Choice(choices=StepState.choices)
    version = Whole()
    maxAttempts = Whole(source="max_attempts")
    nextDispatchAt = Moment(source="next_dispatch_at", allow_null=True)
    attention = Text(allow_blank=True)
    failureClass = Text(source="failure_class", allow_blank=True)
    reason = Text(allow_blank=True, max_length=10_000)
    waitingFor = Text(source="waiting", allow_blank=True)
    createdAt = Moment(source="created_at")
    updatedAt = Moment(source="updated_at")
    finishedAt = Moment(source="finished_at", allow_null=True)
    output = serializers.JSONField(required=False)
    attempts = AttemptBody(many=True)


class PendingBody(StrictSerializer):
    """An approval that the run waits for."""

    approvalId = Identifier(source="id")
    stepId = Identifier(source="step_id", allow_null=True)
    actionClass = Text(source="action_class")
    summary = Text(max_length=500)
    proposalHash = Text(source="proposal_hash")
    version = Whole()
    requestedAt = Moment(source="requested_at")
    expiresAt = Moment(source="expires_at")


class CancellationBody(StrictSerializer):
    """Who asked the run to stop, and why."""

    requestedBy = Text(source="requested_by")
    reason = Text(max_length=MOST_REASON)
    requestedAt = Moment(source="requested_at")


class KinBody(StrictSerializer):
    """A run of the same work."""

    runId = Identifier(source="run_id")
    previousRunId = Identifier(source="previous_run_id", allow_null=True)
    state = Choice(choices=RunState.choices)
    releaseId = Identifier(source="release_id")
    requestedBy = Text(source="requested_by")
    createdAt = Moment(source="created_at")


class RunDetailBody(RunBody):
    """A run with all that belongs to it. `input` and `output` are there for those who may see payloads.

    `limits` are those that it was pinned to; `effectiveLimits` hold, with what was approved since.
    """

    effectiveLimits = Limits(source="effective_limits")
    waitingFor = Text(source="waiting", allow_blank=True)
    budgetReservationId = Identifier(source="budget_reservation_id", allow_null=True)
    cancellation = CancellationBody(allow_null=True)
    cancelDeadline = Moment(source="cancel_deadline", allow_null=True)
    reruns = KinBody(many=True, source="family")
    steps = StepBody(many=True)
    approvals = PendingBody(many=True, source="pending")
    input = serializers.JSONField(required=False)
    output = serializers.JSONField(required=False)


class JournalBody(StrictSerializer):
    """One transition of the run, or of something of it."""

    sequence = Whole()
    entity = Text()
    entityId = Identifier(source="entity_id")
    cause = Text()
    fromState = Text(source="from_state")
    toState = Text(source="to_state")
    actor = Text()
    actorKind = Text(source="actor_kind")
    operation = Text()
    correlationId = Identifier(source="correlation_id")
    detail = serializers.JSONField()
    events = serializers.JSONField()
    occurredAt = Moment(source="occurred_at")
    prevHash = Text(source="prev_hash", allow_blank=True)
    hash = Text()


class InstanceBody(StrictSerializer):
    """One step of a node that has fanned out."""

    key = Text()
    state = Choice(choices=StepState.choices)
    stepId = Identifier(source="step_id")


class NodeBody(StrictSerializer):
    """A node; its state is `Waiting` until it has become a step. One that fans out has its instances."""

    key = Text()
    ordinal = Whole()
    kind = Choice(choices=KINDS)
    agentId = Text(source="agent_id", allow_blank=True)
    skillId = Text(source="skill_id", allow_blank=True)
    sideEffectClass = Text(source="side_effect_class")
    question = Text(allow_blank=True, max_length=500)
    when = Text(allow_blank=True, max_length=500)
    forEach = Text(source="for_each", allow_blank=True, max_length=500)
    state = Text()
    stepId = Identifier(source="step_id", allow_null=True)
    attention = Text(allow_blank=True)
    instances = InstanceBody(many=True)


class EdgeBody(StrictSerializer):
    """`to` needs `from`."""

    to = Text()

    def get_fields(self) -> dict[str, Any]:
        return {"from": Text(), **super().get_fields()}


class GraphBody(StrictSerializer):
    """The pinned workflow with the states of its steps."""

    runId = Identifier(source="run_id")
    state = Choice(choices=RunState.choices)
    nodes = NodeBody(many=True)
    edges = EdgeBody(many=True)
