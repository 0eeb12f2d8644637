"""What a poll offers can be acquired, and what nobody can acquire holds no worker."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from factory.evidence.auditor import VerificationReport, Violation
from factory.kernel import reloading
from factory.kernel.tenancy import reading
from projects.commands import suspend_project
from runs import restore
from runs.commands import cancel_run, change_quota, expire_lease, freeze_run, lift_freeze
from runs.dispatch import drain_from_outside, drain_worker, revoke_from_outside
from runs.models import Worker
from runs.operations.timing import grace
from runs.reconcilers import LeaseExpiryReconciler
from runs.selectors import run_view
from runs.selectors.waiting import look_further, todo
from tests.support.acts import revoke
from tests.support.damage import chain_damaged
from tests.support.evidence import journal, violations
from tests.support.hands import Hand
from tests.support.receipts import costing
from tests.support.running import House

pytestmark = pytest.mark.slow

Act = Callable[[House, Hand, Any], None]


def freeze(house: House, run_id: UUID) -> None:
    assert freeze_run(house.system, run_id=run_id, findings=[f"A1 run:{run_id}"])


def freeze_as_the_auditor(house: House, run_id: UUID) -> None:
    found = Violation("A1", house.tenant, f"run:{run_id}", "wrong")
    restore.freeze_runs_of_violations(VerificationReport([found]))


def lift(house: House, run_id: UUID) -> None:
    lift_freeze(house.world.platform_admin, run_id=run_id, reason="looked at it")


def worker_id(worker: Hand) -> UUID:
    return UUID(str(Worker.objects.get(pool_id=worker.house.pool, name=worker.name).id))


def frozen(house: House, hand: Hand, work: Any) -> None:
    freeze(house, work.run_id)


def over_and_unsettled(house: House, hand: Hand, work: Any) -> None:
    """Whatever should withdraw it cannot: the offer stands, and is over."""
    house.let_lapse(work.lease_id)
    head = "UPDATE factory_chainhead SET sequence = sequence - 1 WHERE stream_id = %s"
    house._owner(head, [work.run_id])


def of_another_credential(house: House, hand: Hand, work: Any) -> None:
    hand.subject = "worker:another"
    hand.register()


def suspended(house: House, hand: Hand, work: Any) -> None:
    suspend_project(house.world.workspace_admin, project_id=house.world.project, reason="audit")


def blocked(house: House, hand: Hand, work: Any) -> None:
    revoke(house, "block")


def cancelled(house: House, hand: Hand, work: Any) -> None:
    cancel_run(house.world.operator, run_id=work.run_id, reason="enough")


def over_its_limit(house: House, hand: Hand, work: Any) -> None:
    [held] = [w for w in hand.poll() if w.run_id == work.run_id and w.lease_id != work.lease_id]
    hand.acquire(held)
    hand.receipts(held, costing("6"))


def drained(house: House, hand: Hand, work: Any) -> None:
    drain_worker(hand.ctx, name=hand.name, instance_id=hand.instance)


def drained_by_a_person(house: House, hand: Hand, work: Any) -> None:
    drain_from_outside(house.world.operator, worker_id=worker_id(hand), reason="the host is updated")


def restarted(house: House, hand: Hand, work: Any) -> None:
    hand.register()


REASONS: dict[str, Act] = {
    act.__name__: act
    for act in (
        frozen,
        over_and_unsettled,
        of_another_credential,
        suspended,
        blocked,
        cancelled,
        over_its_limit,
        drained,
        drained_by_a_person,
        restarted,
    )
}


@pytest.mark.requirement("DSP-01")
@pytest.mark.parametrize("reason", REASONS)
def test_whatever_a_poll_offers_can_be_acquired(tenant_id: str, reason: str) -> None:
    house = House(tenant_id)
    run_id = house.run("single" if reason == "over_and_unsettled" else "gates")
    hand = house.hand()
    offers = hand.poll()
    assert {work.run_id for work in offers} == {run_id}
    REASONS[reason](house, hand, offers[0])
    try:
        for _ in range(3):
            for work in hand.poll():
                hand.acquire(work)
    finally:
        if reason == "over_and_unsettled":
            head = "UPDATE factory_chainhead SET sequence = sequence + 1 WHERE stream_id = %s"
            house._owner(head, [run_id])


def test_no_poll_looks_at_what_waits_in_a_frozen_run_or_wakes_for_it(tenant_id: str) -> None:
    house = House(tenant_id)
    run_id, hand = house.run("gates"), house.hand(slots=1)
    asked = hand.ask(hand.take(), park=True)
    assert asked.approval_id is not None
    house.decide(asked.approval_id)

    def seen() -> tuple[int, bool]:
        steps = look_further([tenant_id], ["*/*"], "", [])
        return len(steps), tenant_id in todo([tenant_id], grace())

    assert seen() == (2, True), "one step is Pending, and one attempt parked"
    freeze(house, run_id)
    assert seen() == (0, False)
    lift(house, run_id)
    assert seen() == (2, True)


@pytest.mark.parametrize("damaged", [False, True])
def test_a_frozen_runs_offer_gives_its_slot_to_another_run_at_once(tenant_id: str, damaged: bool) -> None:
    """Also where the offer cannot be taken back, because the chain is what is damaged."""
    house = House(tenant_id)
    frozen_run, other, hand = house.run(), house.run(), house.hand(slots=1)
    [work] = hand.poll()
    frozen_run, other = (work.run_id, other) if work.run_id == frozen_run else (other, frozen_run)

    def go_on() -> None:
        freeze_as_the_auditor(house, frozen_run)
        assert house.row(frozen_run).frozen_at is not None
        [again] = hand.poll()
        assert again.run_id == other
        hand.acquire(again)
        hand.report(again, output=1)

    if not damaged:
        go_on()
        assert [str(lease.state) for lease in house.leases(frozen_run)] == ["Revoked"]
        assert violations(tenant_id) == []
        return
    with chain_damaged(house, frozen_run):
        go_on()
    assert [str(lease.state) for lease in house.leases(frozen_run)] == ["Offered"]


def test_the_offer_of_a_frozen_run_is_taken_back_and_made_anew_after_the_lift(house: House) -> None:
    run_id, hand = house.run(), house.hand()
    [work] = hand.poll()
    freeze(house, run_id)
    counts = LeaseExpiryReconciler().run_once(house.tenant)
    assert (counts.repaired, counts.refused, counts.failed) == (1, 0, 0)
    assert house.step_states(run_id) == {"look": "Pending"}
    assert hand.poll() == []
    assert LeaseExpiryReconciler().run_once(house.tenant).found == 0
    assert journal(house.system, work.lease_id)[-1] == ("Offered", "Revoked", "RunFrozen")
    assert journal(house.system, work.attempt_id)[-1] == ("Open", "TimedOut", "OfferWithdrawn")
    lift(house, run_id)
    [again] = hand.poll()
    assert again.lease_id != work.lease_id
    hand.acquire(again)
    hand.report(again, output=1)
    assert house.state(run_id) == "Completed"


def test_a_parked_attempt_that_was_offered_again_is_parked_while_its_run_is_frozen(house: House) -> None:
    run_id, hand = house.run("gated"), house.hand()
    work = hand.take()
    house.decide(hand.ask(work, park=True).approval_id)
    assert len(hand.poll()) == 1
    freeze(house, run_id)
    assert LeaseExpiryReconciler().run_once(house.tenant).repaired == 1
    assert (house.attempt(work.attempt_id).state, hand.poll()) == ("Parked", [])
    lift(house, run_id)
    [again] = hand.poll()
    assert again.attempt_id == work.attempt_id


def test_a_held_lease_of_a_frozen_run_uses_its_slot_to_its_end_and_no_longer(house: House) -> None:
    frozen_run, hand = house.run(), house.hand(slots=1)
    work = hand.take()
    other = house.run()
    freeze(house, frozen_run)
    assert hand.poll() == [], "Its process may still be at it."
    house.let_lapse(work.lease_id)
    [next_work] = hand.poll()
    assert next_work.run_id == other
    assert str(house.leases(frozen_run)[0].state) == "Held"
    lift(house, frozen_run)
    assert expire_lease(house.system, lease_id=work.lease_id, fencing_token=work.fencing_token)
    assert house.step_states(frozen_run) == {"look": "Pending"}


def test_a_frozen_run_takes_nothing_of_its_tenants_quota(house: House) -> None:
    offered, hand = house.run(), house.hand()
    change_quota(house.world.platform_admin, open_attempts=1, reason="their share")
    assert [work.run_id for work in hand.poll()] == [offered]
    other = house.run()
    assert len(hand.poll()) == 1, "at the quota: the same offer again"
    with reading(house.system):
        assert run_view(house.system, other).waiting == "The tenant's quota of 1 open attempts is used up."
    freeze(house, offered)
    assert [work.run_id for work in hand.poll()] == [other]


def test_a_drain_completes_though_what_was_offered_is_frozen(house: House) -> None:
    run_id, hand = house.run(), house.hand()
    assert len(hand.poll()) == 1
    freeze(house, run_id)
    drain_worker(hand.ctx, name=hand.name, instance_id=hand.instance)
    assert [str(lease.state) for lease in house.leases(run_id)] == ["Revoked"]
    assert hand.poll() == []


def test_what_was_offered_to_a_revoked_worker_is_another_ones_at_once(house: House) -> None:
    run_id, hand, other = house.run(), house.hand(), house.hand("w2")
    assert len(hand.poll()) == 1
    revoke_from_outside(house.world.operator, worker_id=worker_id(hand), reason="the host was taken over")
    assert [work.run_id for work in other.poll()] == [run_id]


def test_what_was_paid_while_it_was_frozen_counts_after_the_lift(house: House) -> None:
    """Over its limit, and nobody is at work: without a look at the lift it would wait for ever."""
    run_id, hand = house.run("gated"), house.hand()
    work = hand.take()
    asked = hand.ask(work, park=True)
    house.decide(asked.approval_id)
    freeze(house, run_id)
    assert hand.receipts(work, costing("6")).superseded
    lift(house, run_id)
    assert house.state(run_id) != "Running"
    assert hand.poll() == []


def test_settings_that_are_read_anew_at_any_moment_disturb_no_poll(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What looks across tenants may read no settings: they are asked before."""
    monkeypatch.setattr(reloading, "SECONDS_REMEMBERED", 0.0)
    run_id, waiting, hand = house.run(), house.run(), house.hand()
    change_quota(house.world.platform_admin, open_attempts=1, reason="their share")
    with capture_logs() as told:
        [work] = hand.poll()
        assert [each.lease_id for each in hand.poll()] == [work.lease_id]
    with reading(house.system):
        assert run_view(house.system, waiting).waiting.startswith("The tenant's quota")
    assert [line for line in told if line["event"] == "item_failed"] == []
    assert {run_id, waiting} >= {work.run_id}
