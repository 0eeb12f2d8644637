"""Leases when many want them, when their holders stand still, and when clocks or schedules go wrong."""

import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
import time_machine

from approvals.errors import ApprovalExpired, ApprovalOver
from factory.kernel.errors import DomainError
from factory.kernel.models import JournalEntry
from factory.kernel.tenancy import reading
from runs.commands import report_outcome
from runs.models import Lease
from runs.reconcilers import LeaseExpiryReconciler
from tests.faults.rounds import rounds
from tests.support.evidence import audits, counts
from tests.support.hands import Hand
from tests.support.proposals import DIFF, OTHER_DIFF
from tests.support.races import race, row_held
from tests.support.running import House
from tests.support.threads import at_once


@pytest.mark.requirement("LSE-03", "DSP-05")
def test_a_lease_storm_leases_each_step_once(house: House) -> None:
    """16 pollers; 500 steps at FACTORY_FAULT_ROUNDS=20."""
    runs = [house.run() for _ in range(rounds(25))]
    hands = [house.hand(f"w{n}", slots=4) for n in range(16)]
    got: list[tuple[UUID, int]] = []
    took: list[float] = []

    def work(hand: Hand) -> None:
        idle = 0
        while idle < 3:
            began = time.perf_counter()
            works = hand.poll()
            took.append(time.perf_counter() - began)
            idle = 0 if works else idle + 1
            for each in works:
                hand.acquire(each)
                got.append((each.step_id, each.fencing_token))
                hand.report(each, output=1)

    assert [a for a in at_once([partial(work, hand) for hand in hands], patience=300) if a] == []
    print(f"p99 of {len(took)} polls: {statistics.quantiles(took, n=100)[-1]:.3f} s")  # noqa: T201
    assert len(got) == len({step for step, _ in got}) == len({token for _, token in got}) == len(runs)
    assert {house.state(run_id) for run_id in runs} == {"Completed"}


HOLDER = """
import sys, django
django.setup()
from uuid import UUID
from factory.kernel.context import Actor, Context
from factory.kernel.errors import DomainError
from factory.kernel.hashing import digest
from runs.commands import acquire_lease, report_outcome
from runs.selectors import assignment_scope
subject, pool, attempt, lease, token = sys.argv[1:]
actor = Actor(subject, "worker", scopes=frozenset({"factory.worker"}), pool=pool)
worker = Context("", None, actor, channel="worker")
fence = {"attempt_id": UUID(attempt), "lease_id": UUID(lease), "fencing_token": int(token)}
acquire_lease(assignment_scope(worker, fence["attempt_id"]), **fence)
print("held", flush=True)
sys.stdin.readline()
told = {"outcome": "Succeeded", "failureClass": None, "reason": None, "output": {"by": "who stood still"}}
try:
    report_outcome(
        assignment_scope(worker, fence["attempt_id"]), **fence, outcome="Succeeded", output=told["output"],
        outcome_hash=digest(told))
    print("accepted", flush=True)
except DomainError as refusal:
    print(refusal.code, refusal.http_status, flush=True)
"""


@contextmanager
def holder(hand: Hand, work: Any) -> Iterator["subprocess.Popen[str]"]:
    """A process of its own that holds the lease, and reports when it is told to."""
    fence = [str(work.attempt_id), str(work.lease_id), str(work.fencing_token)]
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, hand.subject, hand.house.pool, *fence],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    try:
        assert said(process) == "held"
        yield process
    finally:
        process.kill()
        process.wait(10)


def said(process: "subprocess.Popen[str]") -> str:
    """The next line that is no log line."""
    assert process.stdout is not None
    while line := process.stdout.readline():
        if not line.startswith("{"):
            return line.strip()
    return ""


@pytest.mark.requirement("ATT-03")
def test_a_worker_that_stood_still_past_its_lease_settles_nothing(house: House) -> None:
    """SIGSTOP, the lease ends, another finishes the step, SIGCONT, and the first one reports: 409."""
    run_id = house.run()
    first, other = house.hand("first"), house.hand("other")
    [work] = first.poll()
    with holder(first, work) as process:
        process.send_signal(signal.SIGSTOP)
        house.let_lapse(work.lease_id)
        assert other.poll() == []  # it recovers the lease; the step waits for its back-off
        house.make_due(run_id)
        again = other.take()
        assert again.fencing_token > work.fencing_token
        other.report(again, output={"by": "other"})
        before = counts(house.system)[:2]
        assert process.stdin is not None
        process.stdin.write("now\n")
        process.stdin.flush()
        process.send_signal(signal.SIGCONT)
        assert said(process) == "stale-fencing-token 409"
    assert counts(house.system)[:2] == before
    assert house.row(run_id).output == {"by": "other"}
    [refused] = [a for a in audits(house.system, "ReportAttemptOutcome") if a.outcome == "refused"]
    assert refused.subject == f"attempt:{work.attempt_id}"


@pytest.mark.requirement("ATT-04")
def test_the_same_worker_with_its_older_token_is_refused(house: House) -> None:
    """Both ways to a second lease: the same attempt parked and leased again, and the step's next attempt."""
    worker = house.hand()
    run_id = house.run("gated")
    first = worker.take()
    asked = worker.ask(first, park=True).approval_id
    house.decide(asked)
    second = worker.take()
    assert second.attempt_id == first.attempt_id
    assert refusal(worker, first) == "stale-fencing-token"
    house.let_lapse(second.lease_id)
    LeaseExpiryReconciler().run_once(house.tenant)  # parked again: approved, and not used
    third = worker.take()
    worker.fail(third)
    house.make_due(run_id)
    fourth = worker.take()
    for older in (first, second, third):
        assert refusal(worker, older) in ("stale-fencing-token", "attempt-settled")
    tokens = [work.fencing_token for work in (first, second, third, fourth)]
    assert tokens == sorted(set(tokens))
    assert house.attempt(fourth.attempt_id).state == "Open"
    worker.report(fourth, output=1)


def refusal(worker: Hand, work: Any) -> str:
    with pytest.raises(DomainError) as refused:
        worker.report(work, output={"older": True})
    return refused.value.code


def test_without_the_token_in_the_statement_the_older_holder_gets_in(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weaker rule: who is the holder and what its lease was called, and not under which token."""
    worker = house.hand()
    house.run("gated")
    first = worker.take()
    house.decide(worker.ask(first, park=True).approval_id)
    worker.take()

    def by_name(ctx: Any, tried: Any, lease_id: UUID, token: int) -> Any:
        lease = Lease.objects.filter(attempt_id=tried.attempt.id, holder=ctx.actor.subject).latest(
            "offered_at"
        )
        lease.run = tried.run
        return lease

    monkeypatch.setattr(sys.modules[report_outcome.__module__], "current_lease", by_name)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        refusal(worker, first)


@pytest.mark.requirement("ATT-03", "WAPI-07")
def test_one_outcome_of_twenty_one_sent_at_once(house: House, chance: random.Random) -> None:
    worker = house.hand()
    for _ in range(rounds(4)):
        run_id = house.run()
        work = worker.take()
        acts = [partial(worker.report, work, output={"n": 1}) for _ in range(20)]
        acts.insert(chance.randrange(21), partial(worker.report, work, output={"n": 2}))
        answers = at_once(acts)
        told = [a for a in answers if not isinstance(a, Exception)]
        refused = [a.code for a in answers if isinstance(a, DomainError)]
        assert len(told) + len(refused) == 21, answers
        assert len({a.outcome_hash for a in told}) == 1
        assert set(refused) == {"attempt-settled"}
        assert len(refused) in (1, 20)
        assert (house.state(run_id), len(house.attempts(run_id))) == ("Completed", 1)


@pytest.mark.requirement("JOB-12")
def test_two_schedulers_act_once_and_without_any_leases_recover(house: House) -> None:
    """Two ticks of one slot at the same moment; then no tick at all, and somebody who polls."""
    worker = house.hand(slots=100)
    lapsed = lapsed_leases(house, worker, rounds(12))
    ticks = race(*[lambda: LeaseExpiryReconciler().run_once(house.tenant)] * 3)
    assert sum(done.found for done in ticks) >= len(lapsed)
    assert expiries(house) == dict.fromkeys(lapsed, 1)
    unticked = lapsed_leases(house, worker, 4)
    house.hand("other").poll()
    assert expiries(house) == dict.fromkeys((*lapsed, *unticked), 1)


def lapsed_leases(house: House, worker: Hand, number: int) -> list[UUID]:
    """Leases whose holder fell silent long ago."""
    runs = {house.run("gated") for _ in range(number)}
    works = [work for work in worker.poll() if work.run_id in runs]
    for work in works:
        worker.acquire(work)
    for work in works:
        house.let_lapse(work.lease_id)
    return [UUID(str(work.lease_id)) for work in works]


def expiries(house: House) -> dict[UUID, int]:
    """How often each lease expired."""
    with reading(house.system):
        rows = JournalEntry.objects.filter(entity="lease", to_state="Expired").values_list(
            "entity_id", flat=True
        )
        found = list(rows)
    return {lease_id: found.count(lease_id) for lease_id in found}


@pytest.mark.parametrize("minutes", [-10, 10])
def test_a_clock_that_goes_wrong_changes_no_verdict(
    house: House, minutes: int, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Web and worker ten minutes ahead or behind: only the database's time decides."""
    settings.FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS = 2 / 3600
    with time_machine.travel(datetime.now(UTC) + timedelta(minutes=minutes), tick=True):
        worker = house.hand()
        live, late = house.run("gated"), house.run("gated")
        works = {work.run_id: work for work in worker.poll()}
        for work in works.values():
            worker.acquire(work)
        asked = worker.ask(works[live], DIFF).approval_id
        house.let_lapse(works[late].lease_id, seconds=31)
        assert LeaseExpiryReconciler().run_once(house.tenant).repaired == 1
        assert not worker.acquire(works[live]).cancel_requested
        with pytest.raises(DomainError) as refused:
            worker.acquire(works[late])
        assert refused.value.code == "lease-expired"
        house.decide(asked)
        worker.authorize(works[live], asked, DIFF)
        house.make_due(late)
        again = worker.take()
        unanswered = worker.ask(again, OTHER_DIFF).approval_id
        time.sleep(2.1)
        with pytest.raises(ApprovalExpired):
            house.decide(unanswered)
    assert (house.state(late), house.row(late).failure_class) == ("Failed", "policy-denied")
    [lease] = house.leases(live)
    assert lease.expires_at < datetime.now(UTC) + timedelta(seconds=125)


@pytest.mark.requirement("APR-11")
def test_a_decision_that_waited_for_its_row_past_the_end_is_too_late(house: House, settings: Any) -> None:
    """The request could still be answered when the transaction began; when it has the row, it cannot."""
    settings.FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS = 1.2 / 3600
    worker = house.hand()
    for _ in range(rounds(2)):
        run_id = house.run("gated")
        asked = worker.ask(worker.take()).approval_id
        with row_held(house.tenant, "runs_run", run_id, 1.6), pytest.raises((ApprovalExpired, ApprovalOver)):
            house.decide(asked)
        [view] = house.approvals(run_id)
        assert (view.state, view.decision) == ("Expired", "")
        assert house.state(run_id) == "Failed"
        for attempt in house.attempts(run_id):
            house.let_lapse(attempt.lease_id)
        worker.poll()
