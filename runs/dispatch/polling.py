"""One pass of a poll: heartbeat, what has lapsed, what was offered before, then what is waiting.

Each step is a command of its own, in its own tenant. Whoever waits for work calls this again when it is
woken, and every second in any case.
"""

from collections.abc import Sequence
from uuid import UUID

import structlog

from factory.kernel.bulkhead import Bulkhead, Resting
from factory.kernel.context import Context, system
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from runs.commands.dispatch_step import dispatch_step
from runs.commands.expire_lease import expire_lease, withdraw_from_drained
from runs.commands.revoke_worker import revoke_worker
from runs.commands.workers import WorkerView, drain_by_operator, heartbeat, start_draining
from runs.errors import NoSlot, QuotaReached
from runs.operations.timing import grace
from runs.selectors.answers import OfferedAttempt
from runs.selectors.assignments import offered_assignment
from runs.selectors.waiting import (
    PAGE,
    DispatchBoard,
    Lapsed,
    Offer,
    WaitingStep,
    look,
    look_further,
    offers_of,
)

log = structlog.get_logger("runs.dispatch")

DISPATCHER = "RunDispatcher"
MOST_PAGES = 8
"""How far one poll looks past steps that may not go on now."""
RESTING = Resting()
"""Leases and steps of which a fault of their own keeps every poll: they are passed over for a while."""


def poll_worker(ctx: Context, *, name: str, instance_id: UUID | None) -> list[OfferedAttempt]:
    """Everything that the worker is offered now; it never waits.

    Offers that were not acquired are given again, so that a lost answer costs nothing. What is faulty about
    one run keeps nothing of another from the worker. Raises `WorkerNotRegistered`, `WorkerSuperseded`.
    """
    worker = heartbeat(ctx, name=name, instance_id=instance_id)
    board = _look(worker)
    if board.lapsed:
        _recover(ctx, board.lapsed)
        board = _look(worker)  # what was withdrawn waits already
    if worker.draining:
        _withdraw(ctx, board.offers)
        return []
    return _earlier_offers(ctx, board.offers) + _dispatch(ctx, worker, board.waiting)


def drain_worker(ctx: Context, *, name: str, instance_id: UUID | None) -> None:
    """No new offers to this worker; those not acquired are withdrawn at once, held leases go on."""
    worker = start_draining(ctx, name=name, instance_id=instance_id)
    _withdraw(ctx, offers_of(worker.id))


def drain_from_outside(ctx: Context, *, worker_id: UUID, reason: str) -> None:
    """Drain a worker as an Operator. Raises what `drain_by_operator` raises."""
    drain_by_operator(ctx, worker_id=worker_id, reason=reason)
    _withdraw(ctx, offers_of(worker_id))


def revoke_from_outside(ctx: Context, *, worker_id: UUID, reason: str) -> str:
    """Revoke a worker's credential, and withdraw what it was offered: nobody could acquire it any more.

    Raises what `revoke_worker` raises; answers with the subject.
    """
    subject = revoke_worker(ctx, worker_id=worker_id, reason=reason)
    _withdraw(ctx, offers_of(worker_id))
    return subject


def _withdraw(ctx: Context, offers: Sequence[Offer]) -> None:
    alone = Bulkhead("poll.withdraw", resting=RESTING)
    for offer in _not_resting(offers):
        as_system = _system_in(ctx, offer.tenant_id)
        with alone.item(offer.lease_id, offer.tenant_id):
            withdraw_from_drained(as_system, lease_id=offer.lease_id, attempt_id=offer.attempt_id)


def _not_resting(offers: Sequence[Offer]) -> list[Offer]:
    rests = set(RESTING.items())
    return [offer for offer in offers if offer.lease_id not in rests]


def _look(worker: WorkerView) -> DispatchBoard:
    passed = RESTING.items()
    return look(worker.id, worker.tenants, worker.capabilities, worker.last_tenant, grace(), passed)


def _recover(ctx: Context, lapsed: Sequence[Lapsed]) -> None:
    """Leases recover here too, so that they do while no scheduler runs."""
    alone = Bulkhead("poll.lapsed", resting=RESTING)
    for lease in lapsed:
        as_system = _system_in(ctx, lease.tenant_id)
        with alone.item(lease.lease_id, lease.tenant_id):
            expire_lease(as_system, lease_id=lease.lease_id, fencing_token=lease.fencing_token)


def _earlier_offers(ctx: Context, offers: Sequence[Offer]) -> list[OfferedAttempt]:
    offered: list[OfferedAttempt] = []
    alone = Bulkhead("poll.offers", resting=RESTING)
    for offer in _not_resting(offers):
        with alone.item(offer.lease_id, offer.tenant_id):
            again = _assignment_of(ctx, offer)
            offered += [again] if again else []
    return offered


def _dispatch(ctx: Context, worker: WorkerView, waiting: Sequence[WaitingStep]) -> list[OfferedAttempt]:
    """Fill the free slots; what cannot be dispatched now is passed over, and hides nothing behind it."""
    offered: list[OfferedAttempt] = []
    passed = RESTING.items()
    full: set[str] = set()
    alone = Bulkhead("poll.dispatch", through=(NoSlot,), resting=RESTING)
    for _ in range(MOST_PAGES):
        try:
            for each in waiting:
                with alone.item(each.step_id, each.tenant_id):
                    offered += _offer_or_none(ctx, worker, each, full)
        except NoSlot:
            break
        if len(waiting) < PAGE:
            break
        passed += [each.step_id for each in waiting]
        waiting = look_further(worker.tenants, worker.capabilities, worker.last_tenant, passed)
    return offered


def _offer_or_none(
    ctx: Context, worker: WorkerView, waiting: WaitingStep, full: set[str]
) -> list[OfferedAttempt]:
    """Nothing for a step that somebody else was faster with, or that may not go on now. Raises `NoSlot`."""
    try:
        return [] if waiting.tenant_id in full else [_offer(ctx, worker, waiting)]
    except NoSlot:
        raise
    except QuotaReached:
        full.add(waiting.tenant_id)
    except DomainError as refusal:
        log.debug("not_dispatched", step=str(waiting.step_id), code=refusal.code)
    return []


def _offer(ctx: Context, worker: WorkerView, waiting: WaitingStep) -> OfferedAttempt:
    as_system = _system_in(ctx, waiting.tenant_id, waiting.project_id)
    return dispatch_step(as_system, run_id=waiting.run_id, step_id=waiting.step_id, worker_id=worker.id)


def _assignment_of(ctx: Context, offer: Offer) -> OfferedAttempt | None:
    with reading(_system_in(ctx, offer.tenant_id)):
        return offered_assignment(offer.lease_id, holder=ctx.actor.subject, grace=grace())


def _system_in(ctx: Context, tenant_id: str, project_id: UUID | None = None) -> Context:
    return system(
        tenant_id, DISPATCHER, project_id=project_id, correlation_id=ctx.correlation_id, channel="worker"
    )
