"""Credentials that are refused from now on although their signatures are good."""

from datetime import datetime

from factory.identity.formats import JTI, MOST_JTI, SUBJECT
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError
from factory.kernel.models import RevokedToken
from factory.kernel.reasons import reason_faults
from factory.kernel.recording import audit
from projects.commands.inputs import refuse
from projects.commands.reach import require_tenant_wide_admin


@command("RevokeToken")
def revoke_token(ctx: Context, *, jti: str, reason: str, expires_at: datetime | None = None) -> str:
    """Refuse one token, by its `jti`, from this commit on. Twice is once: the first reason stands.

    Only tokens of the caller's tenant are meant: another's, under the same name, is not touched.
    Guards: an admin of the tenant or project, a reason. Emits: nothing. Errors: `InvalidInput`.
    """
    faults = [] if JTI.fullmatch(jti) else [FieldError("/jti", f"1 to {MOST_JTI} visible characters.")]
    refuse([*faults, *reason_faults(reason)], "The revocation is not valid.")
    RevokedToken.objects.bulk_create(
        [_row(ctx, reason, jti=jti, expires_at=expires_at)],
        ignore_conflicts=True,
    )
    audit(ctx, "RevokeToken", subject=f"token:{jti}", reason=reason.strip())
    return jti


@command("RevokeCredential")
def revoke_credential(ctx: Context, *, subject: str, reason: str) -> str:
    """Refuse every token that a subject was given for this tenant until now.

    One that is issued once the leeway of tokens has passed is good again (`factory.identity.principals`).
    For a key or a device that was lost. It shuts the subject out of every project of the tenant, so guards:
    an admin of the whole tenant, a reason. Emits: nothing. Errors: `InvalidInput`, `RoleOutOfReach`.
    """
    require_tenant_wide_admin(ctx)
    faults = [] if SUBJECT.fullmatch(subject) else [FieldError("/subject", "The `sub` of the tokens.")]
    refuse([*faults, *reason_faults(reason)], "The revocation is not valid.")
    RevokedToken.objects.bulk_create([_row(ctx, reason, subject=subject)])
    audit(ctx, "RevokeCredential", subject=f"subject:{subject}", reason=reason.strip())
    return subject


def _row(ctx: Context, reason: str, **which: object) -> RevokedToken:
    return RevokedToken(
        scope=ctx.tenant_id,
        reason=reason.strip(),
        revoked_by=ctx.actor.subject,
        revoked_at=now(),
        **which,
    )
