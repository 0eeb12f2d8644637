"""Who somebody is, answered from memberships at this moment: nothing is remembered in a token."""

from datetime import datetime
from typing import Any
from uuid import UUID

from factory.identity.directory import EffectiveGrants, HeldDelegation, Scope, SignIn
from projects.models import Membership
from projects.selectors import has_project, members_of_sign_in, service_account, standing_of
from projects.selectors.scopes import places_of_user
from projects.states import SubjectKind


class Memberships:
    """The house's directory. It only queries; the caller reads in the tenant's scope."""

    def subjects_of(self, sign_in: SignIn) -> frozenset[str]:
        """Return the subjects of the members whom a sign-in may be."""
        return members_of_sign_in(sign_in)

    def grants_of(self, subject: str, tenant_id: str, project_id: UUID | None) -> EffectiveGrants | None:
        """The roles and grants of a subject in a project, those of the whole tenant included."""
        own = standing_of(subject, project_id)
        if not own or not _is_here(project_id, own):
            return None
        person = _answerable(own[0])
        if person is None:
            return None
        roles = frozenset(role for one in own for role in one.roles_that_count)
        lent = tuple(loan for loan in _loans(own[0]) if loan.role not in roles)
        return EffectiveGrants(
            person=person,
            roles=roles | {loan.role for loan in lent},
            grants=frozenset(grant for one in own for grant in one.grants),
            lent=lent,
            machine=own[0].kind == SubjectKind.SERVICE,
            withheld=frozenset(role for one in own for role in one.roles) - roles,
        )

    def places_of(self, subject: str) -> list[Scope]:
        """The projects and tenants that a person is a member of, projects first."""
        own = [
            Scope(p.tenant_id, p.tenant_name, p.project_id, p.project_name, p.project_slug)
            for p in places_of_user(subject)
        ]
        return sorted(own, key=lambda p: (p.tenant_name, p.project_id is None, p.project_name))


def _is_here(project_id: UUID | None, own: list[Membership]) -> bool:
    """A membership of the project itself proves that there is one; a tenant-wide one does not."""
    named = project_id is None or any(one.project_id == project_id for one in own)
    return named or has_project(project_id)


def _loans(member: Any) -> list[HeldDelegation]:
    """What is lent to the subject: it stands beside each of its memberships."""
    return [
        HeldDelegation(
            UUID(told["id"]), told["role"], told["delegator"], datetime.fromisoformat(told["expires_at"])
        )
        for told in member.lent
    ]


def _answerable(membership: Membership) -> str | None:
    """The person behind a membership; None for a machine that is revoked."""
    if membership.kind == SubjectKind.PERSON:
        return membership.person
    account = service_account(membership.subject)
    return None if account is None else account.owner
