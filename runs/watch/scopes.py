"""Which tenants, project and run a caller may watch, and in whose tenant a worker's call is worked."""

from dataclasses import replace
from uuid import UUID

from factory.context import Context
from factory.tenancy import reading, scanning
from runs.errors import AttemptNotFound, PoolUnknown, RunNotFound
from runs.models import Run, WorkerPool
from runs.watch.feed import Scope

_WHERE = """
SELECT attempt.tenant_id, run.project_id FROM runs_attempt attempt
JOIN runs_run run ON run.id = attempt.run_id WHERE attempt.id = %s
"""


def watch_scope(ctx: Context, run_id: UUID | None) -> Scope:
    """A person's project, or the tenants that a worker's pool serves; perhaps one run of them."""
    if ctx.actor.kind == "worker":
        return Scope(frozenset(tenants_of(ctx.actor.pool)), None, run_id)
    if run_id is not None:
        with reading(ctx):
            if not Run.objects.filter(id=run_id, project_id=ctx.project_id).exists():
                raise RunNotFound("There is no such run here.")
    return Scope(frozenset({ctx.tenant_id}), ctx.project_id, run_id)


def tenants_of(pool: str) -> list[str]:
    found = WorkerPool.objects.filter(name=pool).values_list("tenants", flat=True).first()
    if found is None:
        raise PoolUnknown("The token's pool does not exist.")
    return list(found)


def context_of_attempt(ctx: Context, attempt_id: UUID) -> Context:
    """The worker's context in the attempt's own tenant; one that its pool does not serve is not there."""
    with scanning() as cursor:
        cursor.execute(_WHERE, [attempt_id])
        row = cursor.fetchone()
    if row is None or row[0] not in tenants_of(ctx.actor.pool):
        raise AttemptNotFound("There is no such attempt here.")
    return replace(ctx, tenant_id=row[0], project_id=row[1])
