"""What stands against an answer to a request about a run."""

from collections.abc import Collection

from django.db.models import Exists, OuterRef, Q, QuerySet

from approvals.selectors import ApprovalView
from approvals.subjects import Obstacle
from registry.selectors import is_unloadable
from runs.errors import ReleaseRevoked, RunNotWorking
from runs.models import Run
from runs.states import RunState


def obstacles_of_run(answered: Collection[RunState], question: str) -> tuple[Obstacle, ...]:
    """Return the obstacles to an answer about a run: it is in none of these states, or its release is gone.

    `question` says, after the run's state, what nobody needs an answer to any more.
    """
    run: QuerySet[Run] = Run.objects.filter(pk=OuterRef("run_id"))

    def not_working(view: ApprovalView) -> RunNotWorking:
        return RunNotWorking(f"The run is {Run.objects.get(pk=view.run_id).state}: {question}.")

    return (
        Obstacle(Q(Exists(run.exclude(state__in=sorted(answered)))), not_working),
        Obstacle(Q(Exists(run.filter(is_unloadable(OuterRef("release_id"))))), _revoked),
    )


def _revoked(view: ApprovalView) -> ReleaseRevoked:
    return ReleaseRevoked("The release was taken back: nothing may be done with it any more.")
