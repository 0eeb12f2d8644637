"""Steps for the commands of the apps above, inside their transaction."""

from uuid import UUID

from factory.clock import now
from factory.commanding import operation
from factory.context import Context
from factory.errors import NotFound
from factory.locking import lock
from factory.recording import record
from projects.errors import ProjectNotActive
from projects.models import Project
from projects.selectors import ProjectView, project_view
from projects.states import ProjectState


@operation
def lock_project(ctx: Context) -> ProjectView:
    """Take the shared lock on the caller's project, whatever its state.

    While it is held nobody can suspend the project; several may hold it. Raises `NotFound`.
    """
    missing = NotFound("There is no such project here.")
    if ctx.project_id is None:
        raise missing
    return project_view(lock(Project, ctx.project_id, missing=missing, shared=True))


@operation
def finish_kill(ctx: Context, project_id: UUID) -> None:
    """The kill switch has reached every open run; the caller holds nothing below, and checks that it is so.

    Takes the project's lock alone. Does nothing where no kill switch is at work. Raises `NotFound`.
    """
    project = lock(Project, project_id, missing=NotFound("There is no such project here."))
    if project.killing_since is not None:
        project.finish_kill(at=now())
        record(ctx, project, "KillSwitchFinished")


@operation
def lock_active_project(ctx: Context) -> ProjectView:
    """Take the shared lock and require that the project accepts work (rule for the corners 17).

    Raises `NotFound`, or `ProjectNotActive` when it is suspended.
    """
    found = lock_project(ctx)
    if found.state != ProjectState.ACTIVE:
        raise ProjectNotActive(
            f"The project {found.slug} is {found.state}: it takes no new work until it is resumed.",
            extra={"projectState": found.state},
        )
    return found
