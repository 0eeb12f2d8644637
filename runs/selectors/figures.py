"""Figures about runs for people who look at the whole: aggregates over bounded time, each by an index."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now

from factory.kernel.context import Context
from runs.models import Lease, Run, Step, Worker
from runs.selectors.waiting import ALIVE
from runs.states import LEASE_CURRENT, RUN_ACTIVE, Attention, LeaseState

NEWEST = 5_000
"""Of more attempts than that in a span, the newest are measured."""


def runs_in(ctx: Context) -> QuerySet[Run]:
    """The runs of the place."""
    rows: QuerySet[Run] = Run.objects.all()
    return rows if ctx.project_id is None else rows.filter(project_id=ctx.project_id)


def open_by_state(ctx: Context) -> dict[str, int]:
    """Return how many runs are open, by state."""
    rows = runs_in(ctx).filter(state__in=sorted(RUN_ACTIVE))
    return dict(rows.values_list("state").annotate(n=Count("pk")))


def attention_steps(ctx: Context) -> QuerySet[Step]:
    """The steps that a person has to look at."""
    rows: QuerySet[Step] = Step.objects.exclude(attention=Attention.NONE)
    return rows if ctx.project_id is None else rows.filter(run__project_id=ctx.project_id)


@dataclass(frozen=True, slots=True)
class Ended:
    """So many runs ended in one slot of time, in one state and, if they failed, of one class."""

    slot: int
    state: str
    failure_class: str
    count: int


_ENDED = """
SELECT width_bucket(extract(epoch FROM finished_at), %(start)s, %(end)s, %(slots)s) AS slot,
       state, failure_class, count(*)
FROM runs_run
WHERE tenant_id = %(tenant)s
  AND finished_at >= to_timestamp(%(start)s) AND finished_at < to_timestamp(%(end)s) {project}
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


def ended(ctx: Context, start: datetime, end: datetime, slots: int) -> list[Ended]:
    """The runs that ended in `[start, end)`, by equal slots of it, which are numbered from 1."""
    return [Ended(*row) for row in _rows(_ENDED, ctx, start, end, slots)]


@dataclass(frozen=True, slots=True)
class Took:
    """Hold within which seconds half, and 95 of 100, of the attempts of one slot of time were over."""

    slot: int
    count: int
    half: float
    most: float


_TOOK = """
SELECT width_bucket(extract(epoch FROM settled_at), %(start)s, %(end)s, %(slots)s), count(*),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds)
FROM (
    SELECT a.settled_at, extract(epoch FROM a.settled_at - a.dispatched_at) AS seconds
    FROM runs_attempt a {join}
    WHERE a.tenant_id = %(tenant)s AND a.settled_at >= to_timestamp(%(start)s)
      AND a.settled_at < to_timestamp(%(end)s) AND a.approval_id IS NULL {project}
    ORDER BY a.settled_at DESC LIMIT %(newest)s
) AS newest GROUP BY 1 ORDER BY 1
"""


def took(ctx: Context, start: datetime, end: datetime, slots: int) -> list[Took]:
    """Return how long attempts took that asked nobody, by slots; of more than `NEWEST` the newest."""
    join = "JOIN runs_run r ON r.id = a.run_id" if ctx.project_id else ""
    rows = _rows(_TOOK, ctx, start, end, slots, join=join, project="AND r.project_id = %(project)s")
    return [Took(slot, count, float(half), float(most)) for slot, count, half, most in rows]


def _rows(
    sql: str, ctx: Context, start: datetime, end: datetime, slots: int, *, join: str = "",
    project: str = "AND project_id = %(project)s",
) -> Sequence[Any]:  # fmt: skip
    params = {
        "tenant": ctx.tenant_id, "project": ctx.project_id, "slots": slots, "newest": NEWEST,
        "start": start.timestamp(), "end": end.timestamp(),
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(sql.format(join=join, project=project if ctx.project_id else ""), params)
        rows: Sequence[Any] = cursor.fetchall()
    return rows


@dataclass(frozen=True, slots=True)
class Crew:
    """The workers that serve a tenant: who is there, who was lately, how much of them is in use, and how many
    leases of the silent ones are over and stand."""

    online: int
    slots: int
    draining: int
    silent: tuple[tuple[UUID, str, datetime], ...]
    in_use: int
    overdue: int


def crew(ctx: Context, at: datetime, lately: datetime, grace: timedelta) -> Crew:
    """Those that were seen since `lately`; leases are counted for this tenant alone, and are over when they
    ended longer than `grace` ago."""
    rows = Worker.objects.filter(pool__tenants__contains=[ctx.tenant_id], last_seen_at__gte=lately)
    columns = ("id", "name", "last_seen_at", "max_concurrency", "draining_at")
    known = list(rows.order_by("last_seen_at", "name").values_list(*columns, named=True))
    alive = at - ALIVE
    here = [one for one in known if one.last_seen_at >= alive]
    silent = tuple((one.id, one.name, one.last_seen_at) for one in known if one.last_seen_at < alive)
    current = Lease.objects.filter(state__in=sorted(LEASE_CURRENT))
    counts = current.aggregate(
        in_use=Count("pk", filter=Q(worker_id__in=[one.id for one in here])),
        overdue=Count("pk", filter=Q(worker_id__in=[key for key, *_ in silent], expires_at__lte=at - grace)),
    )
    return Crew(
        online=len(here),
        slots=sum(one.max_concurrency for one in here),
        draining=sum(one.draining_at is not None for one in here),
        silent=silent,
        **counts,
    )


def lapsed(ctx: Context, before: datetime) -> list[datetime]:
    """The ends of the leases of the place that ended before `before` and that nobody has recovered, oldest
    first, up to a hundred."""
    rows = Lease.objects.filter(state__in=sorted(LEASE_CURRENT), expires_at__lt=before, run__frozen_at=None)
    if ctx.project_id is not None:
        rows = rows.filter(run__project_id=ctx.project_id)
    return list(rows.order_by("expires_at", "id").values_list("expires_at", flat=True)[:100])


@dataclass(frozen=True, slots=True)
class Hands:
    """Count the attempts that workers hold, those that they are offered and have not taken, and of both those
    whose time is over, although they stand."""

    held: int
    offered: int
    over: int


def in_hands(leases: QuerySet[Lease]) -> Hands:
    """The numbers of some leases, told apart: nobody works at what is only offered."""
    current = leases.filter(state__in=sorted(LEASE_CURRENT)).order_by()
    over = Count("pk", filter=Q(expires_at__lte=Now()))
    rows = current.values_list("state").annotate(many=Count("pk"), late=over)
    counts = {state: (many, late) for state, many, late in rows}
    held, offered = (counts.get(state, (0, 0)) for state in (LeaseState.HELD, LeaseState.OFFERED))
    return Hands(held[0], offered[0], held[1] + offered[1])
