"""In whose name a command line acts: somebody who is a member, with no more than their memberships give."""

from collections.abc import Iterable

from django.core.management.base import CommandError

from factory.identity.directory import directory
from factory.kernel.context import Actor, Context, system
from factory.kernel.tenancy import reading


def acting_as(subject: str, *, tenant_id: str, project: str, scopes: Iterable[str]) -> Context:
    """The context of a member in a project, by its slug; refused with a sentence where they are none."""
    refused = CommandError(f"{subject} is no member of a project {project} of the tenant {tenant_id}.")
    places = [p for p in directory().places_of(subject) if p.tenant_id == tenant_id and p.project_id]
    place = next((p for p in places if project in (p.project_slug, str(p.project_id))), None)
    if place is None:
        raise refused
    with reading(system(tenant_id, "command-line")):
        standing = directory().grants_of(subject, tenant_id, place.project_id)
    if standing is None:
        raise refused
    actor = Actor(
        subject,
        standing.kind,
        person=standing.person,
        roles=standing.roles,
        grants=standing.grants,
        scopes=frozenset(scopes),
    )
    return Context(tenant_id, place.project_id, actor, channel="cli")
