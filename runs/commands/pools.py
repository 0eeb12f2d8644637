"""Which tenants a pool of workers serves, and how much of the workers a tenant may have."""

from factory.identity.formats import POOL, POOL_WORDS
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InvalidInput
from factory.kernel.hints import WORK, wake
from factory.kernel.locking import lock
from factory.kernel.reasons import reason_faults
from factory.kernel.recording import audit, save
from runs.errors import QuotaOfPlatform
from runs.models import TenantQuota, WorkerPool
from runs.selectors.pools import set_by_the_platform

MOST_OPEN_ATTEMPTS = 1_000_000


@command("ServeTenant")
def serve_tenant(ctx: Context, *, pool: str, tenant_id: str) -> bool:
    """Let a pool work for a tenant from now on; made if it is not there. Whether it did not before.

    Guards: the system alone. Audited with the tenant. Errors: `InvalidInput` for a name that no pool
    can have.
    """
    if not POOL.fullmatch(pool):
        raise InvalidInput("No pool can be called so.", errors=[FieldError("/pool", POOL_WORDS)])
    row, _ = WorkerPool.objects.select_for_update(no_key=True).get_or_create(
        name=pool, defaults={"created_at": now()}
    )
    if tenant_id in row.tenants:
        return False
    _serve(ctx, row, sorted([*row.tenants, tenant_id]), "ServeTenant")
    wake(WORK)
    return True


@command("LeaveTenant")
def leave_tenant(ctx: Context, *, pool: str, tenant_id: str) -> bool:
    """Let a pool work for a tenant no longer, at once; whether it did until now.

    What its workers hold of the tenant, or were offered, they can neither acquire, renew nor report any more:
    the leases run out, and the attempts are tried again elsewhere or become uncertain. Drain the workers
    first. Guards: the system alone. Audited with the tenant.
    """
    row = WorkerPool.objects.select_for_update(no_key=True).filter(name=pool).first()
    if row is None or tenant_id not in row.tenants:
        return False
    _serve(ctx, row, [other for other in row.tenants if other != tenant_id], "LeaveTenant")
    return True


def _serve(ctx: Context, pool: WorkerPool, tenants: list[str], act: str) -> None:
    WorkerPool.objects.filter(pk=pool.name).update(tenants=tenants)
    audit(ctx, act, subject=f"pool:{pool.name}", detail={"pool": pool.name})


@command("ChangeTenantQuota", audited=False)
def change_quota(ctx: Context, *, open_attempts: int | None, reason: str) -> None:
    """Limit how many attempts of the tenant workers may hold at once; None is no limit, 0 stops dispatch.

    What is at work already goes on. Guards: a PlatformAdmin, unless the platform has limited the tenant: that
    is changed on its host; a reason. Audited with the quota before and after. Errors: `InvalidInput`,
    `QuotaOfPlatform`.
    """
    _check_quota(open_attempts, reason)
    row = _locked_quota(ctx, reason.strip())
    if set_by_the_platform(ctx, row):
        raise QuotaOfPlatform("Whoever runs the platform set this quota, and changes it (manage.py quota).")
    before, row.open_attempts, row.reason = row.open_attempts, open_attempts, reason.strip()
    row.changed_by, row.changed_at = ctx.actor.subject, now()
    save(row)
    audit(
        ctx,
        "ChangeTenantQuota",
        subject=f"tenant:{ctx.tenant_id}",
        reason=reason.strip(),
        detail={"before": before, "after": open_attempts},
    )
    wake(WORK)


def _locked_quota(ctx: Context, reason: str) -> TenantQuota:
    """The tenant's row, locked. If there is none it is made: of two at once one waits for the other."""
    made = TenantQuota(tenant_id=ctx.tenant_id, reason=reason, changed_by=ctx.actor.subject, changed_at=now())
    TenantQuota.objects.bulk_create([made], ignore_conflicts=True)
    return lock(TenantQuota, ctx.tenant_id)


def _check_quota(open_attempts: int | None, reason: str) -> None:
    faults = []
    if open_attempts is not None and not 0 <= open_attempts <= MOST_OPEN_ATTEMPTS:
        faults.append(FieldError("/openAttempts", f"From 0 to {MOST_OPEN_ATTEMPTS}, or none."))
    faults += reason_faults(reason)
    if faults:
        raise InvalidInput("The quota cannot be changed so.", errors=faults)
