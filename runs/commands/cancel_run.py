"""CancelRun: stopping needs a valid token, a role and the database, and nothing else."""

from uuid import UUID

from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import InsufficientRole
from factory.kernel.reasons import reasoned
from projects.selectors import people_behind
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
    if not is_theirs_to_stop(ctx, run):
        raise InsufficientRole("A run is cancelled by who requested it, by an Operator or an administrator.")
    if run.state in (RunState.COMPLETED, RunState.FAILED):
        raise RunEnded(f"The run is {run.state}: there is nothing left to stop.")
    if run.state in RUN_OPEN:
        cancel(ctx, run, requested_by=ctx.actor.subject, reason=checked(reason))
    return str(run.state)


def is_theirs_to_stop(ctx: Context, run: Run) -> bool:
    """Return whether a run is the caller's to cancel: by a role, or as who asked for it in whatever way."""
    actor, asked = ctx.actor, (run.requested_by, run.requester_person)
    own = {actor.subject, actor.person} - {""}
    if actor.kind == "system" or actor.roles & MAY_CANCEL or own.intersection(asked):
        return True
    return not own.isdisjoint(people_behind(asked))


def checked(reason: str) -> str:
    """The reason as it is kept. Raises `InvalidInput`."""
    return reasoned(reason, "Cancelling a run needs a reason.", most=MOST_REASON)
