"""What the search finds of the runs."""

from collections.abc import Iterable

from django.urls import reverse

from factory.console.searching import SHOWN, Hit, SearchResults, Sought, finder
from factory.console.show import seen
from factory.kernel.context import Context
from factory.kernel.permissions import may
from runs.models import Run
from runs.selectors import finding

LOOKED = (
    f"By a whole id or key: all runs. By whoever asked: their newest. By the end of an id, a workflow or a "
    f"release: the newest {finding.NEWEST:,}; by the commit of an input: the newest {finding.INPUTS:,}."
)


@finder(10)
def runs(ctx: Context, what: Sought) -> SearchResults | None:
    """Runs by id, its ending, key, workflow, requester or commit."""
    if not may(ctx, "ListRuns"):
        return None
    if what.id is not None:
        run = finding.by_id(ctx, what.id)
        return SearchResults("Runs", (_hit(run, "by its id", exact=True),) if run else (), LOOKED)
    found: dict[object, Hit] = {}
    for why, rows in _ways(ctx, what):
        for run in rows:
            found.setdefault(run.id, _hit(run, why))
        if len(found) >= SHOWN:
            break
    return SearchResults("Runs", tuple(found.values())[:SHOWN], LOOKED)


def _ways(ctx: Context, what: Sought) -> Iterable[tuple[str, Iterable[Run]]]:
    """Each way in its turn, asked only if those before have left room."""
    newest = ("-created_at", "-id")
    yield "by its key", finding.by_key(ctx, what.text)[:SHOWN]
    near = finding.among_newest(ctx, ending=what.ending, words=what.text, commit=what.commit, most=SHOWN)
    yield "by id, workflow or release", finding.by_ids(ctx, near).order_by(*newest)
    yield "by who asked", finding.of_people(ctx, what.text).order_by(*newest)[:SHOWN]
    if what.commit:
        given = finding.of_input(ctx, what.commit, SHOWN)
        yield "by the commit of its input", finding.by_ids(ctx, given).order_by(*newest)


def _hit(run: Run, why: str, *, exact: bool = False) -> Hit:
    return Hit(
        title=f"{run.workflow_id} …{str(run.id)[-8:]}",
        url=reverse("admin:runs_run_change", args=[run.id]),
        state=run.state,
        note=f"{why}; asked by {seen(run.requested_by)}, {run.created_at:%d %b %Y %H:%M} UTC, "
        f"key {seen(run.idempotency_key)}",
        exact=exact,
    )
