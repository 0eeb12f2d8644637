"""A run whose chain is damaged costs what is about that run, on every path that works through many."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
import redis
from django.db import OperationalError, connection, transaction
from psycopg import errors
from structlog.testing import capture_logs

from approvals.commands import BulkDecision, decide_each
from approvals.reconcilers import ApprovalExpiryReconciler
from factory.evidence.auditor import VerificationReport, Violation
from factory.kernel.bulk import one_by_one
from factory.kernel.bulkhead import Bulkhead, Resting
from factory.kernel.telemetry import meters
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import Handlers
from projects.commands import kill_project
from runs import restore
from runs.commands import cancel_run, freeze_run
from runs.dispatch import drain_worker, polling
from runs.errors import RunFrozen
from runs.reconcilers import KillSwitchReconciler, LeaseExpiryReconciler, WithdrawalReconciler
from tests.support.acts import revoke
from tests.support.aging import outwait_money
from tests.support.damage import chain_damaged
from tests.support.hands import Hand
from tests.support.running import House
from usage.reconcilers import ReservationExpiryWorker

pytestmark = pytest.mark.slow

Act = Callable[[], Any]


@pytest.fixture(autouse=True)
def rested(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test meets what another one's poll has passed over."""
    monkeypatch.setattr(polling, "RESTING", Resting())


@dataclass
class Pair:
    """The run that is to be damaged, the healthy one behind it, and how one sees that its turn came."""

    broken: UUID
    healthy: UUID
    act: Act
    came: Callable[[], bool]


def held(house: House, workflow: str = "single") -> tuple[Hand, dict[UUID, Any]]:
    hand = house.hand("dead", slots=2)
    runs = [house.run(workflow), house.run(workflow)]
    works = {work.run_id: work for work in hand.poll()}
    for work in works.values():
        hand.acquire(work)
    return hand, {run_id: works[run_id] for run_id in runs}


def lapsed(house: House) -> tuple[UUID, UUID]:
    _, works = held(house)
    for seconds, work in zip((7200, 3600), works.values(), strict=True):
        house.let_lapse(work.lease_id, seconds)
    broken, healthy = works
    return broken, healthy


def states(house: House, run_id: UUID) -> list[str]:
    return list(house.step_states(run_id).values())


def poll_of_lapsed(house: House) -> Pair:
    broken, healthy = lapsed(house)
    alive = house.hand("alive")
    return Pair(broken, healthy, alive.poll, lambda: states(house, healthy) == ["Pending"])


def poll_of_waiting(house: House) -> Pair:
    broken, healthy = house.run(), house.run()
    alive = house.hand("alive")
    given: list[UUID] = []
    act = lambda: given.extend(work.run_id for work in alive.poll())  # noqa: E731
    return Pair(broken, healthy, act, lambda: given == [healthy])


def drain_of_offers(house: House) -> Pair:
    broken, healthy = house.run(), house.run()
    hand = house.hand()
    assert len(hand.poll()) == 2
    act = partial(drain_worker, hand.ctx, name=hand.name, instance_id=hand.instance)
    return Pair(broken, healthy, act, lambda: states(house, healthy) == ["Pending"])


def expiry_of_leases(house: House) -> Pair:
    broken, healthy = lapsed(house)
    act = partial(LeaseExpiryReconciler().run_once, house.tenant)
    return Pair(broken, healthy, act, lambda: states(house, healthy) == ["Pending"])


def deadlines(house: House) -> Pair:
    _, works = held(house)
    broken, healthy = works
    for run_id in works:
        house.pass_deadline(run_id)
    act = partial(LeaseExpiryReconciler().run_once, house.tenant)
    return Pair(broken, healthy, act, lambda: house.state(healthy) == "Failed")


def withdrawal(house: House) -> Pair:
    broken, healthy = house.run(), house.run()
    revoke(house, "block")
    act = partial(WithdrawalReconciler().run_once, house.tenant)
    return Pair(broken, healthy, act, lambda: house.state(healthy) == "Failed")


def kill_switch(house: House) -> Pair:
    broken, healthy = house.run(), house.run()
    kill_project(house.world.workspace_admin, project_id=house.world.project, reason="it goes wild")
    act = partial(KillSwitchReconciler().run_once, house.tenant)
    return Pair(broken, healthy, act, lambda: house.state(healthy) == "Cancelled")


def expiry_of_requests(house: House) -> Pair:
    hand, works = held(house, "gated")
    for work in works.values():
        hand.ask(work, park=True)
    broken, healthy = works
    house._owner(
        "UPDATE approvals_approvalrequest SET requested_at = requested_at - interval '9 days', "
        "expires_at = expires_at - interval '9 days' WHERE tenant_id = %s AND state = 'Pending'",
        [house.tenant],
        unpinned=True,
    )
    act = partial(ApprovalExpiryReconciler().run_once, house.tenant)
    return Pair(broken, healthy, act, lambda: house.state(healthy) == "Failed")


def expiry_of_money(house: House) -> Pair:
    broken, healthy = house.run(), house.run()
    outwait_money(house)

    def act() -> None:
        ReservationExpiryWorker().run_once(house.tenant)
        drain(Handlers(), house.tenant, seconds=3)

    return Pair(broken, healthy, act, lambda: house.state(healthy) == "Failed")


def news(house: House) -> Pair:
    """The handlers of the relay: money and first steps of an accepted run, and the second chances."""
    broken, healthy = house.accept(), house.accept()
    act = partial(drain, Handlers(), house.tenant, seconds=3)
    return Pair(broken, healthy, act, lambda: states(house, healthy) == ["Pending"])


def freezes(house: House) -> Pair:
    broken, healthy = house.run(), house.run()
    found = [Violation("A1", house.tenant, f"run:{run_id}", "wrong") for run_id in (broken, healthy)]
    act = partial(restore.freeze_runs_of_violations, VerificationReport(found))
    return Pair(broken, healthy, act, lambda: house.row(healthy).frozen_at is not None)


def recovery_of_leases(house: House) -> Pair:
    _, works = held(house)
    broken, healthy = works
    house._owner(
        "UPDATE runs_lease SET fencing_token = fencing_token - (1::bigint << 40) WHERE tenant_id = %s",
        [house.tenant],
        unpinned=True,
    )
    left: list[str] = []

    def came() -> bool:
        [lease] = house.leases(broken)
        return any(str(lease.id) in each for each in left) and house.steps(healthy)["look"].attention != ""

    return Pair(broken, healthy, lambda: restore.settle_open_leases(left.append), came)


def cancelling_many(house: House) -> Pair:
    broken, healthy = house.run(), house.run()
    cancel = partial(cancel_run, house.world.operator, reason="enough")

    def act() -> None:
        came = list(one_by_one([broken, healthy], lambda run_id: cancel(run_id=run_id), key=str))
        assert came[0][1].code == "item-failed"  # type: ignore[union-attr]
        assert came[1] == (healthy, "Cancelled")

    return Pair(broken, healthy, act, lambda: house.state(healthy) == "Cancelled")


def deciding_many(house: House) -> Pair:
    hand, works = held(house, "gated")
    for work in works.values():
        hand.ask(work, park=True)
    broken, healthy = works
    views = [house.pending(run_id)[0] for run_id in works]
    items = [BulkDecision(view.id, "reject", view.version, view.proposal_hash, "no") for view in views]
    act = partial(decide_each, house.world.reviewer, items)
    return Pair(broken, healthy, act, lambda: house.state(healthy) == "Failed")


PATHS = {
    made.__name__: made
    for made in (
        poll_of_lapsed,
        poll_of_waiting,
        drain_of_offers,
        expiry_of_leases,
        deadlines,
        withdrawal,
        kill_switch,
        expiry_of_requests,
        expiry_of_money,
        news,
        freezes,
        recovery_of_leases,
        cancelling_many,
        deciding_many,
    )
}


@pytest.mark.requirement("JOB-15")
@pytest.mark.parametrize("path", PATHS)
def test_a_damaged_chain_costs_its_own_run_and_the_next_one_has_its_turn(tenant_id: str, path: str) -> None:
    house = House(tenant_id)
    pair = PATHS[path](house)
    before = house.state(pair.broken), states(house, pair.broken)
    with chain_damaged(house, pair.broken), capture_logs() as told:
        pair.act()
    assert pair.came()
    if path == "freezes":  # a freeze is no transition: what is damaged has to be stopped all the same
        assert house.row(pair.broken).frozen_at is not None
        return
    assert (house.state(pair.broken), states(house, pair.broken)) == before
    assert [line for line in told if line["event"] in ("item_failed", "delivery_failed")]


def test_what_is_faulty_is_met_once_and_then_rests_and_hides_nothing_behind_it(
    tenant_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More faulty leases than one poll looks at, and one healthy one behind them all."""
    house = House(tenant_id)
    monkeypatch.setattr("runs.selectors.waiting.MOST_LAPSED", 1)
    broken, healthy = lapsed(house)
    alive = house.hand("alive")
    with chain_damaged(house, broken), capture_logs() as told:
        for _ in range(3):
            alive.poll()
    assert len([line for line in told if line["event"] == "item_failed"]) == 1
    assert (states(house, broken), states(house, healthy)) == (["Running"], ["Pending"])


def test_an_offer_that_cannot_be_put_into_words_keeps_no_other_from_the_worker(
    tenant_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(tenant_id)
    broken, healthy = house.run(), house.run()
    hand = house.hand()
    assert {work.run_id for work in hand.poll()} == {broken, healthy}
    read = polling.offered_assignment

    def faulty(lease_id: UUID, **guards: Any) -> Any:
        found = read(lease_id, **guards)
        assert found is None or found.run_id != broken
        return found

    monkeypatch.setattr(polling, "offered_assignment", faulty)
    assert [work.run_id for work in hand.poll()] == [healthy]


def test_a_fault_is_counted_by_its_job_and_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(meters, "item_failed", lambda job, tenant: told.append((job, tenant)))
    alone = Bulkhead("test")
    for n in range(3):
        with alone.item(n, "t-1"):
            if n == 1:
                raise ValueError("wrong")
    assert (alone.counts.found, alone.counts.repaired, alone.counts.failed) == (3, 2, 1)
    assert told == [("test", "t-1")]


def test_a_database_that_is_away_is_no_items_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not counted against an item, and ends the round: under two in a row it is so for every one."""
    told: list[str] = []
    monkeypatch.setattr(meters, "item_failed", lambda job, tenant: told.append(job))
    resting, begun = Resting(), list[int]()
    alone = Bulkhead("test", resting=resting)

    def round_() -> None:
        for n in range(5):
            with alone.item(uuid4()):
                begun.append(n)
                raise OperationalError("gone") from errors.AdminShutdown("gone")

    with pytest.raises(OperationalError):
        round_()
    assert (begun, told, resting.items()) == ([0, 1], [], [])


def test_a_broker_that_is_away_puts_off_what_needs_it_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    monkeypatch.setattr(meters, "item_failed", lambda job, tenant: told.append(job))
    resting, items = Resting(), [uuid4() for _ in range(4)]
    alone = Bulkhead("test", resting=resting)
    connection.ensure_connection()
    for n, item in enumerate(items):
        with alone.item(item):
            if n < 3:
                raise redis.ConnectionError("gone")
    assert (alone.counts.failed, alone.counts.repaired, alone.away, told) == (3, 1, False, [])
    assert resting.items() == items[:3]
    assert connection.connection is not None, "the database is there"


def test_no_transaction_is_around_an_item() -> None:
    alone = Bulkhead("test")
    refused = pytest.raises(RuntimeError, match="transaction of its own")
    with transaction.atomic(), refused, alone.item("one"):
        pass
    with alone.item("one"):
        pass
    assert alone.counts.repaired == 1


def test_what_is_refused_rests_too() -> None:
    """A lapsed lease whose end is refused would be the first that every poll meets, for ever."""
    resting, item = Resting(), uuid4()
    with Bulkhead("test", resting=resting).item(item):
        raise RunFrozen("It stands still.")
    assert resting.items() == [item]


def test_rests_grow_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    at = [0.0]
    monkeypatch.setattr("factory.kernel.bulkhead.time.monotonic", lambda: at[0])
    resting, item = Resting(), uuid4()
    waits = []
    for _ in range(9):
        resting.note(item)
        began = at[0]
        while resting.items():
            at[0] += 0.5
        waits.append(at[0] - began)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    resting.note(item)
    resting.forget(item)
    assert resting.items() == []


def test_a_frozen_run_and_a_free_one_are_both_looked_at(tenant_id: str) -> None:
    """A refusal is no fault: it is not counted as one."""
    house = House(tenant_id)
    frozen, free = house.run(), house.run()
    freeze_run(house.system, run_id=frozen, findings=[f"A1 run:{frozen}"])
    revoke(house, "block")
    counts = WithdrawalReconciler().run_once(house.tenant)
    assert (counts.repaired, counts.failed) == (2, 0)
    assert {house.state(run_id) for run_id in (frozen, free)} == {"Failed"}
