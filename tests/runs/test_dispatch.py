"""Dispatch: live workers with free slots, tenants in turn, and money first."""

import pytest

from factory.kernel.errors import DomainError, Forbidden, InvalidInput
from factory.kernel.tenancy import reading
from projects.commands import resume_project, suspend_project
from runs.commands import fail_run_on_expired_reservation, register_worker, serve_tenant, start_run
from runs.dispatch import drain_worker
from runs.errors import WorkerNotRegistered
from runs.selectors import run_view
from tests.support.aging import outwait_money
from tests.support.evidence import journal, violations
from tests.support.receipts import costing
from tests.support.running import House
from usage.commands import expire_reservation
from usage.selectors import reservation_of

pytestmark = pytest.mark.slow


def waiting(house: House, run_id) -> str:
    with reading(house.system):
        return run_view(house.world.operator, run_id).waiting


@pytest.mark.requirement("DSP-02", "DSP-03", "STP-12", "DSP-10", "ARC-29")
def test_a_worker_gets_as_much_as_it_has_slots(house: House) -> None:
    runs = [house.run() for _ in range(3)]
    worker = house.hand(slots=2)
    first, second = worker.poll()
    assert [w.run_id for w in (first, second)] == runs[:2], "The oldest first."
    assert {w.lease_id for w in worker.poll()} == {first.lease_id, second.lease_id}, "A lost answer again."
    assert (house.step_states(runs[2]), house.state(runs[2])) == ({"look": "Pending"}, "Accepted")
    worker.acquire(first)
    worker.report(first, output=1)
    assert {w.run_id for w in worker.poll()} == {second.run_id, runs[2]}


@pytest.mark.requirement("DSP-01")
def test_gives_only_what_a_worker_can_do_and_says_why_the_rest_waits(house: House) -> None:
    run_id = house.run()
    assert waiting(house, run_id) == "No live worker can do analyst/look."
    for number, capability in enumerate(("other/*", "analyst/write", "analyst/lo", "*.look/*")):
        assert house.hand(f"w{number}", capabilities=(capability,)).poll() == []
    with pytest.raises(InvalidInput):
        house.hand("w9", capabilities=("analyst/l__k",))
    assert waiting(house, run_id) == "No live worker can do analyst/look."
    able = house.hand("able", slots=1, capabilities=("ana*/lo*",))
    assert waiting(house, run_id) == "Every worker that could do it is busy."
    assert len(able.poll()) == 1
    assert waiting(house, run_id) == "Offered to a worker that has not acquired it yet."


def test_tenants_are_served_in_turn(house: House, tenant_id: str) -> None:
    other = House(f"{tenant_id}-b")
    other.pool = house.pool
    serve_tenant(other.system, pool=house.pool, tenant_id=other.tenant)
    mine = {house.run() for _ in range(3)}
    theirs = {other.run()}
    worker = house.hand(slots=2)
    got = {work.run_id for work in worker.poll()}
    assert (len(got & mine), len(got & theirs)) == (1, 1), (
        "Three of one tenant do not starve the other's one."
    )


def test_a_suspended_project_has_nothing_new_dispatched(house: House) -> None:
    held = house.run()
    worker = house.hand()
    work = worker.take()
    run_id = house.run()
    suspend_project(house.world.tenant_admin, project_id=house.world.project, reason="audit")
    assert (worker.poll(), waiting(house, run_id)) == ([], "The project is suspended.")
    assert not worker.acquire(work).cancel_requested
    worker.report(work, output=1)
    assert house.state(held) == "Completed", "Open leases may finish."
    with pytest.raises(DomainError) as refused:
        house.accept()
    assert refused.value.code == "project-not-active"
    resume_project(house.world.tenant_admin, project_id=house.world.project, reason="done")
    assert [w.run_id for w in worker.poll()] == [run_id]


def test_a_draining_worker_keeps_what_it_holds_and_gives_back_its_offers(house: House) -> None:
    house.run()
    worker, other = house.hand("w1"), house.hand("w2")
    held = worker.take()
    offered_run = house.run()
    [_, offer] = sorted([held, *worker.poll()], key=lambda w: w.fencing_token)
    drain_worker(worker.ctx, name="w1", instance_id=worker.instance)
    house.run()
    assert worker.poll() == []
    assert offered_run in {w.run_id for w in other.poll()}
    assert house.attempt(offer.attempt_id).state == "TimedOut"
    assert not worker.acquire(held).cancel_requested
    worker.report(held, output=1)
    worker.register()
    assert worker.poll() != [] or other.slots


def test_a_draining_worker_that_gives_up_while_a_person_decides_costs_no_attempt(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    asked = worker.ask(work)
    drain_worker(worker.ctx, name=worker.name, instance_id=worker.instance)
    told = worker.fail(work)
    assert (told.outcome, house.attempt(work.attempt_id).state) == ("Parked", "Parked")
    assert [view.id for view in house.pending(run_id)] == [asked.approval_id]
    house.decide(asked.approval_id)
    other = house.hand("w2")
    again = other.take()
    assert (again.attempt_id, again.number) == (work.attempt_id, 1)
    drain_worker(other.ctx, name="w2", instance_id=other.instance)
    assert other.fail(again, "transient").outcome == "Failed", (
        "after the decision it is a failure as any other"
    )
    assert violations(house.tenant) == []


def test_a_worker_has_to_be_registered_in_a_pool(house: House) -> None:
    worker = house.hand()
    worker.name = "nobody"
    with pytest.raises(WorkerNotRegistered):
        worker.poll()
    house.pool = "no-such-pool"
    with pytest.raises(Forbidden):
        register_worker(worker.ctx, name="w1", capabilities=("*/*",), max_concurrency=1, version="1")


@pytest.mark.requirement("DSP-05", "DSP-08", "RUN-08")
def test_starting_twice_starts_once(house: House) -> None:
    run_id = house.accept()
    worker = house.hand()
    assert worker.poll() == [], "Nothing before its money is set aside."
    start_run(house.system, run_id=run_id)
    assert start_run(house.system, run_id=run_id) == "Accepted"
    assert len(house.steps(run_id)) == 1
    [work] = worker.poll()
    assert start_run(house.system, run_id=run_id) == "Running"
    assert work.run_id == run_id


@pytest.mark.requirement("RUN-09", "DSP-08", "FLR-07")
def test_a_run_without_money_never_begins(tenant_id: str) -> None:
    house = House(tenant_id, budget="10")
    run_id = house.run(limits={"maxCostUsd": 50})
    run = house.row(run_id)
    assert (run.state, run.failure_class, run.started_at) == ("Failed", "budget", None)
    assert "budget" in run.reason
    assert journal(house.system, run_id)[-1] == ("Accepted", "Failed", "BudgetDenied")
    assert house.hand().poll() == []


@pytest.mark.requirement("USG-10")
def test_money_that_waited_too_long_goes_back_and_fails_the_run(house: House) -> None:
    run_id = house.run()
    with reading(house.system):
        reservation = reservation_of(run_id)
    outwait_money(house, run_id)
    assert house.hand().poll() == [], "It is too late for its money."
    with reading(house.system):
        due = reservation_of(run_id).expires_at
    assert expire_reservation(house.system, reservation_id=reservation.id, expires_at=due)
    assert fail_run_on_expired_reservation(house.system, run_id=run_id) == "Failed"
    assert house.row(run_id).failure_class == "budget"
    assert house.step_states(run_id) == {"look": "Cancelled"}


@pytest.mark.requirement("RUN-19")
def test_past_its_limit_nothing_more_of_a_run_is_dispatched(house: House) -> None:
    run_id = house.run("diamond", limits={"maxCostUsd": 1, "maxMinutes": 30})
    worker = house.hand(slots=1)
    worker.report(worker.take(), output="A")
    b = worker.take()
    worker.receipts(b, costing("1.500000"))
    other = house.hand("w2")
    assert other.poll() == []
    worker.report(b, output="B")
    run = house.row(run_id)
    assert (run.state, run.failure_class) == ("Failed", "budget")
    assert journal(house.system, run_id)[-1][2] in ("BudgetExhausted", "RunEnded")
    with reading(house.system):
        settled = reservation_of(run_id)
    assert (settled.state, settled.spent) == ("Settled", 1.5)


def test_a_run_whose_last_step_passed_the_limit_is_done_all_the_same(house: House) -> None:
    run_id = house.run(limits={"maxCostUsd": 1, "maxMinutes": 30})
    worker = house.hand()
    worker.report(worker.take(), output=1, receipts=[costing("1.500000")])
    assert house.state(run_id) == "Completed"
