"""How a subject becomes a member: one step that onboarding, members and service accounts share."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from factory.addresses import addresses_in, normal_address
from factory.context import Context
from factory.errors import FieldError, InvalidInput
from factory.locking import lock, one_at_a_time
from factory.recording import record
from projects.errors import AddressTaken, IdentityTaken, MemberExists, OwnerNotMember
from projects.inputs import RESERVED_PREFIXES, NewMember, ordered, refuse_deciding_machine
from projects.models import Identity, Membership, ServiceAccount
from projects.selectors import active_memberships, people_with, reaches, service_account, spelled
from projects.states import (
    GRANTS,
    ROLES,
    IdentityState,
    MembershipState,
    ServiceAccountState,
    SubjectKind,
)

NO_MACHINE_HERE = (
    "No machine of that name can be a member here: register it here, or ask an administrator of the whole "
    "tenant."
)


def join(ctx: Context, project_id: UUID | None, new: NewMember, *, at: datetime, pointer: str) -> Membership:
    """Record the membership. The caller holds the lock of the scope, and has checked the input."""
    one_at_a_time("projects.people", ctx.tenant_id)
    new = _spelled(new)
    _refuse_second(project_id, new.subject, pointer)
    kind, person = _identity(ctx, project_id, new.subject, pointer)
    if kind == SubjectKind.SERVICE:
        refuse_deciding_machine(new.roles, pointer)
    else:
        _refuse_second_person(ctx, new, pointer)
    member = Membership(
        tenant_id=ctx.tenant_id,
        project_id=project_id,
        subject=new.subject,
        person=person,
        kind=kind,
        email=new.email,
        display_name=new.display_name.strip(),
        roles=ordered(new.roles, ROLES),
        grants=ordered(new.grants, GRANTS),
        created_at=at,
        updated_at=at,
    )
    record(ctx, member, "MemberAdded", detail={"roles": member.roles, "grants": member.grants})
    return member


def _spelled(new: NewMember) -> NewMember:
    """Return the member in the spelling of the house: by it people are compared."""
    email = normal_address(new.email) if new.email else ""
    return replace(new, subject=spelled(new.subject), email=email)


def _refuse_second_person(ctx: Context, new: NewMember, pointer: str) -> None:
    """Refuse who is a member by another name: what the one asks for, the other could decide."""
    for field, text in (("subject", new.subject), ("email", new.email)):
        other = people_with(addresses_in(text)).exclude(subject=new.subject).first()
        if other is not None:
            told = f"{_named(ctx, other)} has the address {text}: one person is one member, under one name."
            raise AddressTaken(told, errors=[FieldError(f"{pointer}/{field}", "It is another member's.")])
    joined = Identity.objects.filter(subject=new.subject, state=IdentityState.ACTIVE).first()
    if joined is not None:
        told = f"{new.subject} is a sign-in of a member: add the member, or end that first."
        raise IdentityTaken(told, errors=[FieldError(f"{pointer}/subject", "It is a sign-in of a member.")])


def _named(ctx: Context, other: Membership) -> str:
    """Return the name of another member, for who administers a place in which they are one."""
    seen = ctx.project_id is None or other.project_id in (None, ctx.project_id)
    return str(other.subject) if seen else "Somebody in another project of this tenant"


def _refuse_second(project_id: UUID | None, subject: str, pointer: str) -> None:
    """A second membership of one scope, or another spelling: it could decide on what the first asked for."""
    rows = Membership.objects.filter(state=MembershipState.ACTIVE)
    reached = rows if project_id is None else active_memberships(project_id)
    known = list(reached.filter(subject__iexact=subject).values_list("project_id", "subject"))
    if (project_id, subject) in known:
        told = "A member here already: change the membership that there is."
        raise MemberExists(
            f"{subject} is a member here already.", errors=[FieldError(f"{pointer}/subject", told)]
        )
    other = next((one for _, one in known if one != subject), None)
    if other is not None:
        told = f"{other} is a member here. Write it in the same letters, if it is the same person."
        raise InvalidInput(
            f"{subject} is another spelling of a member.", errors=[FieldError(f"{pointer}/subject", told)]
        )


def _identity(ctx: Context, project_id: UUID | None, subject: str, pointer: str) -> tuple[SubjectKind, str]:
    """What kind of subject it is, and the person who answers for it.

    Who administers one project learns nothing of the machines of others, nor whose they are.
    """
    if not subject.startswith(RESERVED_PREFIXES):
        return SubjectKind.PERSON, subject
    account = _lock_account(subject)
    answered_for = account is not None and reaches(account.owner, project_id)
    if ctx.project_id is not None and not answered_for:
        raise InvalidInput(
            f"{subject} is nobody who can be a member here.",
            errors=[FieldError(f"{pointer}/subject", NO_MACHINE_HERE)],
        )
    if account is None:
        raise InvalidInput(
            f"{subject} is nobody who can be a member.",
            errors=[FieldError(f"{pointer}/subject", "There is no such service account; register it first.")],
        )
    if not answered_for:
        raise OwnerNotMember(
            f"{account.owner}, who answers for {subject}, is no member here.",
            errors=[FieldError(f"{pointer}/subject", "Make its owner a member first.")],
        )
    return SubjectKind.SERVICE, account.owner


def _lock_account(subject: str) -> ServiceAccount | None:
    """The active account, held so that nobody revokes it meanwhile."""
    seen = service_account(subject)
    if seen is None:
        return None
    account = lock(ServiceAccount, seen.pk, shared=True)
    return account if account.state == ServiceAccountState.ACTIVE else None
