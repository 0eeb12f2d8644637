"""Money set aside before anything starts."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from threading import Barrier
from uuid import UUID

import pytest
from django.db import connection, connections

from factory.kernel.errors import InvalidInput
from factory.kernel.ids import uuid7
from factory.kernel.models import JournalEntry, OutboxEvent
from factory.kernel.tenancy import reading
from tests.support.queries import deadlocks
from tests.usage.money_world import Money, this_month
from usage.models import Reservation
from usage.pricing.periods import next_month

pytestmark = pytest.mark.slow


def evidence(m: Money, run_id: UUID) -> tuple[list[tuple[str, ...]], list[tuple[str, dict[str, object]]]]:
    with reading(m.ctx):
        journal = JournalEntry.objects.filter(stream_id=run_id).order_by("sequence")
        outbox = OutboxEvent.objects.filter(stream_id=run_id).order_by("sequence", "position")
        return (
            [(e.entity, e.from_state, e.to_state, e.cause) for e in journal],
            [(e.topic, e.payload) for e in outbox],
        )


@pytest.mark.requirement("USG-02", "EVT-29")
def test_reserves_in_every_budget_of_the_scope(m: Money) -> None:
    own, everybody = m.budget("10"), m.budget("100", tenant_wide=True)
    made = m.reserve("4")
    assert made.state == "Reserved"
    assert m.figures(own) == ("6", "4", "0", "0")
    assert m.figures(everybody) == ("96", "4", "0", "0")
    assert m.ledger(own) == [
        ("Granted", "granted", "-10"),
        ("Granted", "available", "+10"),
        ("Reserved", "available", "-4"),
        ("Reserved", "committed", "+4"),
    ]
    journal, outbox = evidence(m, made.run_id)
    assert journal == [("reservation", "None", "Reserved", "BudgetReserved")]
    assert made.expires_at is not None
    payload = {
        "reservationId": str(made.id),
        "runId": str(made.run_id),
        "tenantId": m.world.tenant,
        "projectId": str(m.project),
        "amountUsd": "4.000000",
        "expiresAt": made.expires_at.isoformat().replace("+00:00", "Z"),
    }
    assert outbox == [("cost-usage.reservations.v1.budget-reserved", payload)]


@pytest.mark.requirement("USG-05")
def test_denies_what_one_of_the_budgets_does_not_cover(m: Money) -> None:
    own, everybody = m.budget("10"), m.budget("3", tenant_wide=True)
    made = m.reserve("4")
    assert (made.state, made.expires_at) == ("Denied", None)
    assert "tenant's budget" in made.reason
    assert "3.000000 USD left" in made.reason
    assert m.figures(own) == ("10", "0", "0", "0")
    assert m.figures(everybody) == ("3", "0", "0", "0")
    journal, outbox = evidence(m, made.run_id)
    assert journal == [("reservation", "None", "Denied", "BudgetDenied")]
    assert [(topic, payload["reason"]) for topic, payload in outbox] == [
        ("cost-usage.reservations.v1.budget-reservation-denied", made.reason)
    ]


def test_denies_without_any_budget_and_says_what_to_do(m: Money) -> None:
    made = m.reserve("4")
    assert made.state == "Denied"
    assert "POST /factory/budgets" in made.reason


def test_denies_when_nobody_says_how_much(m: Money) -> None:
    m.budget("10")
    made = m.reserve(None)
    assert made.state == "Denied"
    assert "limits.maxCostUsd" in made.reason


@pytest.mark.parametrize("amount", ["-1", "NaN", "0.0000001", "1000000000000"])
def test_refuses_what_is_no_amount(m: Money, amount: str) -> None:
    m.budget("10")
    with pytest.raises(InvalidInput):
        m.reserve(amount)


def test_reserves_to_the_last_cent(m: Money) -> None:
    own = m.budget("10")
    assert m.reserve("10.000001").state == "Denied"
    assert m.reserve("10").state == "Reserved"
    assert m.reserve("0").state == "Reserved"
    assert m.reserve("0.000001").state == "Denied"
    assert m.figures(own) == ("0", "10", "0", "0")


@pytest.mark.requirement("USG-03")
def test_asked_again_it_answers_with_the_reservation_that_stands(m: Money) -> None:
    own = m.budget("10")
    first = m.reserve("4")
    assert m.reserve("9", first.run_id) == first
    assert m.figures(own) == ("6", "4", "0", "0")


def at_once(m: Money, amounts: list[str], run_ids: list[UUID] | None = None) -> list[str]:
    """The states that the reservations end in, each made by a thread of its own, all released together."""
    barrier = Barrier(len(amounts))
    ids = run_ids or [uuid7() for _ in amounts]

    def one(amount: str, run_id: UUID) -> str:
        try:
            connection.ensure_connection()
            barrier.wait(30)
            return str(m.reserve(amount, run_id).state)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(amounts)) as pool:
        return list(pool.map(one, amounts, ids))


@pytest.mark.requirement("USG-17")
def test_fifty_race_for_room_for_seven(m: Money) -> None:
    own, before = m.budget("7"), deadlocks()
    states = at_once(m, ["1"] * 50)
    assert (states.count("Reserved"), states.count("Denied")) == (7, 43)
    assert m.figures(own) == ("0", "7", "0", "0")
    assert deadlocks() == before


@pytest.mark.requirement("USG-17")
def test_fifty_race_for_ten_against_project_and_tenant(m: Money) -> None:
    own, everybody, before = m.budget("10"), m.budget("10", tenant_wide=True), deadlocks()
    states = at_once(m, ["1"] * 50)
    assert (states.count("Reserved"), states.count("Denied")) == (10, 40)
    assert m.figures(own) == m.figures(everybody) == ("0", "10", "0", "0")
    assert deadlocks() == before


def test_ten_at_once_for_one_run_make_one_reservation(m: Money) -> None:
    own, run_id = m.budget("10"), uuid7()
    assert at_once(m, ["2"] * 10, [run_id] * 10) == ["Reserved"] * 10
    assert m.figures(own) == ("8", "2", "0", "0")
    with reading(m.ctx):
        assert Reservation.objects.filter(run_id=run_id).count() == 1


def test_a_budget_of_another_month_or_project_is_not_drawn_on(m: Money) -> None:
    later = m.budget("10", month=next_month(this_month()))
    assert m.reserve("1").state == "Denied"
    assert m.figures(later) == ("10", "0", "0", "0")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "month"),
    [
        ("2027-12-31T23:59:59.999999+00:00", date(2027, 12, 1)),
        ("2028-01-01T00:00:00+00:00", date(2028, 1, 1)),
        ("2028-02-29T23:59:59.999999+00:00", date(2028, 2, 1)),
        ("2028-03-01T00:00:00+00:00", date(2028, 3, 1)),
        ("2028-03-01T01:30:00+02:00", date(2028, 2, 1)),
        ("2028-03-26T01:30:00+00:00", date(2028, 3, 1)),
    ],
)
def test_each_instant_falls_in_exactly_one_period(
    m: Money, monkeypatch: pytest.MonkeyPatch, at: str, month: date
) -> None:
    months = [date(2027, 12, 1), date(2028, 1, 1), date(2028, 2, 1), date(2028, 3, 1)]
    budgets = {one: m.budget("10", month=one) for one in months}
    moment = datetime.fromisoformat(at)
    monkeypatch.setattr("factory.kernel.clock.now", lambda: moment)
    assert m.reserve("1").state == "Reserved"
    drawn = [one for one in months if m.figures(budgets[one]) == ("9", "1", "0", "0")]
    assert drawn == [month]
    monkeypatch.undo()
    with connection.cursor() as cursor:
        cursor.execute("SELECT date_trunc('month', %s::timestamptz AT TIME ZONE 'UTC')::date", [moment])
        assert cursor.fetchone()[0] == month


def test_a_wait_that_crosses_the_end_of_the_month_draws_on_the_new_one(
    m: Money, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = m.budget("10", month=date(2027, 12, 1)), m.budget("10", month=date(2028, 1, 1))
    moments = iter([datetime(2027, 12, 31, 23, 59, 59, tzinfo=UTC), *[datetime(2028, 1, 1, tzinfo=UTC)] * 9])
    monkeypatch.setattr("factory.kernel.clock.now", lambda: next(moments))
    assert m.reserve("1").created_at == datetime(2028, 1, 1, tzinfo=UTC)
    assert m.figures(old) == ("10", "0", "0", "0")
    assert m.figures(new) == ("9", "1", "0", "0")


def test_the_month_of_a_reservation_is_that_of_the_database(m: Money) -> None:
    assert this_month() == datetime.now(UTC).date().replace(day=1)
    assert Decimal(m.figures(m.budget("1.5"))[0]) == Decimal("1.5")
