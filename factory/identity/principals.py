"""From a verified token to a `Context`: the token says who, the directory says what they are here."""

from dataclasses import replace
from uuid import UUID

import structlog
from django.db import connection

from factory.identity.config import leeway
from factory.identity.directory import EffectiveGrants, directory
from factory.identity.tokens import Token, TokenRefused
from factory.kernel.context import Actor, ActorKind, Channel, Context, system
from factory.kernel.errors import Forbidden
from factory.kernel.tenancy import reading

NO_GRANTS = "This token has no standing in the tenant and project that it names."
AHEAD = (
    "The bearer token begins in the future: its issuer's clock is ahead of this platform's by more than "
    "{} seconds. Set that clock right, or wait."
)
TWO_MEMBERS = "This sign-in is that of two members here: an administrator removes one of them."

log = structlog.get_logger(__name__)


_JUDGED = """
SELECT clock_timestamp(), EXISTS (
    SELECT 1 FROM factory_revoked_token
    WHERE jti <> '' AND jti = %s AND scope IN ('', %s)
), EXISTS (
    SELECT 1 FROM factory_revoked_token
    WHERE jti = '' AND subject = %s AND pool = %s AND scope IN ('', %s) AND revoked_at >= %s
)
"""


def admit(token: Token) -> None:
    """Refuse a token that is not good at this moment of the database's clock.

    1. It is over when its `exp` and the leeway have passed.
    2. It is from the future when its `iat` (or `nbf`) is ahead of the database by more than the leeway.
    3. It was revoked by its own id; or its subject's credential was, at `iat` or later, or less than the
       leeway before. A token that is issued once the leeway has passed is good again.

    No clock of an application server is asked: our own issuer stamps by the database's, so its tokens and
    their revocations are told apart without error. Of another issuer the leeway bounds the error: where its
    clock is further behind, later tokens fall with the credential too; where it is further ahead, none of
    its tokens is good before its time has come, and one that was signed before a revocation and has not
    come yet has to be revoked by its id.
    """
    reason, words = _fault(token)
    if reason:
        log.info("token_refused", reason=reason)
        raise TokenRefused(reason, words=words) if words else TokenRefused(reason)


def _fault(token: Token) -> tuple[str, str]:
    margin = leeway()
    who, scope = (token.subject, token.pool), token.tenant_id
    with connection.cursor() as cursor:
        cursor.execute(_JUDGED, [token.jti, scope, *who, scope, token.issued_at - margin])
        at, named, credential = cursor.fetchone()
    if named or credential:
        return "revoked", ""
    if token.expires_at <= at - margin:
        return "expired", "The bearer token has expired: get another."
    if max(token.issued_at, token.not_before or token.issued_at) > at + margin:
        return "from the future", AHEAD.format(int(margin.total_seconds()))
    return "", ""


def effective_grants_of(subject: str, tenant_id: str, project_id: UUID | None) -> EffectiveGrants:
    """Return what the subject is there, or `Forbidden`, the same whatever it is that is missing."""
    standing = directory().grants_of(subject, tenant_id, project_id)
    if standing is None or not (standing.roles or standing.grants):
        raise Forbidden(NO_GRANTS)
    return standing


def context_of(token: Token, *, channel: Channel, correlation_id: UUID, traceparent: str = "") -> Context:
    """Return the context of a call with this token; refuse one that is not good now, or has no standing.

    A worker's context has no tenant: each assignment is worked in its own, which the lease gives.
    """
    if token.kind == "worker":
        admit(token)
        actor = Actor(subject=token.subject, kind="worker", scopes=token.scopes, pool=token.pool)
        return Context("", None, actor, correlation_id, traceparent=traceparent, channel=channel)
    with reading(system(token.tenant_id, "identity", correlation_id=correlation_id)):
        admit(token)
        sign_in = (token.issuer, token.subject)
        token = _as_member(token)
        standing = effective_grants_of(token.subject, token.tenant_id, token.project_id)
    actor = _actor(token, standing, sign_in)
    return Context(
        token.tenant_id, token.project_id, actor, correlation_id, traceparent=traceparent, channel=channel
    )


def _as_member(token: Token) -> Token:
    """Return the token with the subject of the member who it is: the person is the same by every sign-in.

    Raises `Forbidden` where it is nobody here, or two members at once, and `TokenRefused` where the member's
    own credential is revoked.
    """
    found = directory().subjects_of(token.identity)
    if len(found) > 1:
        raise Forbidden(TWO_MEMBERS)
    if not found:
        raise Forbidden(NO_GRANTS)
    (subject,) = found
    if subject == token.subject:
        return token
    named = replace(token, subject=subject)
    admit(named)  # the member's own credential may be revoked
    return named


def _actor(token: Token, standing: EffectiveGrants, sign_in: tuple[str, str]) -> Actor:
    # Roles asserted by a token only narrow: an issuer cannot lift anybody above their memberships.
    roles = standing.roles if token.roles is None else standing.roles & token.roles
    kind: ActorKind = "service" if token.kind == "service" else standing.kind
    return Actor(
        subject=token.subject,
        kind=kind,
        person=standing.person,
        roles=roles,
        grants=standing.grants,
        scopes=token.scopes,
        address=token.address,
        sign_in=sign_in,
    )
