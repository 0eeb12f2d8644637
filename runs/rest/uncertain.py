"""What an Operator has to settle, over HTTP."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from factory.api.pages import page
from factory.api.serializers import Identifier, StrictSerializer, TextField, TimeField, Whole, WordField
from factory.api.views import BaseView
from runs.selectors import may_see_payloads
from runs.selectors.uncertain import UncertainAttempt, uncertain_attempts, uncertain_steps
from runs.states import LeaseState, StepState


class HolderBody(StrictSerializer):
    """Describe who had the attempt, under which lease."""

    leaseId = Identifier(source="id")
    state = WordField(choices=LeaseState.choices)
    holder = TextField()
    workerName = TextField(source="worker_name")
    fencingToken = Whole(source="fencing_token")
    acquiredAt = TimeField(source="acquired_at", allow_null=True)
    closedAt = TimeField(source="closed_at", allow_null=True)


class TakenBody(StrictSerializer):
    """An authorization that the attempt took: from then on an effect may have happened."""

    authorizationId = Identifier(source="id")
    approvalId = Identifier(source="approval_id")
    proposalHash = TextField(source="proposal_hash")
    authorizedAt = TimeField(source="authorized_at")
    authorizedBy = TextField(source="authorized_by")


class AllowedBody(StrictSerializer):
    """Describe what was allowed, and by whom; the proposal itself is at the approval."""

    approvalId = Identifier(source="id")
    actionClass = TextField(source="action_class")
    summary = TextField(max_length=500)
    proposalHash = TextField(source="proposal_hash")
    decidedBy = TextField(source="decided_by")
    decidedAt = TimeField(source="decided_at", allow_null=True)


class EvidenceBody(StrictSerializer):
    """A receipt that the attempt left; its `details` are there for those who may see payloads."""

    receiptId = TextField(source="receipt_id")
    kind = TextField()
    provider = TextField()
    name = TextField()
    approvalId = Identifier(source="approval_id", allow_null=True)
    proposalHash = TextField(source="proposal_hash", allow_blank=True)
    superseded = WordField(choices=[True, False])
    occurredAt = TimeField(source="occurred_at")
    details = serializers.JSONField(required=False)


class UncertainAttemptBody(StrictSerializer):
    """An attempt of which nobody knows how it ended; settling it takes the step's `version`."""

    attemptId = Identifier(source="attempt.id")
    number = Whole(source="attempt.number")
    runId = Identifier(source="step.run_id")
    runState = TextField(source="step.run.state")
    stepId = Identifier(source="step.id")
    stepState = WordField(choices=StepState.choices, source="step.state")
    nodeKey = TextField(source="step.node_key")
    sideEffectClass = TextField(source="step.side_effect_class")
    version = Whole(source="step.version")
    reason = TextField(source="attempt.reason", allow_blank=True, max_length=10_000)
    settledAt = TimeField(source="attempt.settled_at")
    holders = HolderBody(source="leases", many=True)
    authorizations = TakenBody(many=True)
    approvals = AllowedBody(many=True)
    receipts = EvidenceBody(many=True)


class UncertainAttempts(BaseView):
    operation = {"GET": "ListUncertainAttempts"}

    @extend_schema(summary="List uncertain attempts", responses=UncertainAttemptBody(many=True))
    def get(self, request: Request) -> Response:
        """Attempts that an Operator has to settle, newest first, with the evidence that there is."""
        with self.reading():
            body = page(uncertain_steps(self.ctx), request, render=lambda row: row)
            payloads = may_see_payloads(self.ctx)
            body["items"] = [_body(uncertain, payloads) for uncertain in uncertain_attempts(body["items"])]
        return Response(body)


def _body(uncertain: UncertainAttempt, payloads: bool) -> dict[str, Any]:
    """Without payloads the receipts' details are left out, as everywhere."""
    body: dict[str, Any] = dict(UncertainAttemptBody(uncertain).data)
    if payloads:
        for told, row in zip(body["receipts"], uncertain.receipts, strict=True):
            told["details"] = row.content.get("details")
    return body
