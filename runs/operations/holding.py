"""Locks in the order of the control plane, and the proof that a worker speaks for an attempt.

Every command about a run locks the run first, so whatever else it holds, it has the run to itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from factory.kernel.context import Context
from factory.kernel.errors import DomainError
from factory.kernel.locking import lock
from factory.kernel.recording import open_work
from runs.errors import AttemptNotFound, LeaseOver, RunFrozen, RunNotFound, StaleFencingToken
from runs.models import Attempt, Lease, Run, Step
from runs.selectors.clocks import work_out
from runs.states import LEASE_CURRENT, LeaseState, RunState

WHILE_FROZEN = frozenset(
    {
        *("CancelRun", "CancelKilledRun", "FollowReleaseDecree", "FreezeRun", "LiftFreeze"),
        *("RecordReceipts", "RecoverLease", "AddUpUsageAgain", "WithdrawOffer", "WithdrawFrozenOffer"),
    }
)
"""What may happen to a frozen run: it may be stopped, and looked at; what was paid for it is kept; and what
nobody could acquire is taken back, so that it holds no worker."""


@dataclass(slots=True)
class LockedAttempt:
    """An attempt with what it belongs to, all locked."""

    run: Run
    step: Step
    attempt: Attempt


@dataclass(slots=True)
class HeldAttempt(LockedAttempt):
    """Hold a locked attempt under the caller's current lease."""

    lease: Lease


def lock_run(ctx: Context, run_id: UUID) -> Run:
    """The run, in the caller's tenant and project. Raises `RunNotFound`."""
    missing = RunNotFound(f"There is no run {run_id} here.")
    run = lock(Run, run_id, missing=missing)
    if ctx.project_id is not None and run.project_id != ctx.project_id:
        raise missing
    _refuse_frozen(run)
    work_out([run])
    return run


def _refuse_frozen(run: Run) -> None:
    """Refuse to move what the auditor has doubts about. It may be cancelled, and nothing else."""
    operation = open_work().operation
    ends = operation == "ExpireLease" and run.state == RunState.CANCELLING
    if run.frozen_at is not None and not ends and operation not in WHILE_FROZEN:
        raise RunFrozen(
            "The auditor found a violation about this run, so it stands still. It can be cancelled; for "
            "anything else a PlatformAdmin has to lift the freeze first, with a reason."
        )


def lock_step(run: Run, step_id: UUID) -> Step:
    """A step of a locked run."""
    step = lock(Step, step_id, missing=RunNotFound(f"The run has no step {step_id}."))
    step.run = run
    return step


def lock_attempt(ctx: Context, attempt_id: UUID) -> LockedAttempt:
    """Run, step and attempt, from the top. Raises `AttemptNotFound`."""
    missing = AttemptNotFound(f"There is no attempt {attempt_id} here.")
    parents = Attempt.objects.filter(pk=attempt_id).values_list("run_id", "step_id").first()
    if parents is None:
        raise missing
    run = lock_run(ctx, parents[0])
    step = lock_step(run, parents[1])
    attempt = lock(Attempt, attempt_id, missing=missing)
    attempt.run, attempt.step = run, step
    return LockedAttempt(run, step, attempt)


def current_lease(ctx: Context, locked: LockedAttempt, lease_id: UUID, fencing_token: int) -> Lease | None:
    """The lease, if it is current, the caller's, and under this token: all asked in the locking statement."""
    lease = (
        Lease.objects.select_for_update(no_key=True)
        .filter(
            pk=lease_id,
            attempt_id=locked.attempt.id,
            fencing_token=fencing_token,
            holder=ctx.actor.subject,
            state__in=sorted(LEASE_CURRENT),
        )
        .first()
    )
    if lease is not None:
        lease.run = locked.run
    return lease


def lock_held(ctx: Context, attempt_id: UUID, lease_id: UUID, fencing_token: int) -> HeldAttempt:
    """All that a holder speaks for. Raises `AttemptNotFound`, `StaleFencingToken` (409) or `LeaseOver` (410).

    An offer that was not acquired gives no right to anything but to be acquired.
    """
    locked = lock_attempt(ctx, attempt_id)
    lease = current_lease(ctx, locked, lease_id, fencing_token)
    if lease is None or lease.state != LeaseState.HELD:
        raise why_not_held(ctx, locked, lease_id, fencing_token)
    return HeldAttempt(locked.run, locked.step, locked.attempt, lease)


def why_not_held(ctx: Context, locked: LockedAttempt, lease_id: UUID, fencing_token: int) -> DomainError:
    """The refusal for who holds no current lease: over, if it was theirs and lapsed; else stale."""
    row = Lease.objects.filter(pk=lease_id, attempt_id=locked.attempt.id).first()
    own = row is not None and (row.holder, row.fencing_token) == (ctx.actor.subject, fencing_token)
    extra = {
        "subject": f"attempt:{locked.attempt.id}",
        "stream": locked.run.id,
        "evidence": _evidence(ctx, locked, lease_id, fencing_token),
    }
    if own and row is not None and row.state in (LeaseState.EXPIRED, LeaseState.REVOKED):
        return LeaseOver(f"The lease ended ({row.state}): stop, and report nothing more.", extra=extra)
    return StaleFencingToken("This is not the attempt's current lease: nothing was changed.", extra=extra)


def _evidence(ctx: Context, locked: LockedAttempt, lease_id: UUID, fencing_token: int) -> Mapping[str, Any]:
    current = Lease.objects.filter(attempt_id=locked.attempt.id).order_by("-fencing_token").first()
    return {
        "holder": ctx.actor.subject,
        "leaseId": str(lease_id),
        "fencingToken": fencing_token,
        "currentToken": current.fencing_token if current else None,
        "currentHolder": current.holder if current else None,
    }
