"""After a torn restore the sums of a run's usage may not be those of its records: they are added up anew."""

from uuid import UUID

from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.recording import audit
from runs.operations.holding import lock_run
from usage.operations import add_up_again


@command("AddUpUsageAgain")
def add_up_usage(ctx: Context, *, run_id: UUID) -> None:
    """Replace the sums of a run's usage by what its records add up to, under what the run is pinned to.

    The records lead: they are append-only, and no state moves, so nothing is journaled. Errors:
    `RunNotFound`.
    """
    run = lock_run(ctx, run_id)
    add_up_again(run.id, workflow_id=run.workflow_id, release_id=run.release_id)
    audit(
        ctx,
        "AddUpUsageAgain",
        subject=f"run:{run_id}",
        reason="What was added up of its usage was not the sum of its records after a restore.",
        stream=run_id,
    )
