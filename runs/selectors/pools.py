"""Whose a pool of workers is, and whose a tenant's share of it."""

from collections.abc import Sequence

from django.db.models import QuerySet

from factory.kernel.context import PLATFORM, Context
from runs.models import TenantQuota, Worker


def serves_others(ctx: Context, tenants: Sequence[str]) -> bool:
    """Return whether a pool of these tenants works for one that the caller may not decide for.

    Of a pool that serves several tenants nobody of one of them stops a worker: that is the platform's.
    """
    return ctx.actor.kind != "system" and list(tenants) != [ctx.tenant_id]


def within_reach(ctx: Context, workers: QuerySet[Worker]) -> QuerySet[Worker]:
    """Return the workers whose pools serve the caller's tenant; to the platform itself, all of them."""
    return workers if ctx.tenant_id == PLATFORM else workers.filter(pool__tenants__contains=[ctx.tenant_id])


def set_by_the_platform(ctx: Context, quota: TenantQuota | None) -> bool:
    """Return whether the platform limited the caller's tenant, which then does not lift that by itself."""
    if quota is None or quota.open_attempts is None or ctx.actor.kind == "system":
        return False
    return quota.changed_by.startswith("system:")
