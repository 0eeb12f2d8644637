"""Slots, quotas, turns and drains: what a worker is given, and what it is not."""

from datetime import timedelta
from functools import partial
from uuid import UUID

import pytest
from django.core.management import call_command

from factory.kernel.context import platform
from factory.kernel.errors import DomainError, InvalidInput
from factory.kernel.models import RevokedToken
from factory.kernel.tenancy import reading
from projects.commands import suspend_project
from runs.commands import change_quota, expire_lease, leave_tenant, serve_tenant, undrain
from runs.dispatch import drain_from_outside, polling
from runs.errors import LeaseOver
from runs.models import TenantQuota, Worker
from runs.operations.timing import LONGEST_BACK_OFF, back_off
from runs.selectors import run_view
from tests.faults.rounds import rounds
from tests.support.evidence import audits
from tests.support.hands import Hand
from tests.support.races import race
from tests.support.receipts import costing
from tests.support.running import House
from tests.support.world import world

pytestmark = pytest.mark.slow


def waiting(house: House, run_id: UUID) -> str:
    with reading(house.system):
        return run_view(house.world.operator, run_id).waiting


def quota(house: House, most: int | None) -> None:
    change_quota(house.world.platform_admin, open_attempts=most, reason="their share")


def worker_id(worker: Hand) -> UUID:
    return UUID(str(Worker.objects.get(pool_id=worker.house.pool, name=worker.name).id))


def test_a_first_quota_may_be_set_by_two_at_once(tenant_id: str) -> None:
    """There is no row yet that one of them could hold."""
    for n in range(rounds(3)):
        admin = world(f"{tenant_id}-{n}").platform_admin
        told = race(*(partial(change_quota, admin, open_attempts=most, reason="share") for most in (3, 7)))
        assert told == [None, None]
        with reading(admin):
            last = TenantQuota.objects.get().open_attempts
        noted = [each.detail for each in audits(admin, "ChangeTenantQuota")]
        assert noted == [{"before": None, "after": 10 - last}, {"before": 10 - last, "after": last}]


@pytest.mark.requirement("DSP-02", "DSP-03", "ARC-15")
def test_a_tenant_at_its_quota_waits_and_says_so(house: House) -> None:
    first, second = house.run(), house.run()
    worker = house.hand()
    quota(house, 1)
    [work] = worker.poll()
    assert (work.run_id, house.state(second)) == (first, "Accepted")
    assert waiting(house, second) == "The tenant's quota of 1 open attempts is used up."
    worker.acquire(work)
    assert worker.poll() == []
    worker.report(work, output=1)
    [work] = worker.poll()
    assert work.run_id == second
    third = house.run()
    quota(house, None)
    assert {each.run_id for each in worker.poll()} == {second, third}
    changed = [
        (each.detail["before"], each.detail["after"]) for each in audits(house.system, "ChangeTenantQuota")
    ]
    assert changed == [(None, 1), (1, None)]


def test_only_the_platform_changes_a_quota_and_says_why(house: House) -> None:
    for member in ("tenant_admin", "operator", "workspace_admin"):
        with pytest.raises(DomainError) as refused:
            change_quota(getattr(house.world, member), open_attempts=5, reason="more")
        assert refused.value.code == "insufficient-role"
    for most, reason in ((-1, "less"), (1, " ")):
        with pytest.raises(InvalidInput):
            change_quota(house.world.platform_admin, open_attempts=most, reason=reason)


@pytest.mark.requirement("DSP-02")
def test_two_workers_at_once_do_not_pass_the_quota(house: House) -> None:
    for _ in range(4):
        house.run()
    quota(house, 2)
    hands = [house.hand(f"w{n}") for n in range(3)]
    given = race(*(hand.poll for hand in hands))
    assert sum(len(each) for each in given) == 2


def test_a_parked_attempt_uses_up_no_quota(house: House) -> None:
    gated, other = house.run("gated"), house.run()
    quota(house, 1)
    worker = house.hand()
    [work] = worker.poll()
    worker.acquire(work)
    asked = worker.ask(work, park=True)
    [next_one] = worker.poll()
    assert (work.run_id, next_one.run_id) == (gated, other)
    house.decide(asked.approval_id)
    assert waiting(house, gated) == "Decided. The tenant's quota of 1 open attempts is used up."
    worker.acquire(next_one)
    worker.report(next_one, output=1)
    assert [each.attempt_id for each in worker.poll()] == [work.attempt_id]


@pytest.mark.requirement("DSP-01")
def test_what_may_not_go_on_hides_nothing_behind_it(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs over their limit, older than the one that could go on, and more of them than a page holds."""
    monkeypatch.setattr("runs.selectors.waiting.PAGE", 2)
    monkeypatch.setattr(polling, "PAGE", 2)
    worker = house.hand(slots=9)
    for _ in range(3):
        house.run("mixed", limits={"maxCostUsd": 1, "maxMinutes": 30})
    held = {}
    while len(held) < 6:
        for work in worker.poll():
            held[work.attempt_id] = work
            worker.acquire(work)
    for work in held.values():
        if work.snapshot["stepKey"] == "side":
            worker.fail(work)
            house.make_due(work.run_id)
        else:
            worker.receipts(work, costing("1.500000"))
    behind = house.run()
    assert [work.run_id for work in worker.poll()] == [behind]


def test_the_turn_goes_past_the_tenant_served_last_also_for_a_new_worker(
    house: House, tenant_id: str
) -> None:
    other = House(f"{tenant_id}-b")
    serve_tenant(other.system, pool=house.pool, tenant_id=other.tenant)
    other.pool = house.pool
    mine = [house.run() for _ in range(2)]
    theirs = [other.run() for _ in range(2)]
    given = [house.hand(f"once-{n}", slots=1).poll()[0].run_id for n in range(4)]
    assert given == [mine[0], theirs[0], mine[1], theirs[1]]
    first = worker_id(Hand(house, "once-1"))
    for who in (house.world.operator, house.world.platform_admin):
        for stop in (drain_from_outside, undrain):
            with pytest.raises(DomainError) as refused:
                stop(who, worker_id=first, reason="update")
            assert refused.value.code == "worker-serves-others", "Nobody of one tenant stops others' work."
    call_command("drain", house.pool, "once-1", reason="its host is updated")
    assert Worker.objects.get(pk=first).drained_by == "system:host"
    call_command("drain", house.pool, "once-1", end=True, reason="it is updated")
    assert Worker.objects.get(pk=first).draining_at is None
    for told in (house.system, other.system):
        assert [each.action for each in audits(told, "DrainWorker")] == ["DrainWorker"]
        assert len(audits(told, "UndrainWorker")) == 1
    assert f"worker:{first}" in [each.subject for each in audits(platform(), "DrainWorker")]


def test_a_worker_of_a_pool_that_serves_nobody_is_revoked_all_the_same(house: House) -> None:
    worker = house.hand()
    leave_tenant(house.system, pool=house.pool, tenant_id=house.tenant)
    call_command("revoke_worker", house.pool, worker.name, reason="its host was lost")
    assert RevokedToken.objects.filter(pool=house.pool).exists()


def test_an_operators_drain_stands_until_somebody_ends_it(house: House) -> None:
    run_id = house.run()
    worker = house.hand()
    held = worker.take()
    house.run()
    [offer] = [work for work in worker.poll() if work.run_id != run_id]
    drain_from_outside(house.world.operator, worker_id=worker_id(worker), reason="the host is updated")
    with pytest.raises(LeaseOver):
        worker.acquire(offer)
    worker.register()
    assert worker.poll() == [], "A restart of the process does not end what a person began."
    assert not worker.acquire(held).cancel_requested
    worker.report(held, output=1)
    undrain(house.world.operator, worker_id=worker_id(worker), reason="it is updated")
    assert [work.run_id for work in worker.poll()] == [offer.run_id]
    told = [(each.action, each.actor, each.reason) for each in audits(house.system, "DrainWorker")]
    assert told == [("DrainWorker", house.world.operator.actor.subject, "the host is updated")]
    assert len(audits(house.system, "UndrainWorker")) == 1
    with pytest.raises(DomainError) as refused:
        drain_from_outside(house.world.requester, worker_id=worker_id(worker), reason="no")
    assert refused.value.code == "insufficient-role"


def test_a_parked_attempt_that_nobody_takes_again_is_parked_again(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    asked = worker.ask(work, park=True)
    house.decide(asked.approval_id)
    for _ in range(2):
        [again] = worker.poll()
        assert again.attempt_id == work.attempt_id
        house.let_lapse(again.lease_id)
        assert expire_lease(house.system, lease_id=again.lease_id, fencing_token=again.fencing_token)
        assert (house.attempt(work.attempt_id).state, house.step_states(run_id)) == (
            "Parked",
            {"publish": "Running"},
        )
    suspend_project(house.world.tenant_admin, project_id=house.world.project, reason="audit")
    assert worker.poll() == []
    assert len(house.attempts(run_id)) == 1


def test_the_back_off_grows_and_is_bounded() -> None:
    for tries in range(1, 40):
        longest = min(timedelta(seconds=2 * 2 ** (tries - 1)), LONGEST_BACK_OFF)
        drawn = [back_off(tries) for _ in range(50)]
        assert all(longest / 2 <= each <= longest for each in drawn)
        assert len(set(drawn)) > 25, "What failed together does not come back together."
