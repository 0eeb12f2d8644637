"""Slots: what a worker may still be given, computed from open leases under locks, and never counted.

A slot counts only if the tenant is below its quota. Parked attempts are in nobody's hands and use none up.
"""

from uuid import UUID

from django.db import connection

from factory.kernel.clock import now
from runs.errors import NoSlot, NothingToDispatch, QuotaReached
from runs.models import TenantQuota, Worker
from runs.selectors.waiting import ALIVE, attempts_at_work, slots_used


def lock_worker_with_a_slot(worker_id: UUID, tenant_id: str) -> Worker:
    """The worker, locked, if it lives, does not drain, and has a free slot, in a pool that serves the tenant.

    Raises `NoSlot`, `NothingToDispatch`: the pool may have left the tenant since the poll looked.
    """
    rows = Worker.objects.select_related("pool").select_for_update(no_key=True, of=("self",))
    worker = rows.filter(pk=worker_id).first()
    if worker is not None and tenant_id not in worker.pool.tenants:
        raise NothingToDispatch(f"The pool {worker.pool_id} does not work for the tenant.")
    if worker is None or worker.draining_at is not None or worker.last_seen_at < now() - ALIVE:
        raise NoSlot("The worker takes nothing new.")
    used = slots_used([worker_id]).get(worker_id, 0)
    if used >= worker.max_concurrency:
        raise NoSlot(f"The worker has {used} of {worker.max_concurrency} leases.")
    return worker


def require_below_quota(tenant_id: str) -> None:
    """The tenant in scope may have one more attempt at work. Raises `QuotaReached`.

    The quota's row stays locked until the commit, so that two dispatches cannot both take the last place.
    """
    quota = TenantQuota.objects.select_for_update(no_key=True).filter(open_attempts__isnull=False).first()
    if quota is None:
        return
    used = attempts_at_work(tenant_id)
    if used >= quota.open_attempts:
        raise QuotaReached(f"The tenant has {used} of {quota.open_attempts} attempts at work.")


def next_token() -> int:
    """A fencing token: higher than every one before, here and before any restore."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT (epoch::bigint << 40) | nextval('runs_fencing_token') FROM runs_fencingepoch")
        return int(cursor.fetchone()[0])
