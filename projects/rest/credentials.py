"""Credentials over HTTP: what was revoked, and revoking."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from factory.api.pages import page
from factory.api.serializers import Identifier, StrictSerializer, TextField, TimeField, WordField
from factory.api.views import BaseView
from factory.identity.formats import MOST_JTI, MOST_SUBJECT
from factory.kernel.errors import FieldError, InvalidInput, NotFound
from factory.kernel.models import RevokedToken
from projects.commands import revoke_credential, revoke_service_account, revoke_token
from projects.models import ServiceAccount
from projects.rest.serializers import ReasonBody
from projects.selectors import service_accounts
from projects.states import ServiceAccountState


class RevocationBody(StrictSerializer):
    """One token by its `jti`, or every token of a `subject` from before."""

    revocationId = Identifier(source="id")
    jti = TextField(allow_blank=True)
    subject = TextField(allow_blank=True)
    reason = TextField(max_length=1000)
    revokedBy = TextField(source="revoked_by")
    revokedAt = TimeField(source="revoked_at")
    expiresAt = TimeField(source="expires_at", allow_null=True)


class NewRevocationBody(StrictSerializer):
    """Either the `jti` of one token, or the `subject` whose tokens until now are meant."""

    jti = TextField(max_length=MOST_JTI, required=False)
    subject = TextField(max_length=MOST_SUBJECT, required=False)
    reason = TextField(max_length=1000)


class Revocations(BaseView):
    operation = {"GET": "ListRevocations", "POST": "RevokeToken"}

    @extend_schema(summary="List revoked tokens", responses=RevocationBody(many=True))
    def get(self, request: Request) -> Response:
        """List the tokens that were revoked in the tenant, newest first."""
        with self.reading():
            rows: QuerySet[Any] = RevokedToken.objects.filter(scope=self.ctx.tenant_id)
            render = lambda row: RevocationBody(row).data  # noqa: E731
            return Response(page(rows, request, key=("revoked_at", "id"), render=render))

    @extend_schema(summary="Revoke a token", request=NewRevocationBody, responses={201: NewRevocationBody})
    def post(self, request: Request) -> Response:
        """Refuse a token, or all tokens that a subject was given until now; at once, and for good.

        The second shuts the subject out of every project: it takes an administrator of the whole tenant.
        """
        body = NewRevocationBody.parse(request.data)
        if ("jti" in body) == ("subject" in body):
            fault = FieldError("/jti", "Name the token by jti, or the subject.")
            raise InvalidInput("The revocation names one of the two.", errors=[fault])
        if "jti" in body:
            revoke_token(self.ctx, jti=body["jti"], reason=body["reason"])
        else:
            revoke_credential(self.ctx, subject=body["subject"], reason=body["reason"])
        return Response(body, 201)


class ServiceAccountBody(StrictSerializer):
    """A machine's identity, and the person who answers for it."""

    accountId = Identifier(source="id")
    slug = TextField()
    name = TextField()
    subject = TextField()
    owner = TextField()
    state = WordField(choices=ServiceAccountState.choices)
    createdAt = TimeField(source="created_at")
    revokedAt = TimeField(source="revoked_at", allow_null=True)


class ServiceAccounts(BaseView):
    operation = {"GET": "ListServiceAccounts"}

    @extend_schema(summary="List service accounts", responses=ServiceAccountBody(many=True))
    def get(self, request: Request) -> Response:
        """Return the service accounts of the project, or, without one, of the tenant; newest first."""
        with self.reading():
            rows = service_accounts(self.ctx.project_id)
            return Response(page(rows, request, render=lambda row: ServiceAccountBody(row).data))


class ServiceAccountRevoke(BaseView):
    operation = {"POST": "RevokeServiceAccount"}

    @extend_schema(summary="Revoke a service account", request=ReasonBody, responses=ServiceAccountBody)
    def post(self, request: Request, account_id: UUID) -> Response:
        """It has no standing anywhere from now on: every token of it is refused at once."""
        reason = ReasonBody.parse(request.data)["reason"]
        revoke_service_account(self.ctx, account_id=account_id, reason=reason)
        with self.reading():
            row = ServiceAccount.objects.filter(pk=account_id).first()
        if row is None:
            raise NotFound("There is no such service account here.")
        return Response(ServiceAccountBody(row).data)
