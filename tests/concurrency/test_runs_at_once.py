"""Many at once, on connections of their own; each ends with the auditor's verdict."""

import random
import threading
from functools import partial
from uuid import UUID, uuid4

import pytest
from django.db import connection

from factory.kernel.errors import DomainError, IdempotencyConflict
from factory.kernel.tenancy import reading
from runs.commands import cancel_run, expire_lease, start_run
from runs.errors import AttemptSettled, StaleFencingToken
from runs.models import Run
from runs.rest.submissions import submit
from runs.states import ATTEMPT_TERMINAL
from tests.faults.rounds import rounds
from tests.support.proposals import said
from tests.support.races import race
from tests.support.receipts import effect
from tests.support.running import House
from tests.support.threads import at_once


@pytest.mark.requirement("API-02", "API-05")
def test_fifty_submissions_with_one_key_make_one_run(house: House) -> None:
    key, ctx = str(uuid4()), house.world.requester
    same = [partial(submit, ctx, payload=house.payload(), key=key) for _ in range(50)]
    answers = []
    for start in range(0, 50, 10):
        answers += race(*same[start : start + 10])
    assert {body["runId"] for body, _ in answers} == {answers[0][0]["runId"]}
    assert [replayed for _, replayed in answers].count(False) == 1
    with reading(house.system):
        assert Run.objects.filter(idempotency_key=key).count() == 1


@pytest.mark.requirement("API-03")
def test_other_bodies_at_once_conflict_and_never_break(house: House) -> None:
    key, ctx = str(uuid4()), house.world.requester
    payloads = [house.payload(input={"repository": f"r{i}"}) for i in range(10)]
    answers = race(*(partial(submit, ctx, payload=payload, key=key) for payload in payloads))
    assert sum(isinstance(a, tuple) for a in answers) == 1
    assert sum(isinstance(a, IdempotencyConflict) for a in answers) == 9


@pytest.mark.requirement("ATT-03", "WAPI-07")
def test_twenty_identical_outcomes_and_a_different_one(house: House) -> None:
    run_id = house.run()
    worker = house.hand()
    work = worker.take()
    same = [partial(worker.report, work, output={"n": 1})] * 20
    answers = at_once([*same, partial(worker.report, work, output={"n": 2})])
    refused = [a for a in answers if isinstance(a, Exception)]
    kept = {a.outcome_hash for a in answers if not isinstance(a, Exception)}
    assert len(kept) == 1
    assert all(isinstance(a, AttemptSettled) for a in refused)
    assert len(refused) in (1, 20)
    assert (house.state(run_id), len(house.attempts(run_id))) == ("Completed", 1)


@pytest.mark.requirement("LSE-03", "STP-04", "DSP-05")
def test_a_storm_of_pollers_leases_each_step_once(house: House) -> None:
    runs = [house.run() for _ in range(60)]
    got: list[list[UUID]] = [[] for _ in range(8)]
    hands = [house.hand(f"w{n}", slots=3) for n in range(8)]

    def work(number: int) -> None:
        idle = 0
        while idle < 3:
            works = hands[number].poll()
            idle = 0 if works else idle + 1
            for each in works:
                hands[number].acquire(each)
                got[number].append(each.step_id)
                hands[number].report(each, output=1)

    assert [a for a in at_once([partial(work, n) for n in range(8)]) if a is not None] == []
    taken = [step for own in got for step in own]
    assert (len(taken), len(set(taken))) == (60, 60)
    assert {house.state(run_id) for run_id in runs} == {"Completed"}


@pytest.mark.requirement("LSE-03")
def test_two_who_dispatch_one_step_lease_it_once(house: House) -> None:
    hands = [house.hand(f"w{n}") for n in range(4)]
    for _ in range(10):
        run_id = house.run()
        answers = race(*(hand.poll for hand in hands))
        assert sorted(len([w for w in works if w.run_id == run_id]) for works in answers) == [0, 0, 0, 1]


@pytest.mark.slow
def test_no_decision_is_lost_while_its_attempt_parks(house: House) -> None:
    """The decision comes while the parking call still returns: every attempt is leased again with it."""
    worker = house.hand(slots=50)
    for turn in range(rounds(15)):
        run_id = house.run("gated")
        work = worker.take()
        asked = worker.ask(work, proposal=said(f"turn {turn}"))

        def decide(approval_id=asked.approval_id) -> None:
            house.decide(approval_id)

        answers = race(partial(worker.ask, work, proposal=said(f"turn {turn}"), park=True), decide)
        assert not [a for a in answers if isinstance(a, Exception)], answers
        if answers[0].parked:
            work = worker.take()
            decision = work.decision
        else:
            decision = answers[0].decision
        assert decision is not None
        assert decision.decision == "approve"
        worker.authorize(work, asked.approval_id, said(f"turn {turn}"))
        worker.report(work, output=1, receipts=[effect(asked.approval_id, said(f"turn {turn}"))])
        assert house.state(run_id) == "Completed"


@pytest.mark.requirement("RUN-28", "LSE-03")
def test_outcome_expiry_cancel_and_renewal_meet(house: House) -> None:
    """Whatever the order, one settlement of the attempt and one of the money."""
    worker = house.hand(slots=40)
    chance = random.Random(7)
    for _ in range(15):
        run_id = house.run("gated" if chance.random() < 0.5 else "single")
        work = worker.take()
        house.let_lapse(work.lease_id, seconds=31)
        acts = [
            partial(worker.report, work, output=1),
            partial(expire_lease, house.system, lease_id=work.lease_id, fencing_token=work.fencing_token),
            partial(cancel_run, house.world.operator, run_id=run_id, reason="now"),
            partial(worker.acquire, work),
        ]
        chance.shuffle(acts)
        for answer in race(*acts):
            assert not isinstance(answer, Exception) or isinstance(answer, DomainError), answer
        if house.state(run_id) == "Running":
            cancel_run(house.world.operator, run_id=run_id, reason="later")
        assert house.state(run_id) in ("Completed", "Cancelled", "Failed")
        assert len([a for a in house.attempts(run_id) if a.state in ATTEMPT_TERMINAL]) == len(
            house.attempts(run_id)
        )


@pytest.mark.requirement("RUN-12", "STP-05")
def test_approvals_decided_at_once_let_the_run_go_only_after_the_last(house: House) -> None:
    worker = house.hand(slots=20)
    for _ in range(8):
        run_id = house.run("gates")
        asked = []
        for work in worker.poll():
            if work.run_id == run_id:
                worker.acquire(work)
                asked.append(worker.ask(work, park=True).approval_id)
        answers = race(*(partial(house.decide, approval_id) for approval_id in asked))
        assert not [a for a in answers if isinstance(a, Exception)], answers
        assert house.state(run_id) == "Running"
        for work in worker.poll():
            worker.acquire(work)
            worker.report(work, output=1)
        worker.report(worker.take(), output=1)
        assert house.state(run_id) == "Completed"


def test_starting_and_cancelling_at_once_sets_no_money_aside_for_good(house: House) -> None:
    for _ in range(10):
        run_id = house.accept()
        answers = race(
            partial(start_run, house.system, run_id=run_id),
            partial(cancel_run, house.world.operator, run_id=run_id, reason="now"),
        )
        assert not [a for a in answers if isinstance(a, Exception)], answers
        assert house.state(run_id) == "Cancelled"


@pytest.mark.requirement("LSE-07")
def test_the_verdict_on_a_lease_is_by_the_clock_after_the_lock(house: House) -> None:
    """The call waited for the row past the lease's end: it is too late, whenever its transaction began."""
    house.run()
    worker = house.hand()
    work = worker.take()
    house.let_lapse(work.lease_id, seconds=29)  # the grace of 30 s is over in one
    locked, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        from django.db import transaction

        try:
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("SELECT set_config('factory.tenant', %s, true)", [house.tenant])
                    cursor.execute("SELECT 1 FROM runs_run WHERE id = %s FOR NO KEY UPDATE", [work.run_id])
                locked.set()
                let_go.wait(10)
        finally:
            connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert locked.wait(10)
    threading.Timer(1.4, let_go.set).start()
    with pytest.raises(DomainError) as refused:
        worker.acquire(work)
    holder.join()
    assert refused.value.code == "lease-expired"
    assert StaleFencingToken
