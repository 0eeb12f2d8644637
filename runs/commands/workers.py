"""Workers as the platform knows them: they belong to a pool and to no tenant."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InvalidInput
from factory.kernel.hints import WORK, wake
from factory.kernel.ids import uuid7
from factory.kernel.reasons import reasoned
from factory.kernel.recording import audit
from runs.errors import PoolUnknown, WorkerElsewhere, WorkerNotRegistered, WorkerSuperseded
from runs.models import Worker, WorkerPool
from runs.selectors.pools import serves_others, within_reach
from runs.selectors.waiting import last_served

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
CAPABILITY = re.compile(r"[a-z0-9*][a-z0-9*.-]{0,63}/[a-z0-9*.-]{0,64}")
MOST_CAPABILITIES = 100
MOST_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A registered worker, as it stands after its heartbeat."""

    id: UUID
    name: str
    pool: str
    subject: str
    tenants: tuple[str, ...]
    capabilities: tuple[str, ...]
    max_concurrency: int
    draining: bool
    last_tenant: str


@command("RegisterWorker", audited=False)
def register_worker(
    ctx: Context, *, name: str, capabilities: Sequence[str], max_concurrency: int, version: str
) -> UUID:
    """Register a process under a name of its pool, or again; the instance id that its calls carry.

    The youngest process has the name: an older one is told to stop at its next call. A drain of its own
    ends; one that a person asked for stands until a person ends it. A new name takes its turns after the
    tenant that the pool served last. Errors: `PoolUnknown`, `InvalidInput`.
    """
    _check(name, capabilities, max_concurrency, version)
    pool = WorkerPool.objects.filter(name=ctx.actor.pool).first()
    if pool is None:
        raise PoolUnknown(f"There is no worker pool {ctx.actor.pool}.")
    at, instance_id = now(), uuid7()
    facts = {
        "subject": ctx.actor.subject,
        "instance_id": instance_id,
        "capabilities": list(capabilities),
        "max_concurrency": max_concurrency,
        "version": version,
        "last_seen_at": at,
    }
    row, made = Worker.objects.select_for_update(no_key=True).get_or_create(
        pool_id=pool.name,
        name=name,
        defaults={**facts, "id": uuid7(), "registered_at": at, "last_tenant": last_served(pool.tenants)},
    )
    if not made:
        drain = {} if row.drained_by else {"draining_at": None}
        Worker.objects.filter(pk=row.pk).update(**facts, **drain)
    return instance_id


@command("HeartbeatWorker", audited=False)
def heartbeat(ctx: Context, *, name: str, instance_id: UUID | None) -> WorkerView:
    """Note that a worker lives, and answer what it may be given.

    Errors: `WorkerNotRegistered`, `WorkerSuperseded`.
    """
    worker = _own(ctx, name, instance_id)
    Worker.objects.filter(pk=worker.pk).update(last_seen_at=now())
    return _view(worker)


@command("DrainWorker", audited=False)
def start_draining(ctx: Context, *, name: str, instance_id: UUID | None) -> WorkerView:
    """No new offers from now on; held leases go on to their end. Errors as for a heartbeat."""
    worker = _own(ctx, name, instance_id)
    Worker.objects.filter(pk=worker.pk).update(draining_at=worker.draining_at or now())
    return _view(worker)


@command("DrainWorkerByOperator", audited=False)
def drain_by_operator(ctx: Context, *, worker_id: UUID, reason: str) -> None:
    """A person drains a worker: nothing new is offered to it, also after a restart, until one ends the drain.

    Guards: an Operator or a PlatformAdmin of the one tenant that the worker's pool serves; of a pool that
    serves several, whoever runs the platform, on its host; a reason. Audited. Errors: `WorkerNotRegistered`,
    `WorkerElsewhere`, `InvalidInput`.
    """
    worker = _served(ctx, worker_id, reason)
    values = {"draining_at": worker.draining_at or now(), "drained_by": ctx.actor.subject}
    Worker.objects.filter(pk=worker.pk).update(**values)
    _note(ctx, "DrainWorker", worker, reason)


@command("UndrainWorker", audited=False)
def undrain(ctx: Context, *, worker_id: UUID, reason: str) -> None:
    """Let a drained worker be offered work again, if its process still asks for some.

    Guards and errors as for draining it. Audited.
    """
    worker = _served(ctx, worker_id, reason)
    Worker.objects.filter(pk=worker.pk).update(draining_at=None, drained_by="")
    _note(ctx, "UndrainWorker", worker, reason)
    wake(WORK)


def _served(ctx: Context, worker_id: UUID, reason: str) -> Worker:
    """A worker of a pool that serves the caller's tenant, locked."""
    reasoned(reason, "Draining a worker, or ending it, needs a reason.")
    rows = Worker.objects.select_related("pool").select_for_update(no_key=True, of=("self",))
    worker = within_reach(ctx, rows).filter(pk=worker_id).first()
    if worker is None:
        raise WorkerNotRegistered(f"There is no worker {worker_id} here.")
    if serves_others(ctx, worker.pool.tenants):
        raise WorkerElsewhere(
            "The worker works for other tenants too: whoever runs the platform drains it, or ends that, on "
            "its host (manage.py drain)."
        )
    return worker


def _note(ctx: Context, action: str, worker: Worker, reason: str) -> None:
    detail = {"worker": worker.name, "pool": worker.pool_id}
    audit(ctx, action, subject=f"worker:{worker.id}", reason=reason.strip(), detail=detail)


def note_heartbeat(ctx: Context, lease_id: UUID, instance_id: UUID | None) -> None:
    """A renewal is a heartbeat too. Comes before the run's lock, as in dispatch.

    Somebody else's lease is none of the caller's, which the token will tell. Raises `WorkerSuperseded`.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_worker SET last_seen_at = clock_timestamp() "
            "WHERE id = (SELECT worker_id FROM runs_lease WHERE id = %s AND holder = %s) "
            "RETURNING instance_id",
            [lease_id, ctx.actor.subject],
        )
        row = cursor.fetchone()
    if row is not None and instance_id not in (None, row[0]):
        raise _superseded()


def _own(ctx: Context, name: str, instance_id: UUID | None) -> Worker:
    worker = (
        Worker.objects.select_related("pool")
        .select_for_update(no_key=True, of=("self",))
        .filter(pool_id=ctx.actor.pool, name=name)
        .first()
    )
    if worker is None:
        raise WorkerNotRegistered(f"No worker {name} is registered in the pool {ctx.actor.pool}.")
    if worker.subject != ctx.actor.subject or instance_id not in (None, worker.instance_id):
        raise _superseded()
    return worker


def _superseded() -> WorkerSuperseded:
    return WorkerSuperseded("Another process has registered under this name: this one is to stop.")


def _view(worker: Worker) -> WorkerView:
    return WorkerView(
        id=worker.id,
        name=worker.name,
        pool=worker.pool_id,
        subject=worker.subject,
        tenants=tuple(worker.pool.tenants),
        capabilities=tuple(worker.capabilities),
        max_concurrency=worker.max_concurrency,
        draining=worker.draining_at is not None,
        last_tenant=worker.last_tenant,
    )


def _check(name: str, capabilities: Sequence[str], max_concurrency: int, version: str) -> None:
    faults = []
    if not NAME.fullmatch(name):
        faults.append(FieldError("/name", "1 to 64 lower-case letters, digits, dots, hyphens, underscores."))
    if not 1 <= len(capabilities) <= MOST_CAPABILITIES:
        faults.append(FieldError("/capabilities", f"From 1 to {MOST_CAPABILITIES}."))
    for index, capability in enumerate(capabilities):
        if not CAPABILITY.fullmatch(capability):
            faults.append(
                FieldError(f"/capabilities/{index}", "agentId/skillId; * stands for any characters.")
            )
    if not 1 <= max_concurrency <= MOST_AT_ONCE:
        faults.append(FieldError("/maxConcurrency", f"From 1 to {MOST_AT_ONCE}."))
    if len(version) > 64:
        faults.append(FieldError("/version", "At most 64 characters."))
    if faults:
        raise InvalidInput("The registration is not valid.", errors=faults)
