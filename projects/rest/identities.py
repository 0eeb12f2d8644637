"""Sign-ins over HTTP: whose they are, joining one to a member, and ending that."""

from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from factory.api.idempotency import ONCE
from factory.api.pages import page
from factory.api.serializers import Identifier, StrictSerializer, TextField, TimeField, WordField
from factory.api.views import BaseView
from projects.commands import end_identity, join_identity
from projects.models import Identity
from projects.rest.serializers import ReasonBody
from projects.selectors import identities_in
from projects.states import IdentityState


class IdentityBody(StrictSerializer):
    """A sign-in that an administrator has made a member's: who comes by it is `person`."""

    identityId = Identifier(source="id")
    issuer = TextField()
    subject = TextField()
    person = TextField()
    reason = TextField(max_length=1000)
    state = WordField(choices=IdentityState.choices)
    joinedAt = TimeField(source="joined_at")
    joinedBy = TextField(source="joined_by")
    endedAt = TimeField(source="ended_at", allow_null=True)
    endedBy = TextField(source="ended_by", allow_blank=True)


class NewIdentityBody(StrictSerializer):
    """The `iss` and `sub` of somebody's tokens, and the member who they are."""

    issuer = TextField(max_length=255)
    subject = TextField(max_length=255)
    person = TextField(max_length=255)
    reason = TextField(max_length=1000)


class Identities(BaseView):
    operation = {"GET": "ListIdentities", "POST": "JoinIdentity"}

    @extend_schema(summary="List joined sign-ins", responses=IdentityBody(many=True))
    def get(self, request: Request) -> Response:
        """Sign-ins that were made members', newest first; those that ended too. A project's token sees those
        of who is a member there, or was."""
        with self.reading():
            rows: QuerySet[Identity] = identities_in(self.ctx.project_id)
            return Response(
                page(rows, request, key=("joined_at", "id"), render=lambda row: IdentityBody(row).data)
            )

    @extend_schema(
        summary="Join a sign-in to a member",
        parameters=[ONCE],
        request=NewIdentityBody,
        responses={201: IdentityBody},
    )
    def post(self, request: Request) -> Response:
        """Make an issuer's subject a member's sign-in: whoever comes by it is that member from now on.

        It takes an administrator of the whole tenant; for a PlatformAdmin's sign-in, a PlatformAdmin.
        """
        body = NewIdentityBody.parse(request.data)
        identity_id, headers = self.do(request, join_identity, **body)
        with self.reading():
            row = Identity.objects.get(pk=identity_id)
        return Response(IdentityBody(row).data, 201, headers=headers)


class IdentityEnd(BaseView):
    operation = {"POST": "EndIdentity"}

    @extend_schema(summary="End a joined sign-in", request=ReasonBody, responses=IdentityBody)
    def post(self, request: Request, identity_id: UUID) -> Response:
        """Let a sign-in be nobody's from now on. What was done by it stays the member's."""
        end_identity(self.ctx, identity_id=identity_id, reason=ReasonBody.parse(request.data)["reason"])
        with self.reading():
            return Response(IdentityBody(Identity.objects.get(pk=identity_id)).data)
