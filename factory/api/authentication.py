"""The bearer token of a REST request becomes its `context`."""

from dataclasses import dataclass

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from factory.api.correlation import correlation_of, sane_traceparent
from factory.api.refusing import counting_refusals
from factory.identity.clients import address_of
from factory.identity.principals import context_of
from factory.identity.tokens import Token, bearer, verifier
from factory.kernel.context import Context


@dataclass(frozen=True)
class Principal:
    """Stand for what DRF calls the user: only enough to say that there is one."""

    subject: str
    is_authenticated: bool = True
    is_active: bool = True

    @property
    def pk(self) -> str:
        return self.subject


class BearerAuthentication(BaseAuthentication):
    """`Authorization: Bearer <JWT>`, and nothing else: no session opens the API."""

    def authenticate(self, request: Request) -> tuple[Principal, Token] | None:
        encoded = bearer(request.headers.get("Authorization"))
        if encoded is None:
            return None
        with counting_refusals(address_of(request._request) or ""):
            token = verifier().verify(encoded)
            context: Context = context_of(
                token,
                channel="api",
                correlation_id=correlation_of(request),
                traceparent=sane_traceparent(request.headers.get("traceparent")),
            )
        request.context = context  # type: ignore[attr-defined]
        return Principal(token.subject), token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"
