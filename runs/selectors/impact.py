"""How many runs rest on a project or a release: what an act on it would reach."""

from uuid import UUID

from django.db.models import Q

from registry.selectors import resting_on
from runs.models import Lease, Run
from runs.states import RUN_OPEN, LeaseState


def of_project(project_id: UUID) -> dict[str, int]:
    """Runs that the kill switch would cancel, and attempts that somebody holds."""
    return _counted(Q(project_id=project_id))


def of_release(release_id: UUID) -> dict[str, int]:
    """Runs that rest on a release, also through others that need it."""
    return _counted(Q(release_id__in=resting_on(release_id)))


def _counted(which: Q) -> dict[str, int]:
    rows = Run.objects.filter(which)
    held = Lease.objects.filter(run_id__in=rows.values("id"), state=LeaseState.HELD)
    open_runs = rows.filter(state__in=sorted(RUN_OPEN))
    return {"openRuns": open_runs.count(), "heldAttempts": held.count()}
