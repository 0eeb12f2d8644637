"""Approvals and policy over HTTP: parse, call one command, translate."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from approvals import selectors
from approvals.commands import (
    BulkDecision,
    BulkDecisionResult,
    decide_approval,
    decide_each,
    publish_policy_revision,
)
from approvals.errors import ApprovalNotFound
from approvals.rest.serializers import (
    ApprovalBody,
    ApprovalDetailBody,
    ApprovalFilter,
    DecisionBody,
    DecisionsBody,
    ExplanationBody,
    NewPolicyRevisionBody,
    OutcomesBody,
    PolicyEvaluationBody,
    PolicyRevisionBody,
)
from approvals.selectors import ApprovalView, approval_view, policy_view
from factory.api.correlation import correlation_of
from factory.api.pages import page
from factory.api.problems import problem_of
from factory.api.views import BaseView
from factory.kernel import clock


class ApprovalList(BaseView):
    operation = {"GET": "ListApprovals"}

    @extend_schema(summary="List approvals", parameters=[ApprovalFilter], responses=ApprovalBody(many=True))
    def get(self, request: Request) -> Response:
        """The requests that the caller's roles may see, newest first."""
        wanted = ApprovalFilter.parse_query(request)
        with self.reading():
            if "break_glass" in wanted:
                wanted["break_glass"] = wanted["break_glass"] == "true"
            only_mine = wanted.pop("mine", "false") == "true"
            rows = selectors.mine(self.ctx) if only_mine else selectors.visible(self.ctx)
            context = {"at": clock.now()}
            return Response(
                page(
                    rows.filter(**wanted),
                    request,
                    key=("requested_at", "id"),
                    render=lambda row: ApprovalBody(approval_view(row), context=context).data,
                )
            )


class ApprovalDetail(BaseView):
    operation = {"GET": "ReadApproval"}

    @extend_schema(summary="Read an approval", responses=ApprovalDetailBody)
    def get(self, request: Request, approval_id: UUID) -> Response:
        """A request, what it is about, who may decide and who may not and why."""
        with self.reading():
            row = selectors.visible(self.ctx).filter(pk=approval_id).first()
            if row is None:
                raise ApprovalNotFound("There is no such approval here.")
            view = approval_view(row)
            return Response(ApprovalDetailBody(view, context=self._around(view)).data)

    def _around(self, view: ApprovalView) -> dict[str, Any]:
        no = selectors.refusal_for(self.ctx, view)
        shown = no is None or selectors.may_see_proposal(self.ctx, view)
        return {
            "at": clock.now(),
            "why_not": "" if no is None else no.detail,
            "candidates": selectors.candidates(view, view.project_id),
            "votes": selectors.votes_judged(view),
            "proposal": selectors.proposal(view.id).content if shown else None,
            "withheld": not shown,
        }


class ApprovalDecision(BaseView):
    operation = {"POST": "DecideApproval"}

    @extend_schema(summary="Decide an approval", request=DecisionBody, responses=ApprovalBody)
    def post(self, request: Request, approval_id: UUID) -> Response:
        """Answer exactly what was on the screen: its version and its hash."""
        answer = DecisionBody.parse(request.data)
        view = decide_approval(self.ctx, approval_id=approval_id, **answer)
        return Response(ApprovalBody(view, context={"at": view.closed_at}).data)


class ApprovalDecisions(BaseView):
    operation = {"POST": "DecideApprovals"}

    def _authorize(self, operation: str) -> None:
        """Many decisions are decisions: what refuses one refuses all of them, in the same audit entry."""
        super()._authorize("DecideApproval")

    @extend_schema(summary="Decide many approvals", request=DecisionsBody, responses={207: OutcomesBody})
    def post(self, request: Request) -> Response:
        """Answer each item by itself: 207 with an outcome for each, whatever became of the others."""
        items = DecisionsBody.parse(request.data)["items"]
        outcomes = decide_each(self.ctx, [BulkDecision(**item) for item in items])
        return Response({"items": [self._body_of(request, outcome) for outcome in outcomes]}, status=207)

    def _body_of(self, request: Request, outcome: BulkDecisionResult) -> dict[str, Any]:
        body: dict[str, Any] = {"approvalId": str(outcome.approval_id), "approval": None, "problem": None}
        if outcome.view is not None:
            approval = ApprovalBody(outcome.view, context={"at": outcome.view.closed_at}).data
            return body | {"status": 200, "approval": approval}
        assert outcome.refusal is not None
        problem = problem_of(outcome.refusal)
        where = f"/factory/approvals/{outcome.approval_id}/decision"
        trace = str(correlation_of(request))
        return body | {"status": problem.status, "problem": problem.body(instance=where, trace_id=trace)}


class PolicyRevisionList(BaseView):
    operation = {"GET": "ListPolicyRevisions", "POST": "PublishPolicyRevision"}

    @extend_schema(summary="List policy revisions", responses=PolicyRevisionBody(many=True))
    def get(self, request: Request) -> Response:
        """The tenant's policy revisions, newest first."""
        with self.reading():
            return Response(
                page(
                    selectors.policy_revisions(),
                    request,
                    key=("number", "id"),
                    render=lambda row: PolicyRevisionBody(policy_view(row)).data,
                )
            )

    @extend_schema(
        summary="Publish a policy revision",
        request=NewPolicyRevisionBody,
        responses={201: PolicyRevisionBody},
    )
    def post(self, request: Request) -> Response:
        """Publish the next revision; runs accepted from now on pin it."""
        body = NewPolicyRevisionBody.parse(request.data)
        word, headers = self.do(request, publish_policy_revision, **body)
        with self.reading():
            told = PolicyRevisionBody(selectors.policy_named(word)).data
        where = f"/factory/policy-revisions/{word}"
        return Response(told, status=201, headers={"Location": where, **headers})


class PolicyRevisionDetail(BaseView):
    operation = {"GET": "ReadPolicyRevision"}

    @extend_schema(summary="Read a policy revision", responses=PolicyRevisionBody)
    def get(self, request: Request, revision: str) -> Response:
        """One revision by its word, such as r1."""
        with self.reading():
            return Response(PolicyRevisionBody(selectors.policy_named(revision)).data)


class PolicyEvaluation(BaseView):
    operation = {"POST": "EvaluatePolicy"}

    @extend_schema(summary="Explain the policy", request=PolicyEvaluationBody, responses=ExplanationBody)
    def post(self, request: Request) -> Response:
        """Explain what would happen to this action here, and who could decide; nothing changes."""
        question = PolicyEvaluationBody.parse(request.data)
        with self.reading():
            word = question["revision"]
            policy = selectors.policy_named(word) if word else selectors.current_policy(self.ctx)
            told = selectors.explain(
                policy,
                question["action_class"],
                project_id=self.ctx.project_id,
                environment=question["environment"],
                requested_by=question["requested_by"],
                amount=question["amount"],
            )
            return Response(ExplanationBody(told).data)
