"""How long people take to decide: one aggregate over a bounded time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from django.db.models import Aggregate, Count, DurationField, ExpressionWrapper, F, Q, Value

from approvals.selectors.visibility import visible
from approvals.states import ApprovalState
from factory.kernel.context import Context

NEWEST = 5_000
"""Of more decided requests than that, the newest are measured."""
BOUNDS = tuple(timedelta(minutes=m) for m in (15, 60, 4 * 60, 12 * 60, 24 * 60))
NAMES = ("under 15 min", "15 to 60 min", "1 to 4 h", "4 to 12 h", "12 to 24 h", "over 24 h")


class Half(Aggregate):
    """The value that half are below."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = DurationField()


@dataclass(frozen=True, slots=True)
class Ages:
    """Requests by age, in the classes of `NAMES`: at their decision, and, of those that wait, now."""

    decided: Sequence[int]
    pending: Sequence[int]
    half: timedelta | None
    late: int
    """How many that wait are past half of their time."""


def ages(ctx: Context, since: datetime, at: datetime) -> Ages:
    """Of what the caller sees: decided requests that were asked since `since`, and all that wait."""
    rows = visible(ctx).order_by()
    took = ExpressionWrapper(F("decided_at") - F("requested_at"), output_field=DurationField())
    closed = rows.filter(requested_at__gte=since, decided_at__isnull=False, waiver__isnull=True)
    newest = closed.annotate(took=took).order_by("-requested_at", "-id")[:NEWEST]
    figures = newest.aggregate(half=Half("took"), **_classes("took"))
    age = ExpressionWrapper(Value(at) - F("requested_at"), output_field=DurationField())
    past = Q(requested_at__lt=at - (F("expires_at") - F("requested_at")) / 2)
    waiting = rows.filter(state=ApprovalState.PENDING).annotate(age=age)
    now = waiting.aggregate(late=Count("pk", filter=past), **_classes("age"))
    return Ages(_counts(figures), _counts(now), figures["half"], now["late"])


def _classes(name: str) -> dict[str, Count]:
    edges = [None, *BOUNDS, None]
    counts = {}
    for n, (low, high) in enumerate(pairwise(edges)):
        within = Q()
        within &= Q(**{f"{name}__gte": low}) if low else Q()
        within &= Q(**{f"{name}__lt": high}) if high else Q()
        counts[f"n{n}"] = Count("pk", filter=within)
    return counts


def _counts(figures: dict[str, int]) -> list[int]:
    return [figures[f"n{n}"] for n in range(len(NAMES))]
