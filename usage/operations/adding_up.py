"""The sums of a run's usage by day, moved together with the records that they add up."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F

from factory.kernel.ids import uuid7
from usage.models import UsageRecord, UsageSum
from usage.operations.closing import locked_reservation
from usage.pricing.money import ZERO, rounded, total
from usage.states import UsageState

KEY = ("tenant_id", "run_id", "day", "kind", "provider", "name")
PLACE = ("id", "project_id", "workflow_id", "release_id")
FIGURES = ("calls", "uncertain", "cost", "estimated", "input_tokens", "output_tokens")

_ADD = """
INSERT INTO usage_usagesum ({columns}) VALUES {rows}
ON CONFLICT ({key}) DO UPDATE SET {figures}
"""


def add_up_again(run_id: UUID, *, workflow_id: str, release_id: UUID) -> None:
    """Put in the place of a run's sums what its records add up to, whatever stood there.

    Takes the lock of the run's reservation, under which all of its usage is written.
    """
    locked_reservation(run_id)
    UsageSum.objects.filter(run_id=run_id).delete()
    records = list(UsageRecord.objects.filter(run_id=run_id).order_by("id"))
    add_up(records, workflow_id=workflow_id, release_id=release_id)


def add_up(records: Sequence[UsageRecord], *, workflow_id: str, release_id: UUID) -> None:
    """Add new records of one run to its sums, in one statement.

    The caller holds the lock of the run's reservation; the rows go in one order all the same, for a run
    that has none.
    """
    sums: dict[tuple[Any, ...], list[Decimal]] = defaultdict(lambda: [ZERO] * len(FIGURES))
    for row in records:
        key = (row.tenant_id, row.run_id, _day(row), row.kind, row.provider, row.name)
        sums[key] = [total(both) for both in zip(sums[key], _figures(row), strict=True)]
    if not sums:
        return
    scope = (records[0].project_id, workflow_id, release_id)
    rows = [(*key, uuid7(), *scope, *figures) for key, figures in sorted(sums.items())]
    columns = (*KEY, *PLACE, *FIGURES)
    marks = f"({', '.join(['%s'] * len(columns))})"
    statement = _ADD.format(
        columns=", ".join(columns),
        rows=", ".join([marks] * len(rows)),
        key=", ".join(KEY),
        figures=", ".join(f"{name} = usage_usagesum.{name} + EXCLUDED.{name}" for name in FIGURES),
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [value for row in rows for value in row])


def settle_sums(records: Sequence[UsageRecord]) -> None:
    """Move a run's sums with usage of it that was unknown, and is known from now on.

    The caller holds the lock of the run's reservation.
    """
    sums: dict[tuple[Any, ...], list[UsageRecord]] = defaultdict(list)
    for row in records:
        sums[(_day(row), row.kind, row.provider, row.name)].append(row)
    for (day, kind, provider, name), rows in sorted(sums.items()):
        key = {"day": day, "kind": kind, "provider": provider, "name": name}
        UsageSum.objects.filter(run_id=rows[0].run_id, **key).update(
            uncertain=F("uncertain") - len(rows), cost=F("cost") + total(row.cost or ZERO for row in rows)
        )


def _day(row: UsageRecord) -> date:
    return row.priced_at.astimezone(UTC).date()


def _figures(row: UsageRecord) -> tuple[Decimal, ...]:
    cost = row.cost if row.cost is not None else ZERO
    return (
        Decimal(1),
        Decimal(row.state == UsageState.UNCERTAIN),
        cost,
        cost if row.state == UsageState.ESTIMATED else ZERO,
        _quantity(row, "inputTokens"),
        _quantity(row, "outputTokens"),
    )


def _quantity(row: UsageRecord, unit: str) -> Decimal:
    return rounded(Decimal((row.quantities or {}).get(unit, ZERO)))
