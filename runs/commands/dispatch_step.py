"""DispatchStep: the polling worker is given a step's next attempt, or a parked one, under a fresh lease."""

from datetime import datetime
from uuid import UUID

import usage.operations as usage
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.ids import uuid7
from factory.kernel.recording import record
from projects.operations import lock_active_project
from registry.selectors import withdrawal_of
from registry.states import InFlight
from runs.errors import NothingToDispatch
from runs.events import AttemptDispatched
from runs.models import Attempt, Lease, Run, Step, Worker
from runs.operations.capacity import lock_worker_with_a_slot, next_token, require_below_quota
from runs.operations.holding import lock_run, lock_step
from runs.operations.moving import moved
from runs.operations.timing import ttl
from runs.selectors.answers import OfferedAttempt
from runs.selectors.assignments import assignment
from runs.selectors.clocks import out_of_time
from runs.selectors.limits import why_money_stops
from runs.states import AttemptState, RunState, StepState


@command("DispatchStep", audited=False)
def dispatch_step(ctx: Context, *, run_id: UUID, step_id: UUID, worker_id: UUID) -> OfferedAttempt:
    """Offer a step to a live worker: attempt, lease and token in one transaction, if it has a free slot.

    Guards, under the locks of worker, quota, project (shared), run and step: a slot; the tenant below its
    quota; the project Active; the run Running, or Accepted with its money set aside; within its limits; the
    step Pending and due, or its attempt parked and decided (then it is leased again). The first one moves the
    run to Running. Emits AttemptDispatched, RunStateChanged. Errors, all of which leave the step waiting:
    `NoSlot`, `QuotaReached`, `NothingToDispatch`, `ProjectNotActive`, `ReservationNotLive`.
    """
    worker = lock_worker_with_a_slot(worker_id, ctx.tenant_id)
    require_below_quota(ctx.tenant_id)
    lock_active_project(ctx)
    run = lock_run(ctx, run_id)
    step = lock_step(run, step_id)
    at = now()
    _require_dispatchable(run, at)
    attempt = _parked(run, step, at) or _new(run, step, at)
    usage.confirm_live(ctx, run.id)
    lease = _lease(run, attempt, worker, at)
    _offer(ctx, run, step, attempt, lease)
    Worker.objects.filter(pk=worker.pk).update(last_tenant=ctx.tenant_id)
    return assignment(run, step, attempt, lease)


def _require_dispatchable(run: Run, at: datetime) -> None:
    if run.state not in (RunState.ACCEPTED, RunState.RUNNING):
        raise NothingToDispatch(f"The run is {run.state}.")
    if out_of_time(run, at):
        raise NothingToDispatch("The run's time is over.")
    withdrawal = withdrawal_of(run.release_id)
    if withdrawal is not None and withdrawal.in_flight != InFlight.DRAIN:
        raise NothingToDispatch(
            f"The release {withdrawal.release} is {withdrawal.state}: its runs go no further."
        )
    if run.state == RunState.RUNNING and (stops := why_money_stops(run)):
        raise NothingToDispatch(stops)


def _parked(run: Run, step: Step, at: datetime) -> Attempt | None:
    """The step's attempt whose person has decided, to be leased again as the same attempt."""
    worker = (
        Attempt.objects.select_for_update(no_key=True)
        .filter(step_id=step.id, state=AttemptState.PARKED, resume_at__lte=at)
        .first()
    )
    if worker is not None:
        worker.run, worker.step = run, step
    return worker


def _new(run: Run, step: Step, at: datetime) -> Attempt:
    due = step.next_dispatch_at
    if step.state != StepState.PENDING or due is None or due > at:
        raise NothingToDispatch(f"The step is {step.state}, and does not wait for a worker.")
    number = Attempt.objects.filter(step_id=step.id).count() + 1
    return Attempt(run=run, step=step, number=number, dispatched_at=at)


def _lease(run: Run, attempt: Attempt, worker: Worker, at: datetime) -> Lease:
    return Lease(
        id=uuid7(),
        run=run,
        step_id=attempt.step_id,
        attempt=attempt,
        worker_id=worker.id,
        holder=worker.subject,
        worker_name=worker.name,
        fencing_token=next_token(),
        offered_at=at,
        expires_at=at + ttl(),
    )


def _offer(ctx: Context, run: Run, step: Step, attempt: Attempt, lease: Lease) -> None:
    dispatched = AttemptDispatched(
        run_id=run.id,
        step_id=step.id,
        attempt_id=attempt.id,
        lease_id=lease.id,
        fencing_token=lease.fencing_token,
        agent_id=step.agent_id,
        skill_id=step.skill_id or None,
    )
    if attempt.state == AttemptState.PARKED:
        attempt.lease_again(lease_id=lease.id)
    else:
        attempt.lease_id = lease.id
    record(ctx, attempt, "AttemptDispatched", dispatched)
    record(ctx, lease, "AttemptDispatched", detail={"worker": lease.worker_name})
    if step.state == StepState.PENDING:
        step.dispatch(at=lease.offered_at)
        record(ctx, step, "AttemptDispatched")
    if run.state == RunState.ACCEPTED:
        run.start(at=lease.offered_at)
        moved(ctx, run, "FirstAttemptDispatched")
