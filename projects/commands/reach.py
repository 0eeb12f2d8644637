"""How far the caller's own standing reaches, judged inside the command."""

from uuid import UUID

from factory.context import Context
from factory.errors import NotFound
from factory.locking import lock
from projects.errors import RoleOutOfReach
from projects.models import Project, Tenant
from projects.permissions import ADMINS
from projects.selectors import memberships_of
from projects.states import Role


def tenant_wide_roles(ctx: Context) -> frozenset[str]:
    """The caller's roles that hold in the whole tenant; a token may only have narrowed them."""
    own = (role for one in memberships_of(ctx.actor.subject, None) for role in one.roles)
    return ctx.actor.roles & frozenset(own)


def require_tenant_wide_admin(ctx: Context) -> None:
    """Refuse a caller who administers only a project. Parts of the house pass."""
    if ctx.actor.kind != "system" and not tenant_wide_roles(ctx) & frozenset(ADMINS):
        raise RoleOutOfReach("This reaches the whole tenant; the caller administers only a project.")


def require_may_give(ctx: Context, project_id: UUID | None, roles: tuple[str, ...]) -> None:
    """Only a PlatformAdmin makes, changes or removes another; and by a lent role nobody makes members."""
    if ctx.actor.kind == "system":
        return
    own = frozenset(role for one in memberships_of(ctx.actor.subject, project_id) for role in one.roles)
    if not own & ctx.actor.roles & frozenset(ADMINS):
        raise RoleOutOfReach("A lent role lets nobody decide who is a member: only an admin's own does.")
    if Role.PLATFORM_ADMIN not in roles:
        return
    if Role.PLATFORM_ADMIN not in tenant_wide_roles(ctx):
        raise RoleOutOfReach("Only a PlatformAdmin may decide who is one.")


def lock_own_project(ctx: Context, project_id: UUID) -> Project:
    """The project, locked; `NotFound` for one that the caller's scope does not include."""
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
