"""Sign-ins that an administrator makes a member's: one person, however they come in."""

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from factory.identity.config import identity_settings
from factory.kernel.addresses import OPAQUE, addresses_in
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InvalidInput, NotFound
from factory.kernel.locking import lock, lock_many, one_at_a_time
from factory.kernel.reasons import reasoned
from factory.kernel.recording import audit, record
from projects.commands.inputs import RESERVED_PREFIXES
from projects.commands.reach import lock_tenant, require_may_give
from projects.errors import IdentityEnded, IdentityTaken, PersonNotMember
from projects.models import Identity, Membership
from projects.selectors import people_with, sign_ins_of, spelled
from projects.states import IdentityState, MembershipState, SubjectKind


@command("JoinIdentity")
def join_identity(ctx: Context, *, issuer: str, subject: str, person: str, reason: str) -> str:
    """Make an issuer's `sub` a member's sign-in: who comes by it is that member, everywhere in the tenant.

    Whoever holds it acts as the member, so guards: an admin of the whole tenant, a PlatformAdmin for a
    PlatformAdmin's; an issuer that is trusted for the tenant; a member who is a person; a sign-in that is
    nobody else's, nor the caller's own; a reason. Emits: nothing. Errors: `InvalidInput`, `RoleOutOfReach`,
    `PersonNotMember`, `IdentityTaken`. Answers with the id.
    """
    reason = reasoned(reason, "Joining a sign-in to a member needs a reason.")
    _check(ctx, issuer, subject)
    lock_tenant(ctx)
    one_at_a_time("projects.people", ctx.tenant_id)
    person = spelled(person)
    _require_reach(ctx, _lock_memberships(person))
    _refuse_own(ctx, issuer, subject, person)
    _refuse_others(issuer, subject, person)
    row = Identity(
        tenant_id=ctx.tenant_id,
        issuer=issuer,
        subject=subject,
        person=person,
        reason=reason,
        joined_at=now(),
        joined_by=ctx.actor.subject,
    )
    detail = {"issuer": issuer, "subject": subject, "person": person}
    record(ctx, row, "IdentityJoined", detail=detail)
    audit(ctx, "JoinIdentity", subject=f"identity:{row.id}", reason=reason, detail=detail, stream=row.id)
    return str(row.id)


@command("EndIdentity")
def end_identity(ctx: Context, *, identity_id: UUID, reason: str) -> None:
    """Let a sign-in be nobody's again, from this commit on. What was done by it stays the member's.

    Guards: as for joining. Emits: nothing. Errors: `InvalidInput`, `NotFound`, `RoleOutOfReach`,
    `IdentityEnded`.
    """
    reason = reasoned(reason, "Ending a sign-in needs a reason.")
    lock_tenant(ctx)
    row = lock(Identity, identity_id, missing=NotFound("There is no such sign-in here."))
    _require_reach(ctx, list(_memberships_of(row.person)))
    if row.state != IdentityState.ACTIVE:
        raise IdentityEnded(f"This sign-in was ended on {row.ended_at:%d %b %Y %H:%M:%S} UTC.")
    row.end(at=now(), by=ctx.actor.subject)
    record(ctx, row, "IdentityEnded")
    audit(ctx, "EndIdentity", subject=f"identity:{row.id}", reason=reason, stream=row.id)


def end_sign_ins(ctx: Context, person: str, at: datetime) -> None:
    """End the sign-ins of who is no member any more: a later member of that name is given their own."""
    for row in lock_many(sign_ins_of(person).filter(state=IdentityState.ACTIVE)):
        row.end(at=at, by=ctx.actor.subject)
        record(ctx, row, "MemberRemoved")


def _check(ctx: Context, issuer: str, subject: str) -> None:
    """Refuse an issuer that nobody trusts, which is mostly mistyped, and what is no `sub` of a person."""
    faults = []
    trusted = [config.issuer for config in identity_settings().speaking_for(ctx.tenant_id)]
    if issuer not in trusted:
        known = f"those are {', '.join(trusted)}" if trusted else "there is none (FACTORY_TRUSTED_ISSUERS)"
        faults.append(FieldError("/issuer", f"An issuer that is trusted for this tenant; {known}."))
    if not OPAQUE.fullmatch(subject) or subject.startswith(RESERVED_PREFIXES):
        rule = "The `sub` of the issuer's tokens: 1 to 255 visible ASCII characters, and no machine's name."
        faults.append(FieldError("/subject", rule))
    if faults:
        raise InvalidInput("The sign-in is not valid.", errors=faults)


def _memberships_of(person: str) -> QuerySet[Membership]:
    rows: QuerySet[Membership] = Membership.objects.filter(subject=person, kind=SubjectKind.PERSON)
    return rows.filter(state=MembershipState.ACTIVE)


def _lock_memberships(person: str) -> list[Membership]:
    """Lock the person's memberships until the commit. Raises `PersonNotMember` without any."""
    own = lock_many(_memberships_of(person))
    if not own:
        fault = FieldError(
            "/person", "Name a member who is a person, by the name that the member's page shows."
        )
        raise PersonNotMember(f"{person} is no member here.", errors=[fault])
    return own


def _require_reach(ctx: Context, memberships: list[Membership]) -> None:
    """Refuse who may not decide about each membership of the person: all of them open by the sign-in."""
    require_may_give(ctx, None, tuple(role for membership in memberships for role in membership.roles))


def _refuse_own(ctx: Context, issuer: str, subject: str, person: str) -> None:
    """Refuse to join the sign-in that the caller came by to somebody else: they would act as that member."""
    if ctx.actor.sign_in == (issuer, subject) and person != spelled(ctx.actor.person):
        fault = [FieldError("/subject", "It is the sign-in that you came by.")]
        raise IdentityTaken("Your own sign-in is yours: it cannot be made another member's.", errors=fault)


def _refuse_others(issuer: str, subject: str, person: str) -> None:
    """Refuse a sign-in that is somebody's: another's, or a member by itself, who would be two people then."""
    fault = [FieldError("/subject", "It is somebody's already.")]
    joined = Identity.objects.filter(issuer=issuer, subject=subject, state=IdentityState.ACTIVE).first()
    if joined is not None:
        raise IdentityTaken(
            f"This sign-in is {joined.person}'s already; end that first, with a reason.", errors=fault
        )
    known = Membership.objects.filter(subject=subject, state=MembershipState.ACTIVE)
    other = (known | people_with(addresses_in(subject))).exclude(subject=person).first()
    if other is not None:
        problem = (
            f"{other.subject} is a member by that name: remove that membership first, if it is one person."
        )
        raise IdentityTaken(problem, errors=fault)
