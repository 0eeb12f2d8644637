"""Where a person may work: each project, and each tenant as a whole, that they are a member of."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from factory.kernel.context import system
from factory.kernel.tenancy import reading
from projects.models import Project
from projects.selectors import Belonging, memberships_of_user, tenant


@dataclass(frozen=True, slots=True)
class UserScope:
    """Somewhere that a person may work: a project, or the tenant as a whole (`project_id` None)."""

    tenant_id: str
    tenant_name: str
    project_id: UUID | None
    project_slug: str
    project_name: str
    roles: tuple[str, ...]


def places_of_user(subject: str) -> list[UserScope]:
    """Where a person may work, with names, for a switcher. Call it outside any tenant's scope."""
    found: dict[str, list[Belonging]] = {}
    for belonging in memberships_of_user(subject):
        found.setdefault(belonging.tenant_id, []).append(belonging)
    return [place for tenant_id, own in found.items() for place in _places_in(tenant_id, own)]


def _places_in(tenant_id: str, own: Sequence[Belonging]) -> list[UserScope]:
    wide = tuple(role for one in own if one.project_id is None for role in one.roles)
    by_project = {one.project_id: one.roles for one in own if one.project_id is not None}
    with reading(system(tenant_id, "places")):
        home = tenant(tenant_id)
        rows = Project.objects.order_by("slug")
        if not wide:
            rows = rows.filter(pk__in=list(by_project))
        name = home.name if home else tenant_id
        places = [UserScope(tenant_id, name, None, "", "", wide)] if wide else []
        return places + [
            UserScope(tenant_id, name, row.id, row.slug, row.name, _union(wide, by_project.get(row.id, ())))
            for row in rows
        ]


def _union(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
