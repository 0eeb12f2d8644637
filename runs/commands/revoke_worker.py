"""A worker's credential is revoked: its tokens are refused at once, its attempts settle by themselves."""

from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.models import RevokedToken
from factory.kernel.reasons import reasoned
from factory.kernel.recording import audit
from runs.errors import PoolShared, WorkerNotFound
from runs.models import Worker
from runs.selectors.pools import serves_others, within_reach


@command("RevokeWorker")
def revoke_worker(ctx: Context, *, worker_id: UUID, reason: str) -> str:
    """Refuse every token that a worker has, from this commit on; it is given nothing new.

    What it holds is not taken from it by force: its leases end, and its attempts settle at expiry + grace.
    A token that is issued once the leeway of tokens has passed is good again. Guards: an Operator or an
    administrator; the worker's pool serves this tenant and no other (of a shared pool the system alone may
    say so); a reason. Errors: `WorkerNotFound`, `PoolShared` (403), `InvalidInput`.
    """
    reason = reasoned(reason, "Revoking a credential needs a reason.")
    rows = Worker.objects.select_related("pool").select_for_update(no_key=True, of=("self",))
    worker = within_reach(ctx, rows).filter(pk=worker_id).first()
    if worker is None:
        raise WorkerNotFound(f"There is no worker {worker_id} here.")
    if serves_others(ctx, worker.pool.tenants):
        raise PoolShared(
            "The pool works for others too: whoever runs the platform revokes it, on its host "
            "(manage.py revoke_worker)."
        )
    at = now()
    RevokedToken.objects.create(
        subject=worker.subject,
        pool=worker.pool_id,
        reason=reason,
        revoked_by=ctx.actor.subject,
        revoked_at=at,
    )
    Worker.objects.filter(pk=worker.pk, draining_at=None).update(draining_at=at)
    audit(ctx, "RevokeWorker", subject=f"worker:{worker.pool_id}/{worker.name}", reason=reason)
    return worker.subject
