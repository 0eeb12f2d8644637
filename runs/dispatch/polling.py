"""One pass of a poll: heartbeat, what has lapsed, what was offered before, then what is waiting.

Each step is a command of its own, in its own tenant. Whoever waits for work calls this again when it is
woken, and every second in any case.
"""

from uuid import UUID

import structlog

from factory.context import Context, system
from factory.errors import DomainError
from factory.tenancy import reading
from runs.answers import Assignment
from runs.commands.dispatch_step import dispatch_step
from runs.commands.expire_lease import expire_lease, withdraw_from_drained
from runs.commands.workers import WorkerView, heartbeat, start_draining
from runs.errors import NoSlot
from runs.operations.timing import grace
from runs.selectors.assignments import offered_assignment
from runs.selectors.waiting import Waiting, lapsed_leases, offers_of, waiting_for

log = structlog.get_logger("runs.dispatch")

DISPATCHER = "RunDispatcher"


def poll_worker(ctx: Context, *, name: str, instance_id: UUID | None) -> list[Assignment]:
    """Everything that the worker is offered now; it never waits.

    Offers that were not acquired are given again, so that a lost answer costs nothing. Raises
    `WorkerNotRegistered`, `WorkerSuperseded`.
    """
    worker = heartbeat(ctx, name=name, instance_id=instance_id)
    recover_lapsed(ctx, worker)
    found = [
        again for offer in offers_of(worker.id) if (again := _again(ctx, offer.tenant_id, offer.lease_id))
    ]
    if not worker.draining:
        found += _dispatch(ctx, worker)
    return found


def drain_worker(ctx: Context, *, name: str, instance_id: UUID | None) -> None:
    """No new offers to this worker; those not acquired are withdrawn at once, held leases go on."""
    worker = start_draining(ctx, name=name, instance_id=instance_id)
    for offer in offers_of(worker.id):
        house = _house(ctx, offer.tenant_id)
        withdraw_from_drained(house, lease_id=offer.lease_id, attempt_id=offer.attempt_id)


def recover_lapsed(ctx: Context, worker: WorkerView) -> None:
    """Leases recover here too, so that they do while no scheduler runs."""
    for lapsed in lapsed_leases(worker.tenants, grace()):
        try:
            expire_lease(
                _house(ctx, lapsed.tenant_id), lease_id=lapsed.lease_id, fencing_token=lapsed.fencing_token
            )
        except DomainError as refusal:
            log.info("lease_not_recovered", lease=str(lapsed.lease_id), code=refusal.code)


def _dispatch(ctx: Context, worker: WorkerView) -> list[Assignment]:
    """Fill the free slots; a step that somebody else was faster with is passed over."""
    found: list[Assignment] = []
    for waiting in waiting_for(worker.tenants, worker.capabilities, worker.last_tenant):
        try:
            found.append(_offer(ctx, worker, waiting))
        except NoSlot:
            break
        except DomainError as refusal:
            log.debug("not_dispatched", step=str(waiting.step_id), code=refusal.code)
    return found


def _offer(ctx: Context, worker: WorkerView, waiting: Waiting) -> Assignment:
    house = _house(ctx, waiting.tenant_id, waiting.project_id)
    return dispatch_step(house, run_id=waiting.run_id, step_id=waiting.step_id, worker_id=worker.id)


def _again(ctx: Context, tenant_id: str, lease_id: UUID) -> Assignment | None:
    with reading(_house(ctx, tenant_id)):
        return offered_assignment(lease_id)


def _house(ctx: Context, tenant_id: str, project_id: UUID | None = None) -> Context:
    return system(
        tenant_id, DISPATCHER, project_id=project_id, correlation_id=ctx.correlation_id, channel="worker"
    )
