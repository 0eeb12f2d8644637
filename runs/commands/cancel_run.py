"""CancelRun: stopping needs a valid token, a role and the database, and nothing else."""

from uuid import UUID

from factory.commanding import command
from factory.context import Context
from factory.errors import InsufficientRole
from factory.reasons import reasoned
from runs.errors import RunEnded
from runs.models import Run
from runs.operations.cancelling import cancel
from runs.operations.holding import lock_run
from runs.states import RUN_OPEN, RunState

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
    if run.state in RUN_OPEN:
        cancel(ctx, run, requested_by=ctx.actor.subject, reason=checked(reason))
    return str(run.state)


def _require_may_cancel(ctx: Context, run: Run) -> None:
    actor = ctx.actor
    own = {actor.subject, actor.person} & {run.requested_by, run.requester_person} - {""}
    if actor.kind != "system" and not own and not actor.roles & MAY_CANCEL:
        raise InsufficientRole("A run is cancelled by who requested it, by an Operator or an administrator.")


def checked(reason: str) -> str:
    """The reason as it is kept. Raises `InvalidInput`."""
    return reasoned(reason, "Cancelling a run needs a reason.", most=MOST_REASON)
