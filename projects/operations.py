"""Steps for the commands of the apps above, inside their transaction."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.errors import NotFound
from factory.kernel.locking import lock, lock_many
from factory.kernel.recording import record
from projects.errors import ProjectNotActive
from projects.events import DelegationChanged
from projects.models import Delegation, Project
from projects.selectors import ProjectView, delegations_of, holds, project_view, reaches
from projects.states import DelegationState, ProjectState


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
    """Record that the kill switch has reached every open run; the caller has checked that it is so.

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
    project = lock_project(ctx)
    if project.state != ProjectState.ACTIVE:
        raise ProjectNotActive(
            f"The project {project.slug} is {project.state}: it takes no new work until it is resumed.",
            extra={"projectState": project.state},
        )
    return project


@operation
def hold_delegation(ctx: Context, delegation_id: UUID, at: datetime) -> bool:
    """Return whether a delegation is in force at `at`, and keep it so until the caller commits.

    The shared lock makes a revocation wait, so that what rests on the delegation is before its end.
    """
    missing = NotFound("There is no such delegation here.")
    row = lock(Delegation, delegation_id, missing=missing, shared=True)
    return row.state == DelegationState.ACTIVE and at < row.expires_at


@operation
def revoke_all_of(ctx: Context, rows: Iterable[Delegation], cause: str) -> int:
    """End delegations whose ground is gone; `DelegationChanged` for each. Says how many there were."""
    locked = lock_many(Delegation, [row.id for row in rows])
    active = [row for row in locked if row.state == DelegationState.ACTIVE]
    at = now()
    for row in active:
        end_delegation(ctx, row, cause, at)
    return len(active)


@operation
def revoke_groundless(ctx: Context, subject: str, cause: str) -> None:
    """End the delegations of roles that somebody does not hold any more, and those to who is no member."""
    gone = [row for row in delegations_of(subject) if not _has_ground(row)]
    revoke_all_of(ctx, gone, cause)


def _has_ground(row: Delegation) -> bool:
    return holds(row.delegator, row.project_id, row.role) and reaches(row.delegate, row.project_id)


def end_delegation(ctx: Context, row: Delegation, cause: str, at: datetime) -> None:
    """Revoke a locked Active delegation; `DelegationChanged`."""
    row.revoke(at=at, by=ctx.actor.subject)
    record(ctx, row, cause, delegation_changed(row))


def delegation_changed(row: Delegation) -> DelegationChanged:
    """Return the event of a delegation as it is now."""
    return DelegationChanged(
        delegation_id=row.id,
        tenant_id=row.tenant_id,
        project_id=row.project_id,
        state=str(row.state),
        expires_at=row.expires_at,
        delegator=row.delegator,
        delegate=row.delegate,
        role=row.role,
    )
