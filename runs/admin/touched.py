"""What an act on a release would touch of the runs: the open ones, and the templates of its workflows."""

from collections.abc import Collection, Sequence
from uuid import UUID

from django.db.models import QuerySet
from django.urls import reverse

from factory.admin.show import seen
from factory.admin.touching import MOST, SHOWN, Row, Touched, touches
from factory.context import Context
from factory.identity.permissions import may
from registry.selectors import workflows_left, workflows_of
from runs.models import Lease, Run, RunTemplate
from runs.states import RUN_OPEN, LeaseState, TemplateState


@touches("release")
def open_runs(ctx: Context, about: UUID, reached: Collection[UUID]) -> Sequence[Touched]:
    """Those that rest on what is reached; each is listed where the reader may open it."""
    rows = Run.objects.filter(release_id__in=list(reached), state__in=sorted(RUN_OPEN))
    ids, here = _counted(ctx, rows)
    held = Lease.objects.filter(run_id__in=ids, state=LeaseState.HELD).count()
    listed = Run.objects.filter(pk__in=here).order_by("-created_at", "-id")[:SHOWN]
    shown = [
        Row(
            str(run.state),
            f"{seen(run.workflow_id)} …{str(run.id)[-8:]}",
            reverse("admin:runs_run_change", args=[run.id]),
            f"asked by {seen(run.requested_by)}, {run.created_at:%d %b %Y %H:%M} UTC"
            + ("" if run.release_id == about else "; it rests on it through another release"),
        )
        for run in (listed if may(ctx, "ReadRun") else ())
    ]
    says = f"{held} of their attempts are in a worker's hands now." if held else "No worker holds any of it."
    return [_touched("Open runs that rest on it", says if ids else "", ids, here, shown)]


@touches("release")
def kinds_of_runs(ctx: Context, about: UUID, reached: Collection[UUID]) -> Sequence[Touched]:
    """The templates of its workflows, and whether runs can begin from them afterwards."""
    workflows = workflows_of(about)
    rows = RunTemplate.objects.filter(workflow_id__in=workflows, state=TemplateState.ACTIVE)
    ids, here = _counted(ctx, rows)
    left = workflows_left(about, reached) if ids else frozenset()
    listed = RunTemplate.objects.filter(pk__in=here).order_by("name", "id")[:SHOWN]
    shown = [
        Row(
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
    return [_touched("Run templates of its workflows", "", ids, here, shown)]


def _counted(ctx: Context, rows: QuerySet[Run] | QuerySet[RunTemplate]) -> tuple[list[UUID], list[UUID]]:
    """The first of them, one more than are counted, and those that lie in the chosen project.

    In no order: an order would have the database look through all that there ever were.
    """
    found = list(rows.order_by().values_list("pk", "project_id")[: MOST + 1])
    here = [pk for pk, place in found if ctx.project_id in (None, place)]
    return [pk for pk, _ in found], here


def _touched(
    name: str, says: str, ids: Sequence[UUID], here: Sequence[UUID], shown: Sequence[Row]
) -> Touched:
    return Touched(name, len(ids), says, shown, len(ids) - len(here))
