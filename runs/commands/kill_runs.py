"""What the kill switch of a project does to its runs, one command each."""

from dataclasses import replace
from uuid import UUID

from factory.kernel.commanding import command
from factory.kernel.context import Context
from projects.operations import finish_kill, lock_project
from runs.models import Run
from runs.operations.cancelling import cancel
from runs.operations.holding import lock_run
from runs.selectors.limits import project_of
from runs.states import RUN_OPEN


@command("CancelKilledRun")
def cancel_killed_run(ctx: Context, *, run_id: UUID) -> str:
    """Cancel an open run of a project whose kill switch was thrown; its intent names who threw it.

    Idempotent: a run that is over, was asked to stop already, or whose project is not being killed is
    left as it is. Returns the state. Emits what CancelRun does. Errors: `RunNotFound`.
    """
    project = lock_project(replace(ctx, project_id=project_of(run_id)))
    run = lock_run(ctx, run_id)
    if project.killing_since is not None and run.state in RUN_OPEN:
        cancel(ctx, run, requested_by=project.killed_by, reason=f"Kill switch: {project.kill_reason}")
    return str(run.state)


@command("FinishKillSwitch")
def finish_kill_switch(ctx: Context, *, project_id: UUID) -> bool:
    """Note on the project that every open run was asked to stop; whether that is so.

    Nothing starts in a suspended project, so what is found now stays true.
    """
    if Run.objects.filter(project_id=project_id, state__in=sorted(RUN_OPEN)).exists():
        return False
    finish_kill(ctx, project_id)
    return True
