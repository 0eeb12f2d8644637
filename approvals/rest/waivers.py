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
from factory.api.serializers import Identifier, StrictSerializer, TextField, TimeField, Whole, WordField
from factory.api.views import BaseView
from factory.kernel.context import Context


class WaiverBody(StrictSerializer):
    """An approval given in advance. `uses` counts the requests that were approved under it."""

    waiverId = Identifier(source="id")
    projectId = Identifier(source="project_id")
    state = WordField(choices=WaiverState.choices)
    templateId = Identifier(source="template_id")
    template = TextField(source="template_name")
    workflowId = TextField(source="workflow_id")
    releaseId = Identifier(source="release_id")
    release = TextField(source="release_name")
    actionClass = WordField(source="action_class", choices=ActionClass.choices)
    environmentIds = serializers.ListField(source="environment_ids", child=Identifier())
    environments = serializers.ListField(child=TextField())
    reason = TextField(max_length=MAX_REASON)
    requestedBy = TextField(source="requested_by")
    requestedAt = TimeField(source="requested_at")
    expiresAt = TimeField(source="expires_at")
    approvalId = Identifier(source="approval_id")
    decidedBy = TextField(source="decided_by", allow_blank=True)
    decidedAt = TimeField(source="decided_at", allow_null=True)
    deciders = serializers.ListField(child=TextField())
    endedAt = TimeField(source="ended_at", allow_null=True)
    endedBy = TextField(source="ended_by", allow_blank=True)
    endReason = TextField(source="end_reason", max_length=MAX_REASON, allow_blank=True)
    uses = Whole()
    version = Whole()


class OtherWaiverBody(StrictSerializer):
    """Another waiver of the same template and release that holds now in one of the environments."""

    waiverId = Identifier(source="id")
    environments = serializers.ListField(child=TextField())
    expiresAt = TimeField(source="expires_at")
    deciders = serializers.ListField(child=TextField())


class WaiverDetailBody(WaiverBody):
    """A waiver with the others that serve beside it: revoking one leaves them in force."""

    othersInForce = OtherWaiverBody(source="others", many=True)


class WaiverFilter(StrictSerializer):
    """Choose waivers. `state` is the recorded one: the end of a time is recorded within minutes."""

    state = WordField(choices=WaiverState.choices, required=False)
    templateId = Identifier(source="template_id", required=False)
    releaseId = Identifier(source="release_id", required=False)


class RevokeBody(StrictSerializer):
    """Say why it ends."""

    reason = TextField(max_length=MAX_REASON)


class WaiverListView(BaseView):
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


class WaiverDetail(BaseView):
    operation = {"GET": "ReadWaiver"}

    @extend_schema(summary="Read a waiver", responses=WaiverDetailBody)
    def get(self, request: Request, waiver_id: UUID) -> Response:
        """One waiver; what exactly was signed is the proposal of its approval."""
        with self.reading():
            return Response(_whole(self.ctx, waiver_id))


class WaiverRevoke(BaseView):
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
