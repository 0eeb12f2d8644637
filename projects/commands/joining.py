"""How a subject becomes a member: one step that onboarding, members and service accounts share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from factory.kernel.addresses import addresses_in, is_address, normal_address
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InvalidInput
from factory.kernel.locking import lock, one_at_a_time
from factory.kernel.recording import record
from projects.commands.inputs import RESERVED_PREFIXES, NewMember, ordered, refuse_deciding_machine
from projects.errors import AddressTaken, IdentityTaken, MemberExists, OwnerNotMember
from projects.models import Identity, Membership, ServiceAccount
from projects.selectors import reaches, service_account
from projects.selectors.people import called, one_name
from projects.states import GRANTS, ROLES, IdentityState, ServiceAccountState, SubjectKind

NO_MACHINE_HERE = (
    "No machine of that name can be a member here: register it here, or ask an administrator of the whole "
    "tenant."
)


@dataclass(frozen=True, slots=True)
class KnownMembers:
    """Hold who is known by the names of those who are to join; nobody else joins until the commit."""

    known: list[Membership]
    sign_ins: frozenset[str]

    def spelled(self, new: NewMember) -> NewMember:
        """Return a member in the normal spelling; of an address, in that of the member there is."""
        subject = next(iter(addresses_in(new.subject)), new.subject.strip())
        there = (member.subject for member in self._called(subject)) if is_address(subject) else iter(())
        email = normal_address(new.email) if new.email else ""
        return replace(new, subject=next(there, subject), email=email)

    def refuse_second(self, project_id: UUID | None, subject: str, pointer: str) -> None:
        """Refuse a second membership of one scope, or another spelling: it could decide on what the first
        asked for."""
        reached = [
            member
            for member in self._called(subject)
            if project_id is None or member.project_id in (None, project_id)
        ]
        if any((member.project_id, member.subject) == (project_id, subject) for member in reached):
            problem = "A member here already: change the membership that there is."
            raise MemberExists(
                f"{subject} is a member here already.", errors=[FieldError(f"{pointer}/subject", problem)]
            )
        other = next((member for member in reached if member.subject != subject), None)
        if other is not None:
            problem = (
                f"{other.subject} is a member here. Write it in the same letters, if it is the same person."
            )
            raise InvalidInput(
                f"{subject} is another spelling of a member.",
                errors=[FieldError(f"{pointer}/subject", problem)],
            )

    def refuse_second_person(self, ctx: Context, new: NewMember, pointer: str) -> None:
        """Refuse who is a member by another name: what the one asks for, the other could decide."""
        for field, text in (("subject", new.subject), ("email", new.email)):
            wanted = addresses_in(text)
            for other in self.known:
                theirs = addresses_in(other.subject, other.email)
                if other.kind == SubjectKind.PERSON and other.subject != new.subject and wanted & theirs:
                    problem = f"{_named(ctx, other)} has the address {text}: one person is one member."
                    fault = FieldError(f"{pointer}/{field}", "It is another member's.")
                    raise AddressTaken(problem, errors=[fault])
        if new.subject in self.sign_ins:
            problem = f"{new.subject} is a sign-in of a member: add the member, or end that first."
            raise IdentityTaken(
                problem, errors=[FieldError(f"{pointer}/subject", "It is a sign-in of a member.")]
            )

    def _called(self, subject: str) -> list[Membership]:
        return [member for member in self.known if one_name(member.subject, subject)]


def known_members(ctx: Context, coming: Sequence[NewMember]) -> KnownMembers:
    """Return who is known by the names of these; the caller holds the lock of the scope."""
    one_at_a_time("projects.people", ctx.tenant_id)
    names = {new.subject.strip() for new in coming} | addresses_in(*(new.subject for new in coming))
    addresses = addresses_in(*(text for new in coming for text in (new.subject, new.email)))
    joined = Identity.objects.filter(subject__in=names, state=IdentityState.ACTIVE)
    known = list(called(names, addresses).order_by("id"))
    return KnownMembers(known, frozenset(joined.values_list("subject", flat=True)))


def join(
    ctx: Context, project_id: UUID | None, new: NewMember, known: KnownMembers, *, at: datetime, pointer: str
) -> Membership:
    """Record the membership. The caller holds the lock of the scope, and has checked the input."""
    new = known.spelled(new)
    known.refuse_second(project_id, new.subject, pointer)
    kind, person = _identity(ctx, project_id, new.subject, pointer)
    if kind == SubjectKind.SERVICE:
        refuse_deciding_machine(new.roles, pointer)
    else:
        known.refuse_second_person(ctx, new, pointer)
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
    known.known.append(member)
    return member


def _named(ctx: Context, other: Membership) -> str:
    """Return the name of another member, for who administers a place in which they are one."""
    seen = ctx.project_id is None or other.project_id in (None, ctx.project_id)
    return str(other.subject) if seen else "Somebody in another project of this tenant"


def _identity(ctx: Context, project_id: UUID | None, subject: str, pointer: str) -> tuple[SubjectKind, str]:
    """Return what kind of subject it is, and the person who answers for it.

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
    """Return the active account, held so that nobody revokes it meanwhile."""
    seen = service_account(subject)
    if seen is None:
        return None
    account = lock(ServiceAccount, seen.pk, shared=True)
    return account if account.state == ServiceAccountState.ACTIVE else None
