"""How far the caller's own roles reach, judged inside the command."""

from collections.abc import Collection
from uuid import UUID

from factory.kernel.context import Context
from factory.kernel.errors import NotFound
from factory.kernel.locking import lock
from factory.kernel.permissions import may
from projects.errors import LastAdministrator, RoleOutOfReach
from projects.models import Membership, Project, Tenant
from projects.permissions import ADMINS
from projects.selectors import active_memberships, memberships_of
from projects.states import ROLES, Role, SubjectKind


def tenant_wide_roles(ctx: Context) -> frozenset[str]:
    """Return the caller's roles that hold in the whole tenant; a token may only have narrowed them."""
    return _own_roles(ctx, None)


def require_tenant_wide_admin(ctx: Context) -> None:
    """Refuse a caller who administers only a project. The system itself passes."""
    if ctx.actor.kind != "system" and not tenant_wide_roles(ctx) & frozenset(ADMINS):
        raise RoleOutOfReach("This reaches the whole tenant; the caller administers only a project.")


def require_may_give(ctx: Context, project_id: UUID | None, roles: tuple[str, ...]) -> None:
    """Refuse who decides about members by a delegated role, or about a PlatformAdmin without being one."""
    if ctx.actor.kind == "system":
        return
    if not _own_roles(ctx, project_id) & frozenset(ADMINS):
        raise RoleOutOfReach("A delegated role decides about no members: an admin's own role is needed.")
    if Role.PLATFORM_ADMIN not in roles:
        return
    if Role.PLATFORM_ADMIN not in tenant_wide_roles(ctx):
        raise RoleOutOfReach("Only a PlatformAdmin may decide who is one.")


def roles_in_reach(ctx: Context, project_id: UUID | None) -> tuple[str, ...]:
    """Return the roles about which a person may decide in a scope; none for who decides about nobody in it.

    For pages that offer only these: the commands judge again, under their locks.
    """
    own = _own_roles(ctx, project_id)
    if ctx.project_id not in (None, project_id) or not own & frozenset(ADMINS):
        return ()
    every = project_id is None and Role.PLATFORM_ADMIN in own
    return tuple(role for role in ROLES if every or role != Role.PLATFORM_ADMIN)


def may_onboard(ctx: Context) -> bool:
    """Return whether somebody is offered to onboard projects; the command judges again."""
    return may(ctx, "OnboardProject") and bool(tenant_wide_roles(ctx) & frozenset(ADMINS))


def _own_roles(ctx: Context, project_id: UUID | None) -> frozenset[str]:
    """Return the caller's roles there by memberships of their own; a token may only have narrowed them."""
    own = memberships_of(ctx.actor.subject, project_id)
    return ctx.actor.roles & frozenset(role for membership in own for role in membership.roles)


def why_last(row: Membership, left: Collection[str] = ()) -> str:
    """Return why a membership cannot end, nor keep only the roles `left`: nobody else administers its scope
    by a membership that reaches it, or is a PlatformAdmin, whom only another could make. Empty where somebody
    does.

    Machines and lent roles do not count. The last one of the whole tenant is never ended, so two that are
    ended at once, one of a project and one of the tenant, leave somebody behind.
    """
    held, kept = frozenset(row.roles), frozenset(left)
    if row.kind != SubjectKind.PERSON:
        return ""
    if Role.PLATFORM_ADMIN in held - kept and not _has_other(row, (Role.PLATFORM_ADMIN,)):
        return f"{row} is the only PlatformAdmin of the tenant. Make another first: nobody else can."
    if not held & frozenset(ADMINS) or kept & frozenset(ADMINS) or _has_other(row, ADMINS):
        return ""
    scope = "the whole tenant" if row.project_id is None else "this project"
    return (
        f"{row} is the only person who administers {scope}. Make somebody else a WorkspaceAdmin there first."
    )


def left_to_platform(row: Membership) -> str:
    """Say that a membership is its scope's last WorkspaceAdmin, where the command lets it go all the same:
    a PlatformAdmin reaches the scope, and nobody else would administer it. Empty where `why_last` refuses."""
    last = row.kind == SubjectKind.PERSON and Role.WORKSPACE_ADMIN in row.roles
    if not last or _has_other(row, (Role.WORKSPACE_ADMIN,)) or not _has_other(row, ADMINS):
        return ""
    scope = "the whole tenant" if row.project_id is None else "this project"
    return f"{row} is the last WorkspaceAdmin of {scope}: without that only a PlatformAdmin administers it."


def _has_other(row: Membership, roles: Collection[str]) -> bool:
    """Return whether another person has one of the roles by a membership that reaches this one's scope."""
    others = active_memberships(row.project_id).filter(kind=SubjectKind.PERSON, roles__overlap=list(roles))
    return bool(others.exclude(pk=row.pk).exists())


def require_other_admin(ctx: Context, row: Membership, left: Collection[str] = ()) -> None:
    """Refuse to end the last administration of a scope; the caller holds its lock. The system passes."""
    problem = "" if ctx.actor.kind == "system" else why_last(row, left)
    if problem:
        raise LastAdministrator(problem)


def lock_own_project(ctx: Context, project_id: UUID) -> Project:
    """Lock the project; `NotFound` for one that the caller's scope does not include."""
    missing = NotFound("There is no such project here.")
    if ctx.project_id not in (None, project_id):
        raise missing
    return lock(Project, project_id, missing=missing)


def lock_scope(ctx: Context, project_id: UUID | None) -> None:
    """Lock what memberships of this scope hang on, so that two changes of it cannot cross."""
    if project_id is not None:
        lock_own_project(ctx, project_id)
        return
    lock_tenant(ctx)
    require_tenant_wide_admin(ctx)


def lock_tenant(ctx: Context) -> Tenant:
    missing = NotFound(f"There is no tenant {ctx.tenant_id}: onboard it first.")
    return lock(Tenant, ctx.tenant_id, missing=missing)
