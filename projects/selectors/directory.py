"""The directory: who somebody is, from memberships at this moment; a token remembers nothing."""

from datetime import datetime
from typing import Any
from uuid import UUID

from factory.identity.directory import EffectiveGrants, HeldDelegation, Scope, SignIn
from projects.models import Membership
from projects.selectors import effective_grants, has_project, members_of_sign_in, service_account
from projects.selectors.scopes import scopes_of_user
from projects.states import SubjectKind


class Memberships:
    """Answer who somebody is. It only queries; the caller reads in the tenant's scope."""

    def subjects_of(self, sign_in: SignIn) -> frozenset[str]:
        """Return the subjects of the members whom a sign-in may be."""
        return members_of_sign_in(sign_in)

    def grants_of(self, subject: str, tenant_id: str, project_id: UUID | None) -> EffectiveGrants | None:
        """Return the roles and grants of a subject in a project, those of the whole tenant included."""
        own = effective_grants(subject, project_id)
        if not own or not _is_here(project_id, own):
            return None
        person = _answerable(own[0])
        if person is None:
            return None
        roles = frozenset(role for membership in own for role in membership.roles_that_count)
        delegations = tuple(delegation for delegation in _delegations(own[0]) if delegation.role not in roles)
        return EffectiveGrants(
            person=person,
            roles=roles | {delegation.role for delegation in delegations},
            grants=frozenset(grant for membership in own for grant in membership.grants),
            delegations=delegations,
            machine=own[0].kind == SubjectKind.SERVICE,
            withheld=frozenset(role for membership in own for role in membership.roles) - roles,
        )

    def places_of(self, subject: str) -> list[Scope]:
        """Return the projects and tenants that a person is a member of, projects first."""
        own = [
            Scope(p.tenant_id, p.tenant_name, p.project_id, p.project_name, p.project_slug)
            for p in scopes_of_user(subject)
        ]
        return sorted(own, key=lambda p: (p.tenant_name, p.project_id is None, p.project_name))


def _is_here(project_id: UUID | None, own: list[Membership]) -> bool:
    """Return whether the project exists: a membership of it proves that, a tenant-wide one does not."""
    named = project_id is None or any(membership.project_id == project_id for membership in own)
    return named or has_project(project_id)


def _delegations(member: Any) -> list[HeldDelegation]:
    """Return the delegations to a subject, which stand beside each of its memberships."""
    return [
        HeldDelegation(
            UUID(fields["id"]),
            fields["role"],
            fields["delegator"],
            datetime.fromisoformat(fields["expires_at"]),
        )
        for fields in member.lent
    ]


def _answerable(membership: Membership) -> str | None:
    """Return the person behind a membership; None for a machine that is revoked."""
    if membership.kind == SubjectKind.PERSON:
        return membership.person
    account = service_account(membership.subject)
    return None if account is None else account.owner
