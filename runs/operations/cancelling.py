"""Cancelling a locked run: by whom and why first, then each part of it by its own right."""

from factory.kernel.clock import now
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.recording import audit, save
from runs.models import CancellationIntent, Run
from runs.operations.ending import finish_cancelling, settle_money, stop_everything
from runs.operations.moving import move_to_cancelled, moved
from runs.states import RunState


@operation
def cancel(ctx: Context, run: Run, *, requested_by: str, reason: str) -> None:
    """Cancel an open run (`RUN_OPEN`); the intent keeps who asked, who need not be who carries it out."""
    at = now()
    intent = CancellationIntent(run_id=run.id, requested_by=requested_by, reason=reason, requested_at=at)
    save(intent)
    audit(
        ctx,
        "CancelRun",
        subject=f"run:{run.id}",
        reason=reason,
        detail={"requestedBy": requested_by},
        stream=run.id,
    )
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
