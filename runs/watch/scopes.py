"""Which tenants, project and run a caller may watch, and whose releases a worker may load."""

from dataclasses import replace
from uuid import UUID

from factory.kernel.context import Context
from factory.kernel.errors import NotFound
from factory.kernel.tenancy import reading
from registry.selectors import tenant_of
from runs.errors import PoolUnknown, RunNotFound
from runs.models import Run, WorkerPool
from runs.watch.feed import WatchScope


def watch_scope(ctx: Context, run_id: UUID | None) -> WatchScope:
    """A person's project, or the tenants that a worker's pool serves; perhaps one run of them."""
    if ctx.actor.kind == "worker":
        return WatchScope(frozenset(tenants_of(ctx.actor.pool)), None, run_id)
    if run_id is not None:
        with reading(ctx):
            if not Run.objects.filter(id=run_id, project_id=ctx.project_id).exists():
                raise RunNotFound("There is no such run here.")
    return WatchScope(frozenset({ctx.tenant_id}), ctx.project_id, run_id)


def tenants_of(pool: str) -> list[str]:
    tenants = WorkerPool.objects.filter(name=pool).values_list("tenants", flat=True).first()
    if tenants is None:
        raise PoolUnknown("The token's pool does not exist.")
    return list(tenants)


def context_of_release(ctx: Context, release_id: UUID) -> Context:
    """The worker's context in the release's tenant, if its pool serves that."""
    tenant_id = tenant_of(release_id)
    if tenant_id is None or tenant_id not in tenants_of(ctx.actor.pool):
        raise NotFound("There is no such release here.")
    return replace(ctx, tenant_id=tenant_id)
