"""The scopes of a person: each project, and each tenant as a whole, that they are a member of."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from factory.kernel.context import system
from factory.kernel.tenancy import reading
from projects.models import Project
from projects.selectors import UserMembership, memberships_of_user, tenant


@dataclass(frozen=True, slots=True)
class UserScope:
    """Somewhere that a person may work: a project, or the tenant as a whole (`project_id` None)."""

    tenant_id: str
    tenant_name: str
    project_id: UUID | None
    project_slug: str
    project_name: str
    roles: tuple[str, ...]


def scopes_of_user(subject: str) -> list[UserScope]:
    """Return the scopes in which a person may work, for a switcher. Call it outside any tenant's scope."""
    by_tenant: dict[str, list[UserMembership]] = {}
    for membership in memberships_of_user(subject):
        by_tenant.setdefault(membership.tenant_id, []).append(membership)
    return [scope for tenant_id, own in by_tenant.items() for scope in _scopes_in(tenant_id, own)]


def _scopes_in(tenant_id: str, own: Sequence[UserMembership]) -> list[UserScope]:
    wide = tuple(role for membership in own if membership.project_id is None for role in membership.roles)
    by_project = {
        membership.project_id: membership.roles for membership in own if membership.project_id is not None
    }
    with reading(system(tenant_id, "places")):
        home = tenant(tenant_id)
        rows = Project.objects.order_by("slug")
        if not wide:
            rows = rows.filter(pk__in=list(by_project))
        name = home.name if home else tenant_id
        scopes = [UserScope(tenant_id, name, None, "", "", wide)] if wide else []
        return scopes + [
            UserScope(tenant_id, name, row.id, row.slug, row.name, _union(wide, by_project.get(row.id, ())))
            for row in rows
        ]


def _union(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
