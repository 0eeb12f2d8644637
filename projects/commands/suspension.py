"""Stopping new work in a project, and letting it go on."""

from uuid import UUID

from factory.clock import now
from factory.commanding import command
from factory.context import Context
from factory.errors import TransitionRefused
from factory.recording import audit, record
from projects.commands.reach import lock_own_project
from projects.events import ProjectStateChanged
from projects.inputs import refuse, text_faults
from projects.models import Project
from projects.states import ProjectState


@command("SuspendProject")
def suspend_project(ctx: Context, *, project_id: UUID, reason: str) -> str:
    """Accept no runs and dispatch nothing new, until the project is resumed.

    Open leases may finish; decisions and cancellation stay possible. Takes the project's lock
    alone, so that no submission is half-way when it returns. Guards: an admin of the project, a
    reason. Emits: `ProjectStateChanged`. Errors: `NotFound`, `InvalidInput`, `TransitionRefused`.
    """
    refuse(text_faults(reason, "/reason", limit=2000), "Suspending a project needs a reason.")
    project = _lock_in(ctx, project_id, ProjectState.ACTIVE, "suspended")
    project.suspend(at=now(), reason=reason.strip())
    _record(ctx, project, ProjectState.ACTIVE, "SuspendRequested", "SuspendProject", reason)
    return str(project.state)


@command("ResumeProject")
def resume_project(ctx: Context, *, project_id: UUID, reason: str) -> str:
    """Let a suspended project take work again.

    Guards: an admin of the project, a reason. Emits: `ProjectStateChanged`. Errors: `NotFound`,
    `InvalidInput`, `TransitionRefused`.
    """
    refuse(text_faults(reason, "/reason", limit=2000), "Resuming a project needs a reason.")
    project = _lock_in(ctx, project_id, ProjectState.SUSPENDED, "resumed")
    project.resume(at=now())
    _record(ctx, project, ProjectState.SUSPENDED, "ResumeRequested", "ResumeProject", reason)
    return str(project.state)


def _lock_in(ctx: Context, project_id: UUID, state: ProjectState, what: str) -> Project:
    project = lock_own_project(ctx, project_id)
    if project.state != state:
        raise TransitionRefused(
            f"The project {project.slug} is {project.state}; only one that is {state} can be {what}."
        )
    return project


def _record(
    ctx: Context, project: Project, before: ProjectState, cause: str, action: str, reason: str
) -> None:
    told = ProjectStateChanged(
        project_id=project.id,
        tenant_id=project.tenant_id,
        from_state=str(before.value),
        to_state=str(project.state),
        cause=cause,
    )
    record(ctx, project, cause, told)
    audit(ctx, action, subject=f"project:{project.id}", reason=reason.strip(), stream=project.id)
