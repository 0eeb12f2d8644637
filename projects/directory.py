"""Who somebody is, answered from memberships at this moment: nothing is remembered in a token."""

from uuid import UUID

from factory.identity.directory import Place, Standing
from projects.models import Membership
from projects.selectors import has_project, memberships_of, places_of_user, service_account
from projects.states import SubjectKind


class Memberships:
    """The house's directory. It only queries; the caller reads in the tenant's scope."""

    def grants_of(self, subject: str, tenant_id: str, project_id: UUID | None) -> Standing | None:
        """The roles and grants of a subject in a project, those of the whole tenant included."""
        own = memberships_of(subject, project_id)
        if not own or not _is_here(project_id, own):
            return None
        person = _answerable(own[0])
        if person is None:
            return None
        return Standing(
            person=person,
            roles=frozenset(role for one in own for role in one.roles),
            grants=frozenset(grant for one in own for grant in one.grants),
        )

    def places_of(self, subject: str) -> list[Place]:
        """The projects and tenants that a person is a member of, projects first."""
        own = [
            Place(p.tenant_id, p.tenant_name, p.project_id, p.project_name, p.project_slug)
            for p in places_of_user(subject)
        ]
        return sorted(own, key=lambda p: (p.tenant_name, p.project_id is None, p.project_name))


def _is_here(project_id: UUID | None, own: list[Membership]) -> bool:
    """A membership of the project itself proves that there is one; a tenant-wide one does not."""
    named = project_id is None or any(one.project_id == project_id for one in own)
    return named or has_project(project_id)


def _answerable(membership: Membership) -> str | None:
    """The person behind a membership; None for a machine that is revoked."""
    if membership.kind == SubjectKind.PERSON:
        return membership.person
    account = service_account(membership.subject)
    return None if account is None else account.owner
