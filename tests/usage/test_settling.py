"""The end of a reservation."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier
from uuid import UUID

import pytest
from django.db import connections

from factory.kernel.errors import DomainError
from factory.kernel.ids import uuid7
from factory.kernel.models import JournalEntry, OutboxEvent
from factory.kernel.recording import NoCommandOpen
from factory.kernel.tenancy import reading
from tests.usage.money_world import Money, confirm_live, costing, receipt, release, this_month
from usage import operations
from usage.commands import expire_reservation
from usage.pricing.periods import next_month
from usage.selectors import ReservationView

SETTLED = "cost-usage.reservations.v1.reservation-settled"


def told(m: Money, run_id: object) -> list[dict[str, object]]:
    with reading(m.ctx):
        rows = OutboxEvent.objects.filter(stream_id=run_id, topic=SETTLED).order_by("sequence")
        return [row.payload for row in rows]


@pytest.mark.requirement("USG-01", "USG-13")
def test_settles_what_was_used_and_gives_back_the_rest(m: Money) -> None:
    own, everybody = m.budget("10"), m.budget("20", tenant_wide=True)
    run_id = m.dispatched("4")
    m.receive(run_id, [costing("1.25"), costing("0.250001")])
    assert m.figures(own) == ("6", "4", "0", "0")
    settled = m.settle(run_id)
    assert settled is not None
    assert (settled.state, str(settled.spent), str(settled.held)) == ("Settled", "1.500001", "0.000000")
    assert m.figures(own) == ("8.499999", "0", "1.500001", "0")
    assert m.figures(everybody) == ("18.499999", "0", "1.500001", "0")
    assert m.ledger(own)[-3:] == [
        ("Settled", "committed", "-4"),
        ("Settled", "spent", "+1.500001"),
        ("Settled", "available", "+2.499999"),
    ]
    expected = {"reservationId": str(settled.id), "runId": str(run_id), "tenantId": m.world.tenant}
    expected |= {"state": "Settled", "committedUsd": "1.500001", "releasedUsd": "2.499999"}
    assert told(m, run_id) == [expected | {"heldUsd": "0.000000"}]


@pytest.mark.requirement("USG-13")
def test_settling_twice_moves_money_once(m: Money) -> None:
    own, run_id = m.budget("10"), m.dispatched("4")
    assert m.settle(run_id) == m.settle(run_id)
    assert m.figures(own) == ("10", "0", "0", "0")
    assert len(told(m, run_id)) == 1


@pytest.mark.requirement("USG-07")
def test_holds_the_rest_while_usage_is_uncertain(m: Money) -> None:
    own, run_id = m.budget("10"), m.dispatched("4")
    m.receive(run_id, [costing("1"), receipt(quantities=None)])
    m.settle(run_id)
    assert m.figures(own) == ("6", "0", "1", "3")
    assert told(m, run_id)[0]["heldUsd"] == "3.000000"


def test_spends_more_than_was_reserved_if_that_is_what_it_cost(m: Money) -> None:
    own, run_id = m.budget("10"), m.dispatched("4")
    m.receive(run_id, [costing("6"), receipt(quantities=None)])
    m.settle(run_id)
    assert m.figures(own) == ("4", "0", "6", "0")
    assert told(m, run_id)[0] | {"x": 0} == told(m, run_id)[0] | {"releasedUsd": "0.000000", "x": 0}


def test_a_late_receipt_is_an_adjustment(m: Money) -> None:
    own, run_id = m.budget("10"), m.dispatched("4")
    m.settle(run_id)
    m.receive(run_id, [costing("2")])
    assert m.figures(own) == ("8", "0", "2", "0")
    assert m.ledger(own)[-2:] == [("Adjusted", "spent", "+2"), ("Adjusted", "available", "-2")]
    m.receive(run_id, [receipt(quantities=None)])
    assert m.figures(own) == ("6", "0", "2", "2")
    m.receive(run_id, [costing("1")])
    assert m.figures(own) == ("6", "0", "3", "1")
    with reading(m.ctx):
        journal = JournalEntry.objects.filter(stream_id=run_id, cause="UsageAdjusted")
        assert journal.count() == 3
    assert len(told(m, run_id)) == 1


def test_a_late_receipt_is_booked_in_the_period_of_its_reservation(
    m: Money, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, later = m.budget("10"), m.budget("10", month=next_month(this_month()))
    run_id = m.dispatched("4")
    following = datetime(next_month(this_month()).year, next_month(this_month()).month, 2, tzinfo=UTC)
    monkeypatch.setattr("factory.kernel.clock.now", lambda: following)
    m.settle(run_id)
    m.receive(run_id, [costing("2")])
    assert m.figures(own) == ("8", "0", "2", "0")
    assert m.figures(later) == ("10", "0", "0", "0")


@pytest.mark.requirement("USG-18")
def test_release_gives_everything_back(m: Money) -> None:
    own = m.budget("10")
    run_id = m.reserve("4").run_id
    released = release(m.ctx, run_id=run_id)
    assert released is not None
    assert released.state == "Released"
    assert m.figures(own) == ("10", "0", "0", "0")
    assert [(event["state"], event["releasedUsd"]) for event in told(m, run_id)] == [("Released", "4.000000")]


def test_release_of_a_run_that_did_dispatch_settles_it(m: Money) -> None:
    own, run_id = m.budget("10"), m.dispatched("4")
    m.receive(run_id, [costing("1")])
    released = release(m.ctx, run_id=run_id)
    assert released is not None
    assert released.state == "Settled"
    assert m.figures(own) == ("9", "0", "1", "0")


def test_without_a_reservation_ending_is_a_no_op(m: Money) -> None:
    assert m.settle(uuid7()) is None
    assert release(m.ctx, run_id=uuid7()) is None
    denied = m.reserve("4")
    settled = m.settle(denied.run_id)
    assert settled is not None
    assert settled.state == "Denied"


def test_operations_need_a_command(m: Money) -> None:
    with pytest.raises(NoCommandOpen):
        operations.settle(m.ctx, uuid7())


def all_at_once(m: Money, reservation: ReservationView) -> UUID:
    run_id, barrier, due = reservation.run_id, Barrier(5), reservation.expires_at
    assert due is not None
    acts: list[Callable[[], object]] = [
        lambda: m.settle(run_id),
        lambda: release(m.ctx, run_id=run_id),
        lambda: expire_reservation(m.ctx, reservation_id=reservation.id, expires_at=due),
        lambda: confirm_live(m.ctx, run_id=run_id),
        lambda: m.receive(run_id, [costing("1")]),
    ]

    def one(act: Callable[[], object]) -> None:
        try:
            barrier.wait(30)
            act()
        except DomainError:
            pass
        finally:
            connections.close_all()

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(one, acts))
    return run_id


@pytest.mark.slow
def test_settle_release_expiry_and_receipts_at_once_end_it_once(m: Money) -> None:
    """Outcome, reaper, cancel and a late receipt meet: one end, and sums that equal the ledger."""
    own = m.budget("1000")
    for _ in range(10):
        run_id = all_at_once(m, m.reserve("4"))
        assert len(told(m, run_id)) == 1
    assert m.figures(own) == ("990", "0", "10", "0")
