"""Stopping new work in a project, and letting it go on."""

from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import TransitionRefused
from factory.kernel.locking import lock_many
from factory.kernel.reasons import reasoned
from factory.kernel.recording import audit, record, save
from projects.commands.reach import lock_own_project
from projects.errors import KillSwitchInProgress
from projects.events import ProjectStateChanged
from projects.models import Project, Suspension
from projects.states import ProjectState


@command("SuspendProject")
def suspend_project(ctx: Context, *, project_id: UUID, reason: str) -> str:
    """Accept no runs and dispatch nothing new, until the project is resumed.

    Open leases may finish; decisions and cancellation stay possible. Takes the project's lock
    alone, so that no submission is half-way when it returns. Guards: an admin of the project, a
    reason. Emits: `ProjectStateChanged`. Errors: `NotFound`, `InvalidInput`, `TransitionRefused`.
    """
    reason = reasoned(reason, "Suspending a project needs a reason.", most=2000)
    project = _lock_in(ctx, project_id, ProjectState.ACTIVE, "suspended")
    at = now()
    project.suspend(at=at, reason=reason)
    save(Suspension(project_id=project.id, suspended_at=at))
    _record(ctx, project, ProjectState.ACTIVE, "SuspendRequested", "SuspendProject", reason)
    return str(project.state)


@command("ResumeProject")
def resume_project(ctx: Context, *, project_id: UUID, reason: str) -> str:
    """Let a suspended project take work again; what was paused goes on with the time that it had left.

    Guards: an admin of the project, a reason. Emits: `ProjectStateChanged`. Errors: `NotFound`,
    `InvalidInput`, `TransitionRefused`, `KillSwitchInProgress` while runs are still being cancelled.
    """
    reason = reasoned(reason, "Resuming a project needs a reason.", most=2000)
    project = _lock_in(ctx, project_id, ProjectState.SUSPENDED, "resumed")
    if project.killing_since is not None:
        raise KillSwitchInProgress(
            "The project's open runs are still being cancelled; resume it when that is done."
        )
    at = now()
    project.resume(at=at)
    for pause in lock_many(Suspension.objects.filter(project_id=project.id, resumed_at=None)):
        pause.resumed_at = at
        save(pause)
    _record(ctx, project, ProjectState.SUSPENDED, "ResumeRequested", "ResumeProject", reason)
    return str(project.state)


@command("KillProject")
def kill_project(ctx: Context, *, project_id: UUID, reason: str) -> str:
    """Throw the kill switch: suspend a project and have its open runs cancelled, in one reasoned act.

    Takes the project's lock alone, so nothing is half-way in when it commits, and nothing starts after.
    The runs are cancelled one by one by who hears of it, and by a reconciler if that stops half-way; until
    each was asked to stop the project cannot be resumed. A second throw meanwhile changes nothing: the
    first reason stands. Guards: an admin of the project, a reason. Emits: `ProjectStateChanged`. Errors:
    `NotFound`, `InvalidInput`.
    """
    reason = reasoned(reason, "The kill switch needs a reason.", most=2000)
    project = lock_own_project(ctx, project_id)
    if project.killing_since is not None:
        return str(project.state)
    before, at = ProjectState(project.state), now()
    project.kill(at=at, by=ctx.actor.subject, reason=reason)
    if before == ProjectState.ACTIVE:
        save(Suspension(project_id=project.id, suspended_at=at))
    _record(ctx, project, before, "KillSwitchThrown", "KillProject", reason)
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
    event = ProjectStateChanged(
        project_id=project.id,
        tenant_id=project.tenant_id,
        from_state=str(before.value),
        to_state=str(project.state),
        cause=cause,
    )
    record(ctx, project, cause, event)
    audit(ctx, action, subject=f"project:{project.id}", reason=reason, stream=project.id)
