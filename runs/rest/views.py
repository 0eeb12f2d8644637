"""The calls about runs. Each parses, calls one command or selector, and translates."""

from typing import Any
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from factory.api.etags import with_etag
from factory.api.idempotency import REPLAYED, key_of
from factory.api.pages import page
from factory.api.views import BaseView
from runs.commands import cancel_run, close_attention, lift_freeze, resolve_step
from runs.dispatch import revoke_from_outside
from runs.rest.serializers import (
    AcceptedBody,
    AttentionBody,
    CancelBody,
    GraphBody,
    JournalBody,
    RunBody,
    RunDetailBody,
    RunsQuery,
    StateBody,
    UncertainResolutionBody,
)
from runs.rest.submissions import SubmissionBody, submit
from runs.selectors import graph, journal, may_see_payloads, run_view, runs, summaries
from runs.selectors.views import RunView

KEY = OpenApiParameter("Idempotency-Key", OpenApiTypes.STR, OpenApiParameter.HEADER, required=True)
FILTERS = {
    "state": "state",
    "workflowId": "workflow_id",
    "requestedBy": "requested_by",
    "updatedAfter": "updated_at__gt",
}


class RunList(BaseView):
    operation = {"GET": "ListRuns", "POST": "SubmitRun"}

    @extend_schema(summary="List runs", parameters=[RunsQuery], responses=RunBody(many=True))
    def get(self, request: Request) -> Response:
        """The runs of the project, newest first."""
        query = RunsQuery.parse_query(request)
        with self.reading():
            rows = runs(self.ctx).filter(**{FILTERS[name]: value for name, value in query.items()})
            body = page(rows, request, render=lambda row: row)
            body["items"] = [RunBody(view).data for view in summaries(body["items"])]
        return Response(body)

    @extend_schema(
        summary="Submit a run", parameters=[KEY], request=SubmissionBody, responses={202: AcceptedBody}
    )
    def post(self, request: Request) -> Response:
        """Accept a run. The same key with the same body answers as the first time."""
        body, replayed = submit(self.ctx, payload=request.data, key=key_of(request))
        headers = {"Location": body["links"]["self"]} | ({REPLAYED: "true"} if replayed else {})
        return Response(body, 202, headers=headers)


class RunDetail(BaseView):
    operation = {"GET": "ReadRun"}

    @extend_schema(summary="Read a run", responses=RunDetailBody)
    def get(self, request: Request, run_id: UUID) -> Response:
        """One run with its steps, attempts, current leases, pending approvals and usage so far."""
        with self.reading():
            view = run_view(self.ctx, run_id)
        body = detail_body(view, payloads=may_see_payloads(self.ctx))
        return with_etag(request, body, body)


class RunJournal(BaseView):
    operation = {"GET": "ReadRunJournal"}

    @extend_schema(summary="Read a run's journal", responses=JournalBody(many=True))
    def get(self, request: Request, run_id: UUID) -> Response:
        """Every transition of the run and of all that belongs to it, oldest first, as it was chained."""
        with self.reading():
            rows = journal(self.ctx, run_id)
            render = lambda row: JournalBody(row).data  # noqa: E731
            return Response(page(rows, request, key=("sequence",), render=render, oldest_first=True))


class RunGraph(BaseView):
    operation = {"GET": "ReadRunGraph"}

    @extend_schema(summary="Read a run's graph", responses=GraphBody)
    def get(self, request: Request, run_id: UUID) -> Response:
        """The workflow's nodes and edges with the states of their steps."""
        with self.reading():
            shown_graph = graph(self.ctx, run_id)
        edges = [{"from": before, "to": after} for before, after in shown_graph.edges]
        shown = {name: getattr(shown_graph, name) for name in ("run_id", "state", "nodes")}
        return Response(GraphBody(shown | {"edges": edges}).data)


class RunCancel(BaseView):
    operation = {"POST": "CancelRun"}

    @extend_schema(summary="Cancel a run", request=CancelBody, responses={202: StateBody})
    def post(self, request: Request, run_id: UUID) -> Response:
        """Ask the run to stop; the answer is the state that it reached. The first intent stands."""
        reason = CancelBody.parse(request.data)["reason"]
        state = cancel_run(self.ctx, run_id=run_id, reason=reason)
        return Response({"runId": str(run_id), "state": state}, 202)


class FreezeLift(BaseView):
    operation = {"POST": "LiftFreeze"}

    @extend_schema(summary="Lift a run's freeze", request=CancelBody, responses=StateBody)
    def post(self, request: Request, run_id: UUID) -> Response:
        """Let a run go on that stands still because the auditor found a violation about it."""
        lift_freeze(self.ctx, run_id=run_id, reason=CancelBody.parse(request.data)["reason"])
        with self.reading():
            state = run_view(self.ctx, run_id).summary.state
        return Response({"runId": str(run_id), "state": state})


class StepResolution(BaseView):
    operation = {"POST": "ResolveUncertainStep"}

    @extend_schema(
        summary="Settle an uncertain step", request=UncertainResolutionBody, responses=RunDetailBody
    )
    def post(self, request: Request, run_id: UUID, step_id: UUID) -> Response:
        """Say, with evidence, whether the effect of an uncertain attempt happened; the run goes on."""
        body = UncertainResolutionBody.parse(request.data)
        resolve_step(self.ctx, run_id=run_id, step_id=step_id, **body)
        with self.reading():
            view = run_view(self.ctx, run_id)
        return Response(detail_body(view, payloads=may_see_payloads(self.ctx)))


class StepAttention(BaseView):
    operation = {"POST": "CloseAttention"}

    @extend_schema(
        summary="Close what an Operator was asked to look at",
        request=AttentionBody,
        responses=RunDetailBody,
    )
    def post(self, request: Request, run_id: UUID, step_id: UUID) -> Response:
        """Say what was found about a violation or a late effect. It moves nothing, and stays on record."""
        body = AttentionBody.parse(request.data)
        close_attention(self.ctx, run_id=run_id, step_id=step_id, **body)
        with self.reading():
            view = run_view(self.ctx, run_id)
        return Response(detail_body(view, payloads=may_see_payloads(self.ctx)))


class WorkerRevoke(BaseView):
    operation = {"POST": "RevokeWorker"}

    @extend_schema(summary="Revoke a worker's credential", request=CancelBody, responses={204: None})
    def post(self, request: Request, worker_id: UUID) -> Response:
        """Refuse every token of it at once. What it holds settles when its leases and the grace are over."""
        reason = CancelBody.parse(request.data)["reason"]
        revoke_from_outside(self.ctx, worker_id=worker_id, reason=reason)
        return Response(status=204)


def detail_body(view: RunView, *, payloads: bool) -> dict[str, Any]:
    """A run on the wire; without payloads its input and its outputs are not in it."""
    flat = {name: getattr(view.summary, name) for name in view.summary.__slots__}
    flat |= {name: getattr(view, name) for name in view.__slots__ if name != "summary"}
    body: dict[str, Any] = dict(RunDetailBody(_Flat(flat)).data)
    if not payloads:
        body.pop("input", None)
        body.pop("output", None)
        for step in body["steps"]:
            step.pop("output", None)
    return body


class _Flat:
    """The run and its summary as one thing to serialize."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)
