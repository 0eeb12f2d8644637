"""A run about which the auditor found a violation stands still: better stopped than wrong."""

from collections.abc import Sequence
from uuid import UUID

import approvals.operations as approvals
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.hashing import digest
from factory.kernel.hints import WORK, wake
from factory.kernel.reasons import reasoned
from factory.kernel.recording import audit, save
from runs.errors import NotFrozen
from runs.models import Freeze
from runs.operations.advancing import end_if_spent
from runs.operations.clock import note_clock
from runs.operations.holding import lock_run

MOST_REASON = 2000
MOST_FINDINGS, MOST_FINDING = 100, 300
"""Findings that a freeze names, and characters of each: an entry of the audit log has its size, and what is
broken all over has to be frozen all the same."""


@command("FreezeRun")
def freeze_run(ctx: Context, *, run_id: UUID, findings: Sequence[str]) -> bool:
    """Let a run, and its clock, stand still because of these findings; whether it did not already.

    Findings that a PlatformAdmin looked at before, and lifted the freeze all the same, freeze it no more.
    Errors: `RunNotFound`.
    """
    kept = _bounded(findings)
    run = lock_run(ctx, run_id)
    known = {finding for past in Freeze.objects.filter(run_id=run.id) for finding in past.findings}
    if run.frozen_at is not None or set(kept) <= known:
        return False
    run.frozen_at = now()
    note_clock(ctx, run, run.frozen_at)
    save(Freeze(run_id=run.id, findings=kept, frozen_at=run.frozen_at))
    audit(
        ctx,
        "FreezeRun",
        subject=f"run:{run.id}",
        reason="The auditor found a violation.",
        detail={"findings": kept},
        stream=run.id,
    )
    return True


def _bounded(findings: Sequence[str]) -> list[str]:
    """The first in their order; of what is beyond the number and the hash, so that it is known again."""
    every = sorted({finding[:MOST_FINDING] for finding in findings})
    more = every[MOST_FINDINGS:]
    return [*every[:MOST_FINDINGS], *([f"and {len(more)} more ({digest(more)})"] if more else ())]


@command("LiftFreeze", strict=True)
def lift_freeze(ctx: Context, *, run_id: UUID, reason: str) -> None:
    """Let a frozen run go on, with the time that it, its approvals and its money had left.

    What it asked, and nobody could answer in time, is asked once more. Guards: a PlatformAdmin, with a
    reason. Emits ApprovalDecided and ApprovalRequested for those. Errors: `RunNotFound`, `InvalidInput`,
    `NotFrozen`.
    """
    reason = reasoned(reason, "Lifting a freeze needs a reason.", most=MOST_REASON)
    run = lock_run(ctx, run_id)
    if run.frozen_at is None:
        raise NotFrozen("The run is not frozen: there is nothing to lift.")
    freeze = Freeze.objects.select_for_update(no_key=True).get(run_id=run.id, lifted_at__isnull=True)
    freeze.lifted_at, freeze.lifted_by, freeze.lift_reason = now(), ctx.actor.subject, reason
    save(freeze)
    run.frozen_at = None
    note_clock(ctx, run, freeze.lifted_at)
    approvals.resume(ctx, run.id, since=freeze.frozen_at)
    end_if_spent(ctx, run)  # what was paid for it meanwhile may have passed its limit
    wake(WORK)
    audit(
        ctx,
        "LiftFreeze",
        subject=f"run:{run.id}",
        reason=reason,
        detail={"findings": freeze.findings},
        stream=run.id,
    )
