"""Jobs: each is a hint with ids, and derives everything else from the rows."""

from uuid import UUID

from celery import shared_task

from factory.kernel.absence import put_off
from registry.publication.resolving import resolve

RESOLVE = "registry.resolve_closure"


@shared_task(name=RESOLVE)
def resolve_closure(*, tenant_id: str, release_id: str) -> None:
    """Resolve one candidate now; the reconciler does it too if this is lost."""
    with put_off(RESOLVE, tenant=tenant_id, release=release_id):
        resolve(tenant_id, UUID(release_id))
