"""One pass of a poll: heartbeat, what has lapsed, what was offered before, then what is waiting.

Each step is a command of its own, in its own tenant. Whoever waits for work calls this again when it is
woken, and every second in any case.
"""

from collections.abc import Sequence
from uuid import UUID

import structlog

from factory.context import Context, system
from factory.errors import DomainError
from factory.tenancy import reading
from runs.answers import Assignment
from runs.commands.dispatch_step import dispatch_step
from runs.commands.expire_lease import expire_lease, withdraw_from_drained
from runs.commands.workers import WorkerView, drain_by_operator, heartbeat, start_draining
from runs.errors import NoSlot, QuotaReached
from runs.operations.timing import grace
from runs.selectors.assignments import offered_assignment
from runs.selectors.waiting import PAGE, Board, Lapsed, Offer, Waiting, look, look_further, offers_of

log = structlog.get_logger("runs.dispatch")

DISPATCHER = "RunDispatcher"
MOST_PAGES = 8
"""How far one poll looks past steps that may not go on now."""


def poll_worker(ctx: Context, *, name: str, instance_id: UUID | None) -> list[Assignment]:
    """Everything that the worker is offered now; it never waits.

    Offers that were not acquired are given again, so that a lost answer costs nothing. Raises
    `WorkerNotRegistered`, `WorkerSuperseded`.
    """
    worker = heartbeat(ctx, name=name, instance_id=instance_id)
    board = _look(worker)
    if board.lapsed:
        _recover(ctx, board.lapsed)
        board = _look(worker)  # what was withdrawn waits already
    if worker.draining:
        _withdraw(ctx, board.offers)
        return []
    found = [again for offer in board.offers if (again := _again(ctx, offer))]
    return found + _dispatch(ctx, worker, board.waiting)


def drain_worker(ctx: Context, *, name: str, instance_id: UUID | None) -> None:
    """No new offers to this worker; those not acquired are withdrawn at once, held leases go on."""
    worker = start_draining(ctx, name=name, instance_id=instance_id)
    _withdraw(ctx, offers_of(worker.id))


def drain_from_outside(ctx: Context, *, worker_id: UUID, reason: str) -> None:
    """The same by an Operator. Raises what `drain_by_operator` raises."""
    drain_by_operator(ctx, worker_id=worker_id, reason=reason)
    _withdraw(ctx, offers_of(worker_id))


def _withdraw(ctx: Context, offers: Sequence[Offer]) -> None:
    for offer in offers:
        house = _house(ctx, offer.tenant_id)
        withdraw_from_drained(house, lease_id=offer.lease_id, attempt_id=offer.attempt_id)


def _look(worker: WorkerView) -> Board:
    return look(worker.id, worker.tenants, worker.capabilities, worker.last_tenant, grace())


def _recover(ctx: Context, lapsed: Sequence[Lapsed]) -> None:
    """Leases recover here too, so that they do while no scheduler runs."""
    for lease in lapsed:
        house = _house(ctx, lease.tenant_id)
        try:
            expire_lease(house, lease_id=lease.lease_id, fencing_token=lease.fencing_token)
        except DomainError as refusal:
            log.info("lease_not_recovered", lease=str(lease.lease_id), code=refusal.code)


def _dispatch(ctx: Context, worker: WorkerView, waiting: Sequence[Waiting]) -> list[Assignment]:
    """Fill the free slots; what cannot be dispatched now is passed over, and hides nothing behind it."""
    found: list[Assignment] = []
    passed: list[UUID] = []
    full: set[str] = set()
    for _ in range(MOST_PAGES):
        try:
            for each in waiting:
                if each.tenant_id not in full and (given := _try(ctx, worker, each, full)) is not None:
                    found.append(given)
        except NoSlot:
            break
        if len(waiting) < PAGE:
            break
        passed += [each.step_id for each in waiting]
        waiting = look_further(worker.tenants, worker.capabilities, worker.last_tenant, passed)
    return found


def _try(ctx: Context, worker: WorkerView, waiting: Waiting, full: set[str]) -> Assignment | None:
    """None for a step that somebody else was faster with, or that may not go on now. Raises `NoSlot`."""
    try:
        return _offer(ctx, worker, waiting)
    except NoSlot:
        raise
    except QuotaReached:
        full.add(waiting.tenant_id)
    except DomainError as refusal:
        log.debug("not_dispatched", step=str(waiting.step_id), code=refusal.code)
    return None


def _offer(ctx: Context, worker: WorkerView, waiting: Waiting) -> Assignment:
    house = _house(ctx, waiting.tenant_id, waiting.project_id)
    return dispatch_step(house, run_id=waiting.run_id, step_id=waiting.step_id, worker_id=worker.id)


def _again(ctx: Context, offer: Offer) -> Assignment | None:
    with reading(_house(ctx, offer.tenant_id)):
        return offered_assignment(offer.lease_id)


def _house(ctx: Context, tenant_id: str, project_id: UUID | None = None) -> Context:
    return system(
        tenant_id, DISPATCHER, project_id=project_id, correlation_id=ctx.correlation_id, channel="worker"
    )
