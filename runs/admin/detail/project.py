"""What of runs, decisions and releases stands on the page of a project."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Q
from django.template.defaultfilters import pluralize
from django.urls import reverse

from approvals.selectors import everybody_who_may
from factory.console.dashboard import Card, CardLine, Figure, FigureShare
from factory.console.page_extensions import Missing, Part, able, part_of
from factory.console.show import seen
from factory.kernel.context import Context
from factory.kernel.permissions import may
from runs.admin.dashboard.cards import ORDER, TONES
from runs.commands.cancel_run import MAY_CANCEL
from runs.models import Run, WorkerPool
from runs.selectors.waiting import ALIVE
from runs.states import RUN_ACTIVE

MOST = 100
"""So many open runs are counted, and no more."""
POOLS = 20

able(10, "Ask for runs", by="SubmitRun", needed=True)
able(
    20, "Decide on requests", roles=everybody_who_may("shared-write"), needed=True,
    note="The policy's rule for an action says which of them; nobody decides on what they asked for.",
)  # fmt: skip
able(30, "Cancel runs of others", roles=MAY_CANCEL)
able(35, "Settle an attempt of which nobody is sure", by="ResolveUncertainStep")
able(40, "Take a release out of use", by="DeprecateRelease")


@part_of("project", 10)
def open_runs(ctx: Context, project_id: UUID, at: datetime) -> Sequence[Part]:
    """Return how many runs are not over, up to a bound."""
    if not may(ctx, "ListRuns") and not _wide(ctx):
        return ()
    rows = Run.objects.filter(project_id=project_id, state__in=sorted(RUN_ACTIVE))
    found = Counter(rows.values_list("state", flat=True)[: MOST + 1])
    many = sum(found.values())
    shares = tuple(FigureShare(TONES[state], found[state], state) for state in ORDER if found[state])
    note = (
        ", ".join(f"{each.count} {each.word}" for each in shares) if many <= MOST else "No more is counted."
    )
    url = reverse("admin:runs_run_changelist") if ctx.project_id == project_id else ""
    value = f"more than {MOST}" if many > MOST else str(many)
    return (Figure("Open runs", value, note or "None waits or is worked on.", shares=shares, url=url),)


def _wide(ctx: Context) -> bool:
    """Tell whether somebody has a role in the whole tenant, and looks at it as a whole."""
    return ctx.project_id is None and bool(ctx.actor.roles)


@part_of("project", 50)
def pools(ctx: Context, project_id: UUID, at: datetime) -> Sequence[Part]:
    """Return which workers take the project's work: the pools that serve its tenant."""
    if not may(ctx, "ListRuns") and not _wide(ctx):
        return ()
    online = Count("workers", filter=Q(workers__last_seen_at__gte=at - ALIVE))
    rows = WorkerPool.objects.filter(tenants__contains=[ctx.tenant_id]).annotate(online=online)
    items = tuple(
        CardLine(
            seen(row.name),
            state="Online" if row.online else "Offline",
            tone="good" if row.online else "bad",
            note=f"{row.online} worker{pluralize(row.online)} online; "
            + ("for this tenant alone" if row.tenants == [ctx.tenant_id] else "for other tenants too"),
        )
        for row in rows.order_by("name")[:POOLS]
    )
    empty = "No pool of workers serves this tenant: runs would wait. manage.py pool lets one serve it."
    more = reverse("admin:runs_worker_changelist") if may(ctx, "ListWorkers") else ""
    card = Card("Workers that serve it", items, empty, more_url=more, more_label="All workers")
    if not items:
        return (card, Missing(empty))
    if any(item.state == "Online" for item in items):
        return (card,)
    return (
        card,
        Missing("No worker that serves it is online, so runs would wait.", more and "Workers", more),
    )
