"""Reads. Other apps get frozen copies, never rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import (
    Case,
    CharField,
    Count,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Concat, TruncDate

from factory.kernel import clock
from factory.kernel.tenancy import active
from projects.selectors import projects_of
from usage.models import Budget, LedgerEntry, PricingRevision, Reservation, ReservationHold, UsageRecord
from usage.pricing.money import ZERO
from usage.pricing.periods import label, month_of
from usage.states import FUNDED, Account, ReceiptKind, ReservationState, UsageState


@dataclass(frozen=True, slots=True)
class BudgetView:
    id: UUID
    project_id: UUID | None
    period_start: date
    period_end: date
    currency: str
    amount: Decimal
    available: Decimal
    committed: Decimal
    spent: Decimal
    held: Decimal
    version: int
    recurs: bool
    created_by: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ReservationView:
    """`amount` is None when nobody said how much; `extended` was added to it later.

    `reason` says why a reservation was denied.
    """

    id: UUID
    run_id: UUID
    project_id: UUID
    state: ReservationState
    amount: Decimal | None
    extended: Decimal
    reason: str
    spent: Decimal
    held: Decimal
    created_at: datetime
    expires_at: datetime | None
    dispatched_at: datetime | None
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class UsageView:
    """Sum what a run has used so far: known cost, how many records are Uncertain, how many there are."""

    cost: Decimal
    uncertain: int
    records: int


@dataclass(frozen=True, slots=True)
class UsageGroup:
    """Usage under one key; None is the key of what the grouping does not apply to."""

    key: str | None
    cost: Decimal
    estimated: Decimal
    confirmed: Decimal
    records: int
    uncertain: int


@dataclass(frozen=True, slots=True)
class PricingView:
    id: UUID
    revision: str
    number: int
    document: dict[str, object]
    document_hash: str
    valid_from: datetime
    published_by: str
    published_at: datetime


def budget_view(row: Budget) -> BudgetView:
    return BudgetView(**{name: getattr(row, name) for name in BudgetView.__slots__})


def reservation_view(row: Reservation) -> ReservationView:
    values = {name: getattr(row, name) for name in ReservationView.__slots__}
    return ReservationView(**values | {"state": ReservationState(row.state)})


def pricing_view(row: PricingRevision) -> PricingView:
    values = {name: getattr(row, name) for name in PricingView.__slots__ if name != "revision"}
    return PricingView(revision=row.label, **values)


def reservation_of(run_id: UUID) -> ReservationView | None:
    """Return the run's reservation, if one was tried."""
    row = Reservation.objects.filter(run_id=run_id).first()
    return reservation_view(row) if row else None


def set_aside_for(run_id: UUID) -> Decimal | None:
    """Return all that is, or was, set aside for a run, with what was added; None when nothing was."""
    rows = Reservation.objects.filter(run_id=run_id, state__in=FUNDED)
    amount: Decimal | None = rows.values_list(F("amount") + F("extended"), flat=True).first()
    return amount


def usage_of_run(run_id: UUID) -> UsageView:
    """Return what a run has used so far."""
    sums = UsageRecord.objects.filter(run_id=run_id).aggregate(
        cost=Sum("cost"), records=Count("id"), uncertain=Count("id", filter=Q(state=UsageState.UNCERTAIN))
    )
    return UsageView(sums["cost"] or ZERO, sums["uncertain"], sums["records"])


def usage_of_runs(run_ids: Iterable[UUID]) -> dict[UUID, UsageView]:
    """Return `usage_of_run` for the runs of a page, in one query; a run without usage is not in it."""
    return _used(UsageRecord.objects.filter(run_id__in=list(run_ids)), "run_id")


def usage_of_attempts(run_id: UUID) -> dict[UUID, UsageView]:
    """Return what each attempt of a run has used, in one query; one without usage is not in it."""
    return _used(UsageRecord.objects.filter(run_id=run_id), "attempt_id")


def _used(records: QuerySet[UsageRecord], key: str) -> dict[UUID, UsageView]:
    rows = records.values(key).annotate(
        known=Sum("cost"),
        records=Count("id"),
        uncertain=Count("id", filter=Q(state=UsageState.UNCERTAIN)),
    )
    return {row[key]: UsageView(row["known"] or ZERO, row["uncertain"], row["records"]) for row in rows}


@dataclass(frozen=True, slots=True)
class UnknownCalls:
    """Calls of a run, of one model or tool, of which nobody knows the cost, and what they used in all."""

    provider: str
    name: str
    calls: int
    quantities: dict[str, Decimal]
    unsaid: int
    """So many of them do not say what they used."""

    @property
    def called(self) -> str:
        return f"{self.provider}/{self.name}"

    @property
    def used(self) -> str:
        """Return what they used in all, by unit, and how many do not say it."""
        parts = [f"{number.normalize():,f} {unit}" for unit, number in self.quantities.items()]
        silent = "one call does" if self.unsaid == 1 else f"{self.unsaid} calls do"
        return ", ".join([*parts, *([f"{silent} not say what it used"] if self.unsaid else [])])

    @property
    def in_words(self) -> str:
        """Return their number, and what they used in all."""
        return f"{self.calls} call{'s' if self.calls != 1 else ''}: {self.used}"


_UNKNOWN = """
SELECT u.provider, u.name, q.key, sum(q.value::numeric), count(*)
FROM usage_usagerecord u LEFT JOIN LATERAL jsonb_each_text(u.quantities) q ON true
WHERE u.tenant_id = %s AND u.run_id = %s AND u.state = 'Uncertain' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


def unknown_of_run(run_id: UUID) -> list[UnknownCalls]:
    """Return the usage of a run whose cost is unknown, by provider and by model or tool."""
    unknown = UsageRecord.objects.filter(run_id=run_id, state=UsageState.UNCERTAIN)
    counted = list(
        unknown.values_list("provider", "name").annotate(calls=Count("id")).order_by("provider", "name")
    )
    if not counted:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_UNKNOWN, [active().tenant_id, run_id])
        rows = cursor.fetchall()
    return [
        UnknownCalls(
            provider,
            name,
            calls,
            {unit: total for one, other, unit, total, _ in rows if unit and (one, other) == (provider, name)},
            sum(n for one, other, unit, _, n in rows if unit is None and (one, other) == (provider, name)),
        )
        for provider, name, calls in counted
    ]


@dataclass(frozen=True, slots=True)
class RecordView:
    """A priced receipt: what was used in which step, what it cost, and by which prices."""

    step_id: UUID
    kind: str
    provider: str
    name: str
    quantities: dict[str, Any]
    state: UsageState
    reason: str
    cost: Decimal | None
    priced_at: datetime
    pricing_revision_id: UUID | None
    pricing_label: str


def records_of_run(run_id: UUID, most: int) -> list[RecordView]:
    """Return the newest priced receipts of a run, with the prices that were used."""
    rows = UsageRecord.objects.filter(run_id=run_id).select_related("pricing_revision")
    return [_record_view(row) for row in rows.order_by("-occurred_at", "-id")[:most]]


def _record_view(row: UsageRecord) -> RecordView:
    return RecordView(
        step_id=row.step_id,
        kind=str(row.kind),
        provider=row.provider,
        name=row.name,
        quantities=dict(row.quantities or {}),
        state=UsageState(row.state),
        reason=row.reason,
        cost=row.cost,
        priced_at=row.priced_at,
        pricing_revision_id=row.pricing_revision_id,
        pricing_label=row.pricing_revision.label if row.pricing_revision else "",
    )


def in_scope(project_id: UUID, month: date) -> QuerySet[Budget]:
    """Return the budgets on which a run of this project draws in this month: its own and the tenant's."""
    rows: QuerySet[Budget] = Budget.objects.filter(
        Q(project_id=project_id) | Q(project_id=None), period_start=month
    )
    return rows


def uncovered(budgets: Iterable[Budget], month: date) -> str:
    """Return why no run can reserve anything in a month, given all budgets over its project; else nothing."""
    return "" if any(True for _ in budgets) else f"No budget covers this project in {label(month)}."


def projects_without_budget(project_id: UUID | None, months: Sequence[date]) -> list[tuple[date, str]]:
    """Return, by month, the names of the projects with runs, of a place, that no budget covers in it."""
    runs = Reservation.objects.filter(project=OuterRef("pk"))
    over = Q(project=OuterRef("pk")) | Q(project=None)
    covers = {
        f"month_{index}": Exists(Budget.objects.filter(over, period_start=month))
        for index, month in enumerate(months)
    }
    rows = list(projects_of(project_id).filter(Exists(runs)).annotate(**covers).values("name", *covers))
    return [
        (month, row["name"])
        for name, month in zip(covers, months, strict=True)
        for row in rows
        if not row[name]
    ]


def budgets(project_id: UUID, month: date | None = None) -> list[BudgetView]:
    """Return the budgets over this project in a month, by default the present; the tenant's comes last."""
    rows = in_scope(project_id, month or month_of(clock.now()))
    return sorted(map(budget_view, rows), key=lambda budget: budget.project_id is None)


def visible_budgets(project_id: UUID | None) -> QuerySet[Budget]:
    """Return the budgets that a reader in this scope sees: a project's and the tenant's, or all."""
    rows: QuerySet[Budget] = Budget.objects.all()
    return rows if project_id is None else rows.filter(Q(project_id=project_id) | Q(project_id=None))


def ledger_of(budget_id: UUID) -> QuerySet[LedgerEntry]:
    """Return the movements of one budget."""
    rows: QuerySet[LedgerEntry] = LedgerEntry.objects.filter(budget_id=budget_id)
    return rows


def budgets_now(project_id: UUID | None, today: date) -> QuerySet[Budget]:
    """Return the budgets in this scope that cover a day; a project's own before the tenant's."""
    rows = visible_budgets(project_id).filter(period_start__lte=today, period_end__gt=today)
    return rows.select_related("project").order_by("project__slug")


_BALANCES = """
SELECT day::date, (
    SELECT balance FROM usage_ledgerentry e
    WHERE e.tenant_id = %(tenant)s AND e.budget_id = %(budget)s AND e.account = %(account)s
      AND e.posted_at < (day + interval '1 day') AT TIME ZONE 'UTC'
    ORDER BY e.posted_at DESC, e.sequence DESC LIMIT 1)
FROM generate_series(%(first)s::timestamp, %(last)s::timestamp, interval '1 day') AS day ORDER BY 1
"""


def spent_so_far(budget_id: UUID, first: date, last: date) -> list[tuple[date, Decimal]]:
    """Return what was spent of a budget by the end of each day, in UTC: one look a day, however many
    movements there were, because each entry keeps the balance after it."""
    params: dict[str, Any] = {
        "tenant": active().tenant_id,
        "budget": budget_id,
        "account": Account.SPENT,
    }
    with connection.cursor() as cursor:
        cursor.execute(_BALANCES, params | {"first": first, "last": last})
        return [(day, balance or ZERO) for day, balance in cursor.fetchall()]


def reservations(project_id: UUID | None) -> QuerySet[Reservation]:
    """Return the reservations of a project, or of the whole tenant."""
    rows: QuerySet[Reservation] = Reservation.objects.all()
    return rows if project_id is None else rows.filter(project_id=project_id)


def open_reservations(budget: Budget, project_id: UUID | None) -> QuerySet[Reservation]:
    """Return the reservations of a project, or of all, that hold money of a budget now, newest first: the few
    that are open at all."""
    holds = ReservationHold.objects.filter(reservation=OuterRef("pk"), budget=budget)
    rows = reservations(project_id).filter(Exists(holds), state=ReservationState.RESERVED)
    return rows.select_related("project").order_by("-created_at", "-id")


def open_holds(budget: Budget, project_id: UUID | None) -> QuerySet[Reservation]:
    """Return the reservations of a project, or of all, that hold money of a budget for usage of unknown
    cost, the oldest first."""
    holds = ReservationHold.objects.filter(reservation=OuterRef("pk"), budget=budget)
    rows = reservations(project_id).filter(Exists(holds), held__gt=0)
    return rows.select_related("project").order_by("closed_at", "id")


def pricing_revisions() -> QuerySet[PricingRevision]:
    rows: QuerySet[PricingRevision] = PricingRevision.objects.all()
    return rows


def revision_in_force(at: datetime) -> PricingRevision | None:
    """Return the prices that held at an instant: the revision that began last before it."""
    return PricingRevision.objects.filter(valid_from__lte=at).order_by("-valid_from", "-number").first()


def revisions_between(earliest: datetime, latest: datetime) -> list[PricingRevision]:
    """Return every revision in force at some instant from `earliest` to `latest`, as they took over."""
    first = revision_in_force(earliest)
    later = PricingRevision.objects.filter(valid_from__gt=earliest, valid_from__lte=latest)
    return [*([first] if first else []), *later.order_by("valid_from", "number")]


def current_pricing() -> PricingView | None:
    """Return the prices that hold now."""
    row = revision_in_force(clock.now())
    return pricing_view(row) if row else None


_TEXT = CharField()
_MODEL = Concat(F("provider"), Value("/"), F("name"), output_field=_TEXT)
GROUPS: dict[str, Combinable] = {
    "project": Cast("project_id", _TEXT),
    "run": Cast("run_id", _TEXT),
    "agent": Cast("agent_id", _TEXT),
    "model": Case(When(kind=ReceiptKind.MODEL, then=_MODEL), default=Value(""), output_field=_TEXT),
    "day": Cast(TruncDate("priced_at", tzinfo=UTC), _TEXT),
}


def usage_by(
    group: str, project_id: UUID | None, start: datetime, end: datetime, *, after: str | None, limit: int
) -> list[UsageGroup]:
    """Return the usage of calls in `[start, end)` by group, in the order of the keys, beginning after one."""
    rows = UsageRecord.objects.filter(priced_at__gte=start, priced_at__lt=end)
    if project_id is not None:
        rows = rows.filter(project_id=project_id)
    rows = rows.annotate(key=GROUPS[group])
    if after is not None:
        rows = rows.filter(key__gt=after)
    sums = rows.values("key").annotate(
        known=Sum("cost"),
        guessed=Sum("cost", filter=Q(state=UsageState.ESTIMATED)),
        final=Sum("cost", filter=Q(state=UsageState.CONFIRMED)),
        records=Count("id"),
        uncertain=Count("id", filter=Q(state=UsageState.UNCERTAIN)),
    )
    return [
        UsageGroup(
            key=row["key"] or None,
            cost=row["known"] or ZERO,
            estimated=row["guessed"] or ZERO,
            confirmed=row["final"] or ZERO,
            records=row["records"],
            uncertain=row["uncertain"],
        )
        for row in sums.order_by("key")[:limit]
    ]
