"""What goes over the wire about approvals and policy, and what is accepted."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from approvals.commands import MOST_AT_ONCE
from approvals.models import MAX_REASON
from approvals.states import ActionClass, ApprovalState, Decision, Effect, OnExpiry, SubjectType
from factory.api.serializers import (
    Amount,
    Choice,
    Flag,
    Identifier,
    JSONObject,
    Moment,
    StrictSerializer,
    Text,
    Whole,
)

Words = serializers.ListField


class AuthorizationBody(StrictSerializer):
    """The one use of an approval."""

    authorizationId = Identifier(source="id")
    attemptId = Identifier(source="attempt_id")
    leaseId = Identifier(source="lease_id")
    fencingToken = Whole(source="fencing_token")
    waiverId = Identifier(source="waiver_id", allow_null=True)
    authorizedBy = Text(source="authorized_by")
    authorizedAt = Moment(source="authorized_at")


class ApprovalBody(StrictSerializer):
    """A request for a decision. Approved is not done: `use` says whether the approval was used."""

    approvalId = Identifier(source="id")
    tenantId = Text(source="tenant_id")
    projectId = Identifier(source="project_id", allow_null=True)
    subjectType = Choice(source="subject_type", choices=SubjectType.choices)
    subjectId = Identifier(source="subject_id")
    runId = Identifier(source="run_id", allow_null=True)
    stepId = Identifier(source="step_id", allow_null=True)
    attemptId = Identifier(source="attempt_id", allow_null=True)
    releaseId = Identifier(source="release_id", allow_null=True)
    environmentId = Identifier(source="environment_id", allow_null=True)
    environment = Text(allow_blank=True)
    actionClass = Choice(source="action_class", choices=ActionClass.choices)
    summary = Text(max_length=500)
    proposalHash = Text(source="proposal_hash")
    policyRevision = Text(source="policy_revision")
    approverRule = Text(source="approver_rule", max_length=1000)
    approverRoles = Words(source="approver_roles", child=Text())
    quorum = Whole(min_value=1)
    onExpiry = Choice(source="on_expiry", choices=OnExpiry.choices)
    nobodyEligible = Flag(source="nobody_eligible")
    requestedBy = Text(source="requested_by")
    requestedAt = Moment(source="requested_at")
    expiresAt = Moment(source="expires_at")
    renews = Identifier(allow_null=True)
    waiverId = Identifier(source="waiver_id", allow_null=True)
    state = Choice(choices=ApprovalState.choices)
    version = Whole()
    votes = Whole()
    decision = Choice(choices=Decision.choices, allow_blank=True)
    decidedBy = Text(source="decided_by", allow_blank=True)
    onBehalfOf = Text(source="decided_for", allow_blank=True)
    delegationId = Identifier(source="delegation_id", allow_null=True)
    breakGlass = Flag(source="break_glass")
    passedOver = Words(source="passed_over", child=Text())
    decidedAt = Moment(source="decided_at", allow_null=True)
    reason = Text(max_length=MAX_REASON, allow_blank=True)
    closedAt = Moment(source="closed_at", allow_null=True)
    validUntil = Moment(source="valid_until", allow_null=True)
    use = serializers.SerializerMethodField()
    authorization = AuthorizationBody(allow_null=True)

    def get_use(self, view: Any) -> str:
        return str(view.use(self.context["at"]))


class VoteBody(StrictSerializer):
    """One person's yes. `counts` says whether it would count at this moment."""

    voter = Text(source="vote.voter")
    onBehalfOf = Text(source="vote.acting_for", allow_blank=True)
    reason = Text(source="vote.reason", max_length=MAX_REASON, allow_blank=True)
    votedAt = Moment(source="vote.voted_at")
    counts = Flag()


class CandidateBody(StrictSerializer):
    """A member of the project, and whether they may decide."""

    subject = Text()
    displayName = Text(source="display_name", allow_blank=True)
    roles = Words(child=Text())
    mayDecide = Flag(source="may_decide")
    actsFor = Text(source="acting_for", allow_blank=True)
    whyNot = Text(source="why_not", max_length=2000, allow_blank=True)


class ApprovalDetailBody(ApprovalBody):
    """A request with what it is about and who may decide.

    `proposal` is there for readers of payloads and for who may decide; for others it is null, and
    `proposalWithheld` is true.
    """

    mayDecide = serializers.SerializerMethodField()
    whyNot = serializers.SerializerMethodField()
    whoMayDecide = serializers.SerializerMethodField()
    votesCast = serializers.SerializerMethodField()
    proposal = serializers.SerializerMethodField()
    proposalWithheld = serializers.SerializerMethodField()

    def get_mayDecide(self, view: Any) -> bool:
        return not self.context["why_not"] and bool(view.is_pending)

    def get_whyNot(self, view: Any) -> str:
        return str(self.context["why_not"])

    def get_whoMayDecide(self, view: Any) -> list[dict[str, Any]]:
        return [dict(CandidateBody(one).data) for one in self.context["candidates"]]

    def get_votesCast(self, view: Any) -> list[dict[str, Any]]:
        return [dict(VoteBody(one).data) for one in self.context["votes"]]

    def get_proposal(self, view: Any) -> Any:
        return self.context["proposal"]

    def get_proposalWithheld(self, view: Any) -> bool:
        return bool(self.context["withheld"])


class ApprovalFilter(StrictSerializer):
    """Which requests to list; `mine=true` are those that wait for the caller, `breakGlass=true` those that
    were decided outside the rule."""

    state = Choice(choices=ApprovalState.choices, required=False)
    actionClass = Choice(source="action_class", choices=ActionClass.choices, required=False)
    runId = Identifier(source="run_id", required=False)
    mine = Choice(choices=["true", "false"], required=False)
    breakGlass = Choice(source="break_glass", choices=["true", "false"], required=False)


class DecisionBody(StrictSerializer):
    """An answer to exactly what was on the screen. `reason` is required for request_changes.

    `breakGlass` decides outside the rule: a PlatformAdmin's last resort, with a reason that those who
    were passed over read.
    """

    decision = Choice(choices=Decision.choices)
    version = Whole()
    proposalHash = Text(source="proposal_hash", max_length=100)
    reason = Text(max_length=MAX_REASON, required=False, default="", allow_blank=True)
    breakGlass = Flag(source="break_glass", required=False, default=False)


class ItemBody(StrictSerializer):
    """One of many answers, each to exactly what was on the screen."""

    approvalId = Identifier(source="approval_id")
    decision = Choice(choices=Decision.choices)
    version = Whole()
    proposalHash = Text(source="proposal_hash", max_length=100)
    reason = Text(max_length=MAX_REASON, required=False, default="", allow_blank=True)


class DecisionsBody(StrictSerializer):
    """Up to 100 answers. Each is a decision of its own."""

    items = serializers.ListField(child=ItemBody(), min_length=1, max_length=MOST_AT_ONCE)


class OutcomeBody(StrictSerializer):
    """What came of one answer: its status, and the request or the problem."""

    approvalId = Identifier(source="approval_id")
    status = Whole()
    approval = ApprovalBody(allow_null=True)
    problem = JSONObject(allow_null=True)


class OutcomesBody(StrictSerializer):
    """An outcome for each item, in the order of the items."""

    items = OutcomeBody(many=True)


class PolicyRevisionBody(StrictSerializer):
    """A policy revision; `warnings` are its doubts, found when it was published."""

    id = Identifier()
    policyId = Text(source="policy_id")
    revision = Text()
    document = JSONObject()
    documentHash = Text(source="document_hash")
    note = Text(max_length=500, allow_blank=True)
    warnings = Words(child=Text())
    publishedBy = Text(source="published_by")
    publishedAt = Moment(source="published_at")


class NewPolicyRevisionBody(StrictSerializer):
    """A policy document to publish."""

    document = JSONObject()
    note = Text(max_length=500, required=False, default="", allow_blank=True)


class QuestionBody(StrictSerializer):
    """An action that somebody might ask for. Without a `revision`, the one in force answers.

    `amountUsd` is all that a run may cost, of class `spend`; without it the answer is about more than the
    threshold.
    """

    actionClass = Choice(source="action_class", choices=ActionClass.choices)
    environment = Text(max_length=63, required=False, allow_null=True, default=None)
    revision = Text(max_length=16, required=False, default="")
    requestedBy = Text(source="requested_by", required=False, default="", allow_blank=True)
    amountUsd = Amount(source="amount", required=False, allow_null=True, default=None)


class WaivedBody(StrictSerializer):
    """A waiver that is in force there; `whyNot` says why it would not serve, and is empty where it would."""

    waiverId = Identifier(source="id")
    template = Text(source="template_name")
    workflowId = Text(source="workflow_id")
    release = Text(source="release_name")
    expiresAt = Moment(source="expires_at")
    neverFor = Words(source="never_for", child=Text())
    serves = Flag()
    whyNot = Text(source="why_not", allow_blank=True, max_length=2000)


class ExplanationBody(StrictSerializer):
    """What the policy would answer, by which rule, who could decide, and what was approved in advance.

    Of `spend` it also says above which amount people are asked (`thresholdUsd`), and what becomes of a run
    that has used all that it may cost (`atTheLimit`).
    """

    revision = Text(source="policy.revision")
    actionClass = Choice(source="action_class", choices=ActionClass.choices)
    environment = Text(allow_null=True)
    effect = Choice(source="verdict.effect", choices=Effect.choices)
    rule = Text(source="verdict.rule", max_length=2000)
    approverRoles = Words(source="verdict.roles", child=Text())
    quorum = Whole(source="verdict.quorum", min_value=1)
    onExpiry = Choice(source="verdict.on_expiry", choices=OnExpiry.choices)
    expiryHours = serializers.SerializerMethodField()
    validHours = serializers.SerializerMethodField()
    whoMayDecide = CandidateBody(source="candidates", many=True)
    inAdvance = Text(source="advance", allow_blank=True)
    waivers = WaivedBody(source="waived", many=True)
    thresholdUsd = serializers.SerializerMethodField()
    atTheLimit = serializers.SerializerMethodField()

    def get_expiryHours(self, told: Any) -> float:
        return float(told.verdict.expires_in.total_seconds() / 3600)

    def get_validHours(self, told: Any) -> float:
        return float(told.verdict.valid_for.total_seconds() / 3600)

    def get_thresholdUsd(self, told: Any) -> float | None:
        return None if told.threshold is None else float(told.threshold)

    @extend_schema_field({"type": ["string", "null"], "enum": [*Effect.values, None]})
    def get_atTheLimit(self, told: Any) -> str | None:
        return str(told.at_the_limit.effect) if told.at_the_limit else None
