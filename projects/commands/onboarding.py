"""The beginning of a tenant, and of a project in it."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict

from django.db import IntegrityError

from factory.kernel.addresses import addresses_in
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError
from factory.kernel.recording import audit, record, save
from projects.commands.inputs import (
    NewEnvironment,
    NewMember,
    label_faults,
    member_faults,
    name_faults,
    refuse,
    repeated,
    slug_faults,
)
from projects.commands.joining import join, known_members
from projects.commands.reach import lock_tenant, require_tenant_wide_admin
from projects.errors import ProjectExists, TenantExists
from projects.events import ProjectStateChanged
from projects.models import Environment, Project, Tenant


class Onboarded(TypedDict):
    """Hold what onboarding made: the project's id, and ids by slug and by subject."""

    projectId: str
    environments: dict[str, str]
    members: dict[str, str]


@command("OnboardTenant")
def onboard_tenant(ctx: Context, *, name: str) -> str:
    """Make the tenant of the context, and nothing in it yet.

    Guards: only the system itself (command line, start-up), because no member exists who could.
    Emits: nothing. Errors: `InvalidInput`, `TenantExists`.
    """
    slug = ctx.tenant_id
    refuse(slug_faults(slug, "/id") + name_faults(name, "/name", limit=200), "The tenant is not valid.")
    taken = TenantExists(f"There is a tenant {slug} already.", errors=[FieldError("/id", "It is taken.")])
    if Tenant.objects.filter(pk=slug).exists():
        raise taken
    try:
        save(Tenant(id=slug, tenant_id=slug, name=name.strip(), created_at=now()))
    except IntegrityError as rival:  # nothing can be locked yet that both would meet
        raise taken from rival
    audit(ctx, "OnboardTenant", subject=f"tenant:{slug}")
    return slug


@command("OnboardProject")
def onboard_project(
    ctx: Context,
    *,
    slug: str,
    name: str,
    environments: Sequence[NewEnvironment],
    members: Sequence[NewMember],
) -> Onboarded:
    """Make a project with its environments and members: all of it, or nothing.

    Guards: a WorkspaceAdmin or PlatformAdmin of the whole tenant. Emits: `ProjectStateChanged`.
    Errors: `InvalidInput` with a pointer at every fault, `RoleOutOfReach`, `ProjectExists`,
    `NotFound` for a tenant that was never onboarded.
    """
    _check(slug, name, environments, members)
    lock_tenant(ctx)
    require_tenant_wide_admin(ctx)
    if Project.objects.filter(slug=slug).exists():
        raise ProjectExists(
            f"There is a project {slug} already.", errors=[FieldError("/slug", "It is taken.")]
        )
    known, at = known_members(ctx, members), now()
    project = _project(ctx, slug, name.strip(), at)
    return Onboarded(
        projectId=str(project.id),
        environments={one.slug: _environment(project, one, at) for one in environments},
        members={
            one.subject: str(join(ctx, project.id, one, known, at=at, pointer=f"/members/{index}").id)
            for index, one in enumerate(members)
        },
    )


def _check(
    slug: str, name: str, environments: Sequence[NewEnvironment], members: Sequence[NewMember]
) -> None:
    faults = slug_faults(slug, "/slug") + name_faults(name, "/name", limit=200)
    for index, one in enumerate(environments):
        faults += slug_faults(one.slug, f"/environments/{index}/slug")
        faults += label_faults(one.name, f"/environments/{index}/name")
    faults += repeated([one.slug for one in environments], lambda index: f"/environments/{index}/slug")
    for index, member in enumerate(members):
        faults += member_faults(member, tenant_wide=False, pointer=f"/members/{index}")
    named = [next(iter(addresses_in(one.subject)), one.subject) for one in members]
    faults += repeated(named, lambda index: f"/members/{index}/subject")
    refuse(faults, "The project cannot be onboarded like this.")


def _project(ctx: Context, slug: str, name: str, at: datetime) -> Project:
    project = Project(tenant_id=ctx.tenant_id, slug=slug, name=name, created_at=at, updated_at=at)
    event = ProjectStateChanged(
        project_id=project.id,
        tenant_id=ctx.tenant_id,
        from_state=None,
        to_state=str(project.state),
        cause="Onboarded",
    )
    record(ctx, project, "Onboarded", event)
    return project


def _environment(project: Project, new: NewEnvironment, at: datetime) -> str:
    row = Environment(
        tenant_id=project.tenant_id,
        project_id=project.id,
        slug=new.slug,
        name=new.name.strip() or new.slug,
        created_at=at,
    )
    save(row)
    return str(row.id)
