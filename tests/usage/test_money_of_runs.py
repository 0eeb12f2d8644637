"""Money and runs together, by the real commands of both."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from factory.kernel.reconciling import reconcilers
from factory.kernel.tenancy import reading
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import Handlers
from runs.commands import cancel_run, start_run
from tests.support.corruption import found_by, walls_down
from tests.support.evidence import violations
from tests.support.receipts import costing, receipt
from tests.support.running import House
from tests.support.threads import at_once
from usage import selectors
from usage.commands import create_budget
from usage.operations import reserving
from usage.pricing.periods import month_of
from usage.selectors import ReservationView

pytestmark = pytest.mark.slow


def reservation(house: House, run_id: UUID) -> ReservationView:
    with reading(house.system):
        found = selectors.reservation_of(run_id)
    assert found is not None
    return found


def figures(house: House) -> list[tuple[Any, ...]]:
    """(available, committed, spent, held) of each budget over the project."""
    with reading(house.system):
        rows = selectors.budgets(house.world.project)
    return [(b.available, b.committed, b.spent, b.held) for b in rows]


@pytest.mark.requirement("USG-01", "USG-02", "ARC-17")
def test_a_run_is_funded_before_it_starts_and_settled_when_it_ends(tenant_id: str) -> None:
    house = House(tenant_id, budget="10")
    run_id = house.accept()
    assert figures(house) == [(10, 0, 0, 0)]
    drain(Handlers(), tenant_id)
    assert figures(house) == [(5, 5, 0, 0)]
    hand = house.hand()
    work = hand.take()
    assert reservation(house, run_id).dispatched_at is not None
    hand.receipts(work, costing("1.5"), receipt())
    hand.report(work, receipts=[costing("0.5")])
    assert house.state(run_id) == "Completed"
    assert figures(house) == [(Decimal("7.99985"), 0, Decimal("2.00015"), 0)]
    assert reservation(house, run_id).state == "Settled"
    assert violations(tenant_id) == []


@pytest.mark.slow
@pytest.mark.requirement("USG-17", "RUN-09")
def test_fifteen_submissions_of_one_against_three_of_project_and_tenant(tenant_id: str) -> None:
    house = House(tenant_id, budget="3")
    create_budget(house.system, project_id=None, month=month_of(datetime.now(UTC)), amount=Decimal(3))
    limits = {"maxCostUsd": 1, "maxMinutes": 30}
    run_ids = [house.accept(limits=limits) for _ in range(15)]
    states = at_once([lambda r=r: start_run(house.system, run_id=r) for r in run_ids])  # type: ignore[misc]
    assert (states.count("Accepted"), states.count("Failed")) == (3, 12)
    assert figures(house) == [(0, 3, 0, 0)] * 2
    assert violations(tenant_id) == []


@pytest.mark.requirement("USG-10", "USG-18")
def test_a_run_that_nobody_takes_fails_when_its_reservation_expires(
    tenant_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reserving, "LIFETIME", timedelta(0))
    house = House(tenant_id, budget="10")
    run_id = house.run()
    assert house.hand().poll() == []
    assert reconcilers()["ReservationExpiryWorker"].run_once(tenant_id).repaired == 1
    drain(Handlers(), tenant_id)
    row = house.row(run_id)
    assert (row.state, row.failure_class) == ("Failed", "budget")
    assert reservation(house, run_id).state == "Expired"
    assert figures(house) == [(10, 0, 0, 0)]
    assert violations(tenant_id) == []


@pytest.mark.requirement("USG-18")
def test_cancelling_before_dispatch_gives_everything_back(tenant_id: str) -> None:
    house = House(tenant_id, budget="10")
    early, funded = house.accept(), house.run()
    for run_id in (early, funded):
        cancel_run(house.world.requester, run_id=run_id, reason="not needed")
    drain(Handlers(), tenant_id)
    assert [house.state(run_id) for run_id in (early, funded)] == ["Cancelled", "Cancelled"]
    with reading(house.system):
        assert selectors.reservation_of(early) is None
    assert reservation(house, funded).state == "Released"
    assert figures(house) == [(10, 0, 0, 0)]
    assert violations(tenant_id) == []


@pytest.mark.requirement("USG-13")
def test_a_failed_run_is_settled_and_what_comes_late_is_an_adjustment(tenant_id: str) -> None:
    house = House(tenant_id, budget="10")
    run_id, hand = house.run("diamond"), house.hand()
    hand.report(hand.take())
    first, second = hand.poll()
    for work in (first, second):
        hand.acquire(work)
    hand.receipts(first, costing("1"))
    hand.fail(first, "permanent")
    assert house.state(run_id) == "Failed"
    assert figures(house) == [(9, 0, 1, 0)]
    hand.receipts(second, costing("2"))
    assert figures(house) == [(7, 0, 3, 0)]
    assert reservation(house, run_id).spent == 3
    assert violations(tenant_id) == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE usage_reservation SET state = 'Reserved' WHERE run_id = %s",
        "UPDATE usage_reservation SET dispatched_at = NULL WHERE run_id = %s",
        "DELETE FROM usage_reservation WHERE run_id = %s",
    ],
)
def test_the_auditor_finds_money_that_outlives_its_run_and_a_run_without_any(
    tenant_id: str, damage: str
) -> None:
    house = House(tenant_id, budget="10")
    run_id, hand = house.run(), house.hand()
    hand.report(hand.take())
    with walls_down("usage_reservationhold", "usage_ledgerentry", "usage_reservation", "runs_run") as cursor:
        assert found_by("E2c", cursor, tenant_id) == []
        cursor.execute(damage, [run_id])
        assert [subject for subject, _ in found_by("E2c", cursor, tenant_id)] == [f"run:{run_id}"]
