"""CancelRun: stopping needs a valid token, a role and the database, and nothing else."""

from uuid import UUID

from factory.clock import now
from factory.commanding import command
from factory.context import Context
from factory.errors import FieldError, InsufficientRole, InvalidInput
from factory.recording import audit, save
from runs.errors import RunEnded
from runs.models import CancellationIntent, Run
from runs.operations.ending import finish_cancelling, settle_money, stop_everything
from runs.operations.holding import lock_run
from runs.operations.moving import move_to_cancelled, moved
from runs.states import RunState

MAY_CANCEL = frozenset({"Operator", "WorkspaceAdmin", "PlatformAdmin"})
MOST_REASON = 2000


@command("CancelRun")
def cancel_run(ctx: Context, *, run_id: UUID, reason: str) -> str:
    """Ask a run to stop, and answer with the state that it reached; the first intent stands.

    Guards: the requester (or who answers for them), an Operator, an administrator, or policy. An
    Accepted run is Cancelled at once. Otherwise: intent, then Cancelling, pending approvals Cancelled,
    offers and parked attempts settled; holders are told at their next renewal. With no attempt open it
    is Cancelled in the same transaction. Emits RunStateChanged, RunCancelled, ApprovalDecided,
    AttemptOutcomeRecorded. Errors: `RunNotFound`, `InvalidInput` (no reason), `InsufficientRole`,
    `RunEnded` when Completed or Failed.
    """
    run = lock_run(ctx, run_id)
    _require_may_cancel(ctx, run)
    if run.state in (RunState.COMPLETED, RunState.FAILED):
        raise RunEnded(f"The run is {run.state}: there is nothing left to stop.")
    if run.state not in (RunState.CANCELLING, RunState.CANCELLED):
        _cancel(ctx, run, _reason(reason))
    return str(run.state)


def _require_may_cancel(ctx: Context, run: Run) -> None:
    actor = ctx.actor
    own = {actor.subject, actor.person} & {run.requested_by, run.requester_person} - {""}
    if actor.kind != "system" and not own and not actor.roles & MAY_CANCEL:
        raise InsufficientRole("A run is cancelled by who requested it, by an Operator or an administrator.")


def _reason(reason: str) -> str:
    if not reason.strip() or len(reason) > MOST_REASON:
        fault = FieldError("/reason", f"From 1 to {MOST_REASON} characters.")
        raise InvalidInput("Cancelling a run needs a reason.", errors=[fault])
    return reason.strip()


def _cancel(ctx: Context, run: Run, reason: str) -> None:
    at = now()
    intent = CancellationIntent(run_id=run.id, requested_by=ctx.actor.subject, reason=reason, requested_at=at)
    save(intent)
    audit(ctx, "CancelRun", subject=f"run:{run.id}", reason=reason, stream=run.id)
    if run.state == RunState.ACCEPTED:
        run.cancel_at_once(at=at, reason=reason)
        move_to_cancelled(ctx, run, "CancelRequestedBeforeDispatch", intent)
        stop_everything(ctx, run, "RunCancelled", at)
        settle_money(ctx, run, before=RunState.ACCEPTED, cause="RunCancelled")
        return
    run.cancel(at=at, reason=reason)
    moved(ctx, run, "CancelRequested")
    stop_everything(ctx, run, "RunCancelled", at)
    finish_cancelling(ctx, run)
