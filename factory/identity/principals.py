"""From a verified token to a `Context`: the token says who, the directory says what they are here."""

from uuid import UUID

from django.db.models import Q

from factory.context import Actor, ActorKind, Channel, Context, system
from factory.errors import Forbidden
from factory.identity.directory import Standing, directory
from factory.identity.tokens import Refused, Token
from factory.models.revoked_token import RevokedToken
from factory.tenancy import reading

NO_STANDING = "This token has no standing in the tenant and project that it names."


def is_revoked(token: Token) -> bool:
    """Whether the token itself was revoked, or its subject's credential after it was issued.

    A token of the very second of the revocation counts as issued before: tokens tell whole seconds.
    """
    credential = Q(jti="", subject=token.subject, pool=token.pool, revoked_at__gte=token.issued_at)
    named = Q(jti=token.jti) & ~Q(jti="")
    rows = RevokedToken.objects.filter(named | credential, scope__in={"", token.tenant_id})
    return bool(rows.exists())


def standing_of(subject: str, tenant_id: str, project_id: UUID | None) -> Standing:
    """What the subject is there, or `Forbidden`, the same whatever it is that is missing."""
    standing = directory().grants_of(subject, tenant_id, project_id)
    if standing is None or not (standing.roles or standing.grants):
        raise Forbidden(NO_STANDING)
    return standing


def context_of(token: Token, *, channel: Channel, correlation_id: UUID, traceparent: str = "") -> Context:
    """The context of a call with this token; refuses a revoked token and a subject without standing.

    A worker's context has no tenant: each assignment is worked in its own, which the lease gives.
    """
    if token.kind == "worker":
        if is_revoked(token):
            raise Refused("revoked")
        actor = Actor(subject=token.subject, kind="worker", scopes=token.scopes, pool=token.pool)
        return Context("", None, actor, correlation_id, traceparent=traceparent, channel=channel)
    with reading(system(token.tenant_id, "identity", correlation_id=correlation_id)):
        if is_revoked(token):
            raise Refused("revoked")
        standing = standing_of(token.subject, token.tenant_id, token.project_id)
    actor = _actor(token, standing)
    return Context(
        token.tenant_id, token.project_id, actor, correlation_id, traceparent=traceparent, channel=channel
    )


def _actor(token: Token, standing: Standing) -> Actor:
    # Roles asserted by a token only narrow: an issuer cannot lift anybody above their memberships.
    roles = standing.roles if token.roles is None else standing.roles & token.roles
    kind: ActorKind = "service" if token.kind == "service" else "person"
    return Actor(
        subject=token.subject,
        kind=kind,
        person=standing.person,
        roles=roles,
        grants=standing.grants,
        scopes=token.scopes,
    )
