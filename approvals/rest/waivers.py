"""Waivers over HTTP: the list, one of them, and the way to end it."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from approvals.commands import revoke_waiver
from approvals.models import MAX_REASON
from approvals.selectors import others_in_force, viewing_waivers, waiver_view, waivers, with_uses
from approvals.states import ActionClass, WaiverState
from factory.api.pages import page
from factory.api.serializers import Choice, Identifier, Moment, StrictSerializer, Text, Whole
from factory.api.views import HouseView
from factory.kernel.context import Context


class WaiverBody(StrictSerializer):
    """An approval given in advance. `uses` counts the requests that were approved under it."""

    waiverId = Identifier(source="id")
    projectId = Identifier(source="project_id")
    state = Choice(choices=WaiverState.choices)
    templateId = Identifier(source="template_id")
    template = Text(source="template_name")
    workflowId = Text(source="workflow_id")
    releaseId = Identifier(source="release_id")
    release = Text(source="release_name")
    actionClass = Choice(source="action_class", choices=ActionClass.choices)
    environmentIds = serializers.ListField(source="environment_ids", child=Identifier())
    environments = serializers.ListField(child=Text())
    reason = Text(max_length=MAX_REASON)
    requestedBy = Text(source="requested_by")
    requestedAt = Moment(source="requested_at")
    expiresAt = Moment(source="expires_at")
    approvalId = Identifier(source="approval_id")
    decidedBy = Text(source="decided_by", allow_blank=True)
    decidedAt = Moment(source="decided_at", allow_null=True)
    deciders = serializers.ListField(child=Text())
    endedAt = Moment(source="ended_at", allow_null=True)
    endedBy = Text(source="ended_by", allow_blank=True)
    endReason = Text(source="end_reason", max_length=MAX_REASON, allow_blank=True)
    uses = Whole()
    version = Whole()


class OtherWaiverBody(StrictSerializer):
    """Another waiver of the same template and release that holds now in one of the environments."""

    waiverId = Identifier(source="id")
    environments = serializers.ListField(child=Text())
    expiresAt = Moment(source="expires_at")
    deciders = serializers.ListField(child=Text())


class WaiverDetailBody(WaiverBody):
    """A waiver with the others that serve beside it: revoking one leaves them in force."""

    othersInForce = OtherWaiverBody(source="others", many=True)


class WaiverFilter(StrictSerializer):
    """Which waivers to list. `state` is the recorded one: the end of a time is recorded within minutes."""

    state = Choice(choices=WaiverState.choices, required=False)
    templateId = Identifier(source="template_id", required=False)
    releaseId = Identifier(source="release_id", required=False)


class RevokeBody(StrictSerializer):
    """Why it ends."""

    reason = Text(max_length=MAX_REASON)


class WaiverList(HouseView):
    operation = {"GET": "ListWaivers"}

    @extend_schema(summary="List waivers", parameters=[WaiverFilter], responses=WaiverBody(many=True))
    def get(self, request: Request) -> Response:
        """The project's waivers, newest first."""
        wanted = WaiverFilter.parse_query(request)
        with self.reading():
            rows = with_uses(waivers(self.ctx).filter(**wanted))
            view = viewing_waivers()
            return Response(
                page(
                    rows,
                    request,
                    key=("requested_at", "id"),
                    render=lambda row: WaiverBody(view(row)).data,
                )
            )


class WaiverDetail(HouseView):
    operation = {"GET": "ReadWaiver"}

    @extend_schema(summary="Read a waiver", responses=WaiverDetailBody)
    def get(self, request: Request, waiver_id: UUID) -> Response:
        """One waiver; what exactly was signed is the proposal of its approval."""
        with self.reading():
            return Response(_whole(self.ctx, waiver_id))


class WaiverRevoke(HouseView):
    operation = {"POST": "RevokeWaiver"}

    @extend_schema(summary="Revoke a waiver", request=RevokeBody, responses=WaiverDetailBody)
    def post(self, request: Request, waiver_id: UUID) -> Response:
        """End it at once, or withdraw it before it is decided. People are asked again, unless one of
        `othersInForce` still serves."""
        reason = RevokeBody.parse(request.data)["reason"]
        _, headers = self.do(request, revoke_waiver, waiver_id=waiver_id, reason=reason)
        with self.reading():
            return Response(_whole(self.ctx, waiver_id), headers=headers)


def _whole(ctx: Context, waiver_id: UUID) -> dict[str, Any]:
    view = waiver_view(ctx, waiver_id)
    around = {name: getattr(view, name) for name in view.__slots__} | {"others": others_in_force(view)}
    return dict(WaiverDetailBody(around).data)
