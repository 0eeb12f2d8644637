"""Which tenants a pool of workers serves."""

from factory.clock import now
from factory.commanding import command
from factory.context import Context
from runs.models import WorkerPool


@command("ServeTenant", audited=False)
def serve_tenant(ctx: Context, *, pool: str, tenant_id: str) -> None:
    """Let a pool work for a tenant from now on; made if it is not there. Only the house itself may."""
    row, _ = WorkerPool.objects.select_for_update(no_key=True).get_or_create(
        name=pool, defaults={"created_at": now()}
    )
    if tenant_id not in row.tenants:
        WorkerPool.objects.filter(pk=pool).update(tenants=sorted([*row.tenants, tenant_id]))
