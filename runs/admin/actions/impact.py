"""What an act on a release would touch of the runs: the open ones, and the templates of its workflows."""

from collections.abc import Collection, Sequence
from uuid import UUID

from django.template.defaultfilters import pluralize
from django.urls import reverse

from factory.console.impact import MOST, SHOWN, ImpactRow, Touched, counted, touches
from factory.console.show import seen
from factory.kernel.context import Context
from factory.kernel.permissions import may
from registry.selectors import workflows_left, workflows_of
from runs.models import Lease, Run, RunTemplate
from runs.states import RUN_OPEN, LeaseState, TemplateState


@touches("release")
def open_runs(ctx: Context, about: UUID, reached: Collection[UUID]) -> Sequence[Touched]:
    """Those that rest on what is reached; each is listed where the reader may open it."""
    rows = Run.objects.filter(release_id__in=list(reached), state__in=sorted(RUN_OPEN))
    here, elsewhere = counted(ctx, rows)
    total = len(here) + elsewhere
    listed = Run.objects.filter(pk__in=here).order_by("-created_at", "-id")[:SHOWN]
    shown = [
        ImpactRow(
            str(run.state),
            f"{seen(run.workflow_id)} …{str(run.id)[-8:]}",
            reverse("admin:runs_run_change", args=[run.id]),
            f"asked by {seen(run.requested_by)}, {run.created_at:%d %b %Y %H:%M} UTC"
            + ("" if run.release_id == about else "; it rests on it through another release"),
        )
        for run in (listed if may(ctx, "ReadRun") else ())
    ]
    says = _held(reached, total) if total else ""
    return [Touched("Open runs that rest on it", total, says, shown, elsewhere)]


def _held(reached: Collection[UUID], runs: int) -> str:
    """Return how many attempts workers hold now, of all open runs and not only of those that are counted."""
    rows = Lease.objects.filter(
        state=LeaseState.HELD, run__release_id__in=list(reached), run__state__in=sorted(RUN_OPEN)
    )
    held = len(rows.order_by().values_list("pk", flat=True)[: MOST + 1])
    if not held:
        return f"No worker holds any of {pluralize(runs, 'it,them')}."
    least = "At least " if held > MOST else ""
    return f"{least}{held} of their attempts are in a worker's hands now."


@touches("release")
def kinds_of_runs(ctx: Context, about: UUID, reached: Collection[UUID]) -> Sequence[Touched]:
    """The templates of its workflows, and whether runs can begin from them afterwards."""
    workflows = workflows_of(about)
    rows = RunTemplate.objects.filter(workflow_id__in=workflows, state=TemplateState.ACTIVE)
    here, elsewhere = counted(ctx, rows)
    total = len(here) + elsewhere
    left = workflows_left(about, reached) if total else frozenset()
    listed = RunTemplate.objects.filter(pk__in=here).order_by("name", "id")[:SHOWN]
    shown = [
        ImpactRow(
            str(one.state),
            seen(one.name),
            reverse("admin:runs_runtemplate_change", args=[one.id]),
            f"workflow {seen(one.workflow_id)}: "
            + (
                "runs can begin with another Published release"
                if one.workflow_id in left
                else "no other Published release has it, so no run can begin"
            ),
        )
        for one in (listed if may(ctx, "ListRunTemplates") else ())
    ]
    return [Touched("Run templates of its workflows", total, "", shown, elsewhere)]
