"""CloseAttention: a person has looked at what an Operator was asked to look at, and says what they found."""

from datetime import datetime
from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import VersionMismatch
from factory.kernel.reasons import reasoned
from factory.kernel.recording import audit, save
from runs.errors import NothingToClose, RunNotFound
from runs.models import Attempt, Receipt, Resolution, Run, Step
from runs.models.evidence import ACKNOWLEDGED
from runs.operations.holding import lock_run, lock_step
from runs.states import Attention

MOST_REASON = 4000


@command("CloseAttention", audited=False)
def close_attention(ctx: Context, *, run_id: UUID, step_id: UUID, reason: str, version: int) -> int:
    """Close the attention for a violation or a late effect; the step's version after it.

    Guards: an Operator; the step asks for it; `version` is the step's, which rises with everything that is
    reported late; a reason. It moves no state: what happened stays on record, with who looked at it. A doubt
    is settled by `resolve_step` and not closed. Audited. Errors: `RunNotFound`, `InvalidInput`,
    `NothingToClose`, `VersionMismatch` (409).
    """
    reason = reasoned(reason, "Closing it needs a reason.", most=MOST_REASON)
    run = lock_run(ctx, run_id)
    if not Step.objects.filter(pk=step_id, run_id=run.id).exists():
        raise RunNotFound(f"The run has no step {step_id}.")
    step = lock_step(run, step_id)
    if step.attention in (Attention.NONE, Attention.UNCERTAIN):
        raise NothingToClose(
            "Whether its effect happened is to be settled, with evidence."
            if step.attention
            else "Nobody was asked to look at the step, or somebody has."
        )
    if step.version != version:
        raise VersionMismatch(f"The step is at version {step.version}; look at it again.")
    _close(ctx, run, step, reason, now())
    return int(step.version)


def _close(ctx: Context, run: Run, step: Step, reason: str, at: datetime) -> None:
    closed = str(step.attention)
    save(
        Resolution(
            run_id=run.id,
            step_id=step.id,
            attempt_id=_attempt_of(step),
            resolution=ACKNOWLEDGED,
            evidence=reason,
            resolved_by=ctx.actor.subject,
            resolved_at=at,
        )
    )
    step.acknowledge(at=at)
    save(step)
    audit(
        ctx,
        "CloseAttention",
        subject=f"step:{step.id}",
        reason=reason,
        detail={"attention": closed},
        stream=run.id,
    )


def _attempt_of(step: Step) -> UUID:
    """The attempt whose effect raised it: of the last effect that was reported, else the last one of all."""
    effect = (
        Receipt.objects.filter(run_id=step.run_id, step_id=step.id, kind="effect")
        .order_by("-recorded_at")
        .first()
    )
    if effect is not None:
        return UUID(str(effect.attempt_id))
    return UUID(
        str(Attempt.objects.filter(step_id=step.id).order_by("-number").values_list("id", flat=True)[0])
    )
