"""FollowReleaseDecree: what becomes of a run whose release was taken out of use."""

from uuid import UUID

from factory.kernel.commanding import command
from factory.kernel.context import Context
from registry.selectors import Withdrawal, withdrawal_of
from registry.states import InFlight
from runs.models import Run
from runs.operations.cancelling import cancel
from runs.operations.ending import fail_run
from runs.operations.holding import lock_run
from runs.states import RUN_OPEN, FailureClass


@command("FollowReleaseDecree")
def follow_withdrawal(ctx: Context, *, run_id: UUID) -> str:
    """Fail (`block`, class policy-denied) or cancel (`cancel`) an open run, as was decreed over its release.

    Idempotent: a run that is over, that was asked to stop already, or whose release lets it finish
    (`drain`) is left as it is. The cancellation is policy's: `policy:<revision>`. Returns the state.
    Emits RunFailed, or RunStateChanged and RunCancelled. Errors: `RunNotFound`.
    """
    run = lock_run(ctx, run_id)
    withdrawal = withdrawal_of(run.release_id) if run.state in RUN_OPEN else None
    if withdrawal is not None and withdrawal.in_flight == InFlight.BLOCK:
        fail_run(
            ctx,
            run,
            cause=f"Release{withdrawal.state}",
            failure_class=FailureClass.POLICY_DENIED,
            reason=_why(withdrawal),
        )
    elif withdrawal is not None and withdrawal.in_flight == InFlight.CANCEL:
        cancel(ctx, run, requested_by=policy_of(run), reason=_why(withdrawal))
    return str(run.state)


def policy_of(run: Run) -> str:
    """Policy as the one who asks a run to stop: in the revision that the run was accepted under."""
    return f"policy:{run.policy_revision}"


def _why(withdrawal: Withdrawal) -> str:
    return f"The release {withdrawal.release} was {withdrawal.state.lower()}: {withdrawal.reason}"
