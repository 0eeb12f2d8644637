"""ResolveUncertainStep: a person finds out what nobody could know, and says so with evidence."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InvalidInput, VersionMismatch
from factory.kernel.hints import WORK, wake
from factory.kernel.reasons import length_faults
from factory.kernel.recording import audit, record, save
from factory.kernel.text import is_blank
from runs.engine import BECOMES, outcome_of_settling
from runs.errors import NothingToSettle, RunNotFound
from runs.models import Attempt, Resolution, Run, Step
from runs.models.evidence import RESOLUTIONS
from runs.operations.advancing import advance
from runs.operations.clock import note_clock
from runs.operations.ending import end_if_out_of_time
from runs.operations.holding import lock_run, lock_step
from runs.operations.resolving import Situations
from runs.states import AttemptState, Attention, FailureClass, StepState

MOST_EVIDENCE = 4000
CAUSES: Mapping[str, str] = {
    "effect-happened": "EffectHappened",
    "effect-did-not-happen": "EffectDidNotHappen",
    "give-up": "GivenUp",
}


@command("ResolveUncertainStep")
def resolve_step(
    ctx: Context, *, run_id: UUID, step_id: UUID, resolution: str, evidence: str, version: int
) -> int:
    """Settle a step whose attempt ended Uncertain; the step's version after it.

    Guards: an Operator; the step asks for it; `version` is the step's. *effect-happened*: → Succeeded;
    *effect-did-not-happen*: → Pending, one more attempt; *give-up*: → Failed (class uncertain). Of a run
    that is Cancelling or over only the evidence is kept. What becomes of the run, `outcome_of_settling` says
    beforehand. Errors: `RunNotFound`, `InvalidInput`,
    `NothingToSettle`, `VersionMismatch` (409).
    """
    _check(resolution, evidence)
    run = lock_run(ctx, run_id)
    if not Step.objects.filter(pk=step_id, run_id=run.id).exists():
        raise RunNotFound(f"The run has no step {step_id}.")
    step = lock_step(run, step_id)
    attempt = _uncertain(step)
    if step.version != version:
        raise VersionMismatch(f"The step is at version {step.version}; look at it again.")
    at = now()
    outcome = outcome_of_settling(Situations(run, at).of(step, attempt), resolution)
    _keep(ctx, run, step, attempt, resolution, evidence, at)
    if outcome.moves:
        _move(ctx, step, attempt, resolution, evidence, at)
        note_clock(ctx, run, at)
        advance(ctx, run)
        end_if_out_of_time(ctx, run)
    else:
        step.close_attention(at=at)
        record(ctx, step, "EvidenceRecorded", detail={"resolution": resolution})
    return int(step.version)


def _check(resolution: str, evidence: str) -> None:
    faults = []
    if resolution not in RESOLUTIONS:
        faults.append(FieldError("/resolution", f"One of {', '.join(RESOLUTIONS)}."))
    if len(evidence) > MOST_EVIDENCE:
        faults += length_faults(evidence, "The evidence", "/evidence", most=MOST_EVIDENCE)
    elif is_blank(evidence):
        faults.append(FieldError("/evidence", f"What was found out, in 1 to {MOST_EVIDENCE} characters."))
    if faults:
        raise InvalidInput("The resolution is not valid.", errors=faults)


def _uncertain(step: Step) -> Attempt:
    attempt: Attempt | None = Attempt.objects.filter(step_id=step.id).order_by("-number").first()
    if step.attention != Attention.UNCERTAIN or attempt is None or attempt.state != AttemptState.UNCERTAIN:
        raise NothingToSettle("The step has no attempt of which nobody knows how it ended.")
    return attempt


def _keep(
    ctx: Context, run: Run, step: Step, attempt: Attempt, resolution: str, evidence: str, at: datetime
) -> None:
    save(
        Resolution(
            run_id=run.id,
            step_id=step.id,
            attempt_id=attempt.id,
            resolution=resolution,
            evidence=evidence.strip(),
            resolved_by=ctx.actor.subject,
            resolved_at=at,
        )
    )
    audit(
        ctx,
        "ResolveUncertainStep",
        subject=f"step:{step.id}",
        reason=evidence.strip(),
        detail={"resolution": resolution, "attemptId": attempt.id},
        stream=run.id,
    )


def _move(ctx: Context, step: Step, attempt: Attempt, resolution: str, evidence: str, at: datetime) -> None:
    if BECOMES[resolution] == StepState.SUCCEEDED:
        step.succeed(at=at, output=attempt.output)
    elif BECOMES[resolution] == StepState.PENDING:
        step.retry(at=at, due_at=at)
        wake(WORK)
    else:
        step.fail(at=at, failure_class=FailureClass.UNCERTAIN, reason=f"Given up: {evidence.strip()}"[:2000])
    record(ctx, step, CAUSES[resolution])
