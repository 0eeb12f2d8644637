"""What goes over the wire about approvals and policy, and what is accepted."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from approvals.commands import MOST_AT_ONCE
from approvals.models import MAX_REASON
from approvals.states import ActionClass, ApprovalState, Decision, Effect, OnExpiry, SubjectType
from factory.api.serializers import (
    AmountField,
    Flag,
    Identifier,
    JSONObject,
    StrictSerializer,
    TextField,
    TimeField,
    Whole,
    WordField,
)

Words = serializers.ListField


class AuthorizationBody(StrictSerializer):
    """The one use of an approval."""

    authorizationId = Identifier(source="id")
    attemptId = Identifier(source="attempt_id")
    leaseId = Identifier(source="lease_id")
    fencingToken = Whole(source="fencing_token")
    waiverId = Identifier(source="waiver_id", allow_null=True)
    authorizedBy = TextField(source="authorized_by")
    authorizedAt = TimeField(source="authorized_at")


class ApprovalBody(StrictSerializer):
    """A request for a decision. Approved is not done: `use` says whether the approval was used."""

    approvalId = Identifier(source="id")
    tenantId = TextField(source="tenant_id")
    projectId = Identifier(source="project_id", allow_null=True)
    subjectType = WordField(source="subject_type", choices=SubjectType.choices)
    subjectId = Identifier(source="subject_id")
    runId = Identifier(source="run_id", allow_null=True)
    stepId = Identifier(source="step_id", allow_null=True)
    attemptId = Identifier(source="attempt_id", allow_null=True)
    releaseId = Identifier(source="release_id", allow_null=True)
    environmentId = Identifier(source="environment_id", allow_null=True)
    environment = TextField(allow_blank=True)
    actionClass = WordField(source="action_class", choices=ActionClass.choices)
    summary = TextField(max_length=500)
    proposalHash = TextField(source="proposal_hash")
    policyRevision = TextField(source="policy_revision")
    approverRule = TextField(source="approver_rule", max_length=1000)
    approverRoles = Words(source="approver_roles", child=TextField())
    quorum = Whole(min_value=1)
    onExpiry = WordField(source="on_expiry", choices=OnExpiry.choices)
    nobodyEligible = Flag(source="nobody_eligible")
    requestedBy = TextField(source="requested_by")
    requestedAt = TimeField(source="requested_at")
    expiresAt = TimeField(source="expires_at")
    renews = Identifier(allow_null=True)
    waiverId = Identifier(source="waiver_id", allow_null=True)
    state = WordField(choices=ApprovalState.choices)
    version = Whole()
    votes = Whole()
    decision = WordField(choices=Decision.choices, allow_blank=True)
    decidedBy = TextField(source="decided_by", allow_blank=True)
    onBehalfOf = TextField(source="decided_for", allow_blank=True)
    delegationId = Identifier(source="delegation_id", allow_null=True)
    breakGlass = Flag(source="break_glass")
    passedOver = Words(source="passed_over", child=TextField())
    decidedAt = TimeField(source="decided_at", allow_null=True)
    reason = TextField(max_length=MAX_REASON, allow_blank=True)
    closedAt = TimeField(source="closed_at", allow_null=True)
    validUntil = TimeField(source="valid_until", allow_null=True)
    use = serializers.SerializerMethodField()
    authorization = AuthorizationBody(allow_null=True)

    def get_use(self, view: Any) -> str:
        return str(view.use(self.context["at"]))


class VoteBody(StrictSerializer):
    """One person's yes. `counts` says whether it would count at this moment."""

    voter = TextField(source="vote.voter")
    onBehalfOf = TextField(source="vote.acting_for", allow_blank=True)
    reason = TextField(source="vote.reason", max_length=MAX_REASON, allow_blank=True)
    votedAt = TimeField(source="vote.voted_at")
    counts = Flag()


class CandidateBody(StrictSerializer):
    """A member of the project, and whether they may decide."""

    subject = TextField()
    displayName = TextField(source="display_name", allow_blank=True)
    roles = Words(child=TextField())
    mayDecide = Flag(source="may_decide")
    actsFor = TextField(source="acting_for", allow_blank=True)
    whyNot = TextField(source="why_not", max_length=2000, allow_blank=True)


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
        return [dict(CandidateBody(candidate).data) for candidate in self.context["candidates"]]

    def get_votesCast(self, view: Any) -> list[dict[str, Any]]:
        return [dict(VoteBody(vote).data) for vote in self.context["votes"]]

    def get_proposal(self, view: Any) -> Any:
        return self.context["proposal"]

    def get_proposalWithheld(self, view: Any) -> bool:
        return bool(self.context["withheld"])


class ApprovalFilter(StrictSerializer):
    """Choose requests; `mine=true` are those that wait for the caller, `breakGlass=true` those that
    were decided outside the rule."""

    state = WordField(choices=ApprovalState.choices, required=False)
    actionClass = WordField(source="action_class", choices=ActionClass.choices, required=False)
    runId = Identifier(source="run_id", required=False)
    mine = WordField(choices=["true", "false"], required=False)
    breakGlass = WordField(source="break_glass", choices=["true", "false"], required=False)


class DecisionBody(StrictSerializer):
    """An answer to exactly what was on the screen. `reason` is required for request_changes.

    `breakGlass` decides outside the rule: a PlatformAdmin's last resort, with a reason that those who
    were passed over read.
    """

    decision = WordField(choices=Decision.choices)
    version = Whole()
    proposalHash = TextField(source="proposal_hash", max_length=100)
    reason = TextField(max_length=MAX_REASON, required=False, default="", allow_blank=True)
    breakGlass = Flag(source="break_glass", required=False, default=False)


class ItemBody(StrictSerializer):
    """One of many answers, each to exactly what was on the screen."""

    approvalId = Identifier(source="approval_id")
    decision = WordField(choices=Decision.choices)
    version = Whole()
    proposalHash = TextField(source="proposal_hash", max_length=100)
    reason = TextField(max_length=MAX_REASON, required=False, default="", allow_blank=True)


class DecisionsBody(StrictSerializer):
    """Up to 100 answers. Each is a decision of its own."""

    items = serializers.ListField(child=ItemBody(), min_length=1, max_length=MOST_AT_ONCE)


class BulkDecisionResultBody(StrictSerializer):
    """Tell what came of one answer: its status, and the request or the problem."""

    approvalId = Identifier(source="approval_id")
    status = Whole()
    approval = ApprovalBody(allow_null=True)
    problem = JSONObject(allow_null=True)


class OutcomesBody(StrictSerializer):
    """An outcome for each item, in the order of the items."""

    items = BulkDecisionResultBody(many=True)


class PolicyRevisionBody(StrictSerializer):
    """A policy revision; `warnings` are its doubts, found when it was published."""

    id = Identifier()
    policyId = TextField(source="policy_id")
    revision = TextField()
    document = JSONObject()
    documentHash = TextField(source="document_hash")
    note = TextField(max_length=500, allow_blank=True)
    warnings = Words(child=TextField())
    publishedBy = TextField(source="published_by")
    publishedAt = TimeField(source="published_at")


class NewPolicyRevisionBody(StrictSerializer):
    """A policy document to publish."""

    document = JSONObject()
    note = TextField(max_length=500, required=False, default="", allow_blank=True)


class PolicyEvaluationBody(StrictSerializer):
    """An action that somebody might ask for. Without a `revision`, the one in force answers.

    `amountUsd` is all that a run may cost, of class `spend`; without it the answer is about more than the
    threshold.
    """

    actionClass = WordField(source="action_class", choices=ActionClass.choices)
    environment = TextField(max_length=63, required=False, allow_null=True, default=None)
    revision = TextField(max_length=16, required=False, default="")
    requestedBy = TextField(source="requested_by", required=False, default="", allow_blank=True)
    amountUsd = AmountField(source="amount", required=False, allow_null=True, default=None)


class WaivedBody(StrictSerializer):
    """A waiver that is in force there; `whyNot` says why it would not serve, and is empty where it would."""

    waiverId = Identifier(source="id")
    template = TextField(source="template_name")
    workflowId = TextField(source="workflow_id")
    release = TextField(source="release_name")
    expiresAt = TimeField(source="expires_at")
    neverFor = Words(source="never_for", child=TextField())
    serves = Flag()
    whyNot = TextField(source="why_not", allow_blank=True, max_length=2000)


class ExplanationBody(StrictSerializer):
    """Tell what the policy would answer, by which rule, who could decide, and what was approved in advance.

    Of `spend` it also says above which amount people are asked (`thresholdUsd`), and what becomes of a run
    that has used all that it may cost (`atTheLimit`).
    """

    revision = TextField(source="policy.revision")
    actionClass = WordField(source="action_class", choices=ActionClass.choices)
    environment = TextField(allow_null=True)
    effect = WordField(source="verdict.effect", choices=Effect.choices)
    rule = TextField(source="verdict.rule", max_length=2000)
    approverRoles = Words(source="verdict.roles", child=TextField())
    quorum = Whole(source="verdict.quorum", min_value=1)
    onExpiry = WordField(source="verdict.on_expiry", choices=OnExpiry.choices)
    expiryHours = serializers.SerializerMethodField()
    validHours = serializers.SerializerMethodField()
    whoMayDecide = CandidateBody(source="candidates", many=True)
    inAdvance = TextField(source="advance", allow_blank=True)
    waivers = WaivedBody(source="waived", many=True)
    thresholdUsd = serializers.SerializerMethodField()
    atTheLimit = serializers.SerializerMethodField()

    def get_expiryHours(self, explanation: Any) -> float:
        return float(explanation.verdict.expires_in.total_seconds() / 3600)

    def get_validHours(self, explanation: Any) -> float:
        return float(explanation.verdict.valid_for.total_seconds() / 3600)

    def get_thresholdUsd(self, explanation: Any) -> float | None:
        return None if explanation.threshold is None else float(explanation.threshold)

    @extend_schema_field({"type": ["string", "null"], "enum": [*Effect.values, None]})
    def get_atTheLimit(self, explanation: Any) -> str | None:
        return str(explanation.at_the_limit.effect) if explanation.at_the_limit else None
