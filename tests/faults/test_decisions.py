"""Decisions that meet something else: a form left open, a call that still returns, a cancellation."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from approvals.events import ApprovalRequested
from factory.kernel.context import Context
from factory.kernel.errors import DomainError
from factory.kernel.models import JournalEntry
from factory.kernel.tenancy import reading
from factory.messaging.relay import Received
from factory.messaging.relay.delivery import deliver_due
from factory.messaging.relay.destinations import Handlers
from factory.messaging.relay.handlers import Handler, _handlers
from runs.commands import cancel_run
from tests.faults.rounds import rounds
from tests.security.test_tenant_matrix import browser
from tests.support.api import Api, problem
from tests.support.evidence import journal
from tests.support.hands import Hand
from tests.support.proposals import said
from tests.support.races import race
from tests.support.receipts import effect
from tests.support.running import House
from usage.models import LedgerEntry, Reservation
from usage.states import Movement


@pytest.mark.requirement("APR-09")
def test_a_form_of_the_first_gate_that_was_left_open_decides_nothing_of_the_second(house: House) -> None:
    worker, reviewer = house.hand(), house.world.reviewer2
    house.run("row")
    work = worker.take()
    first = worker.ask(work).approval_id
    form = shown(house, first)
    house.decide(first)
    worker.authorize(work, first)
    worker.report(work, output=1, receipts=[effect(first)])
    second = worker.ask(worker.take(), proposal=said("the second")).approval_id
    waiting = shown(house, second)
    api, page = Api.as_(reviewer), browser(reviewer)
    for decision in ("approve", "reject", "request_changes"):
        body = {**form, "decision": decision, "reason": "as I saw it"}
        typed = {"version": form["version"], "proposal_hash": form["proposalHash"], "reason": "as I saw it"}
        for target, code in ((first, "already-decided"), (second, "version-mismatch")):
            answer = api.post(f"/factory/approvals/{target}/decision", body)
            assert answer.status_code == 409, answer.content
            assert problem(answer)["type"].endswith(f"/{code}")
            path = f"/admin/approvals/approvalrequest/{target}/decide/"
            assert page.post(path, typed | {"decision": decision}).status_code == 409
    assert shown(house, second) == waiting
    assert [a.state for a in house.approvals(work.run_id)].count("Pending") == 1


def shown(house: House, approval_id: UUID | None) -> dict[str, Any]:
    """What a page of the request carries: its version and its hash."""
    body = Api.as_(house.world.reviewer).get(f"/factory/approvals/{approval_id}").json()
    return {name: body[name] for name in ("version", "proposalHash")}


@contextmanager
def deciding_at_once(house: House) -> Iterator[Callable[[], None]]:
    """Whoever hears of a request decides on it: in the relay, while the call that asked still returns."""
    faults: list[BaseException] = []

    def decide(ctx: Context, event: Received) -> None:
        house.decide(UUID(str(event.payload["approvalId"])))

    before, stop = _handlers.get(ApprovalRequested.topic, []), threading.Event()
    _handlers[ApprovalRequested.topic] = [*before, Handler("test.decide", ApprovalRequested.topic, decide)]

    def relay() -> None:
        from django.db import connections

        try:
            while not stop.is_set():
                if not deliver_due(Handlers(), house.tenant):
                    time.sleep(0.01)
        except BaseException as fault:
            faults.append(fault)
        connections.close_all()

    threads = [threading.Thread(target=relay) for _ in range(2)]
    for thread in threads:
        thread.start()

    def healthy() -> None:
        assert faults == []

    try:
        yield healthy
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
        _handlers[ApprovalRequested.topic] = before
        healthy()


def test_a_decision_in_the_handling_of_the_request_is_never_lost(house: House) -> None:
    """200 times at FACTORY_FAULT_ROUNDS=10: each attempt is leased again with its decision."""
    worker = house.hand(slots=3)
    with deciding_at_once(house) as healthy:
        for turn in range(rounds(20)):
            run_id, proposal = house.run("gated"), said(f"turn {turn}")
            work = worker.take()
            asked = worker.ask(work, proposal, park=True)
            assert asked.parked or asked.decision is not None
            again = polled(worker, healthy) if asked.parked else work
            assert again.attempt_id == work.attempt_id
            if asked.parked:
                assert again.decision is not None
                assert again.decision.decision == "approve"
            worker.authorize(again, asked.approval_id, proposal)
            worker.report(again, output=1, receipts=[effect(asked.approval_id, proposal)])
            assert house.state(run_id) == "Completed"


def polled(worker: Hand, healthy: Callable[[], None]) -> Any:
    for _ in range(600):
        found = worker.poll()
        if found:
            worker.acquire(found[0])
            return found[0]
        healthy()
    pytest.fail("The attempt was never leased again.")


KINDS = ("parked", "held", "offered")


@pytest.mark.requirement("RUN-15", "RUN-28")
@pytest.mark.parametrize("kind", KINDS)
def test_a_cancellation_meets_a_decision(house: House, kind: str, chance: random.Random) -> None:
    """Two of the run's steps ask; one of their attempts is parked, held or only offered meanwhile."""
    worker = house.hand(slots=2)
    for _ in range(rounds(4)):
        run_id = house.run("gates")
        one, two = worker.poll()
        worker.acquire(one)
        asked = worker.ask(one, park=kind == "parked").approval_id
        if kind != "offered":
            worker.acquire(two)
        acts: list[Callable[[], Any]] = [
            partial(cancel_run, house.world.operator, run_id=run_id, reason="now"),
            partial(cancel_run, house.world.requester, run_id=run_id, reason="me too"),
            partial(house.decide, asked, chance.choice(["approve", "request_changes"])),
        ]
        chance.shuffle(acts)
        refused = [answer for answer in race(*acts) if isinstance(answer, Exception)]
        assert all(isinstance(answer, DomainError) for answer in refused), refused
        for work in (one, two):
            if house.attempt(work.attempt_id).state == "Open":
                worker.report(work, "Cancelled", "cancellation")
        assert house.state(run_id) == "Cancelled"
        assert {a.state for a in house.approvals(run_id)} <= {"Cancelled", "Approved", "Stale"}
        assert {a.state for a in house.attempts(run_id)} == {"Cancelled"}
        assert settlements(house, run_id) == [Movement.SETTLED]
        assert journal(house.system, run_id)[-1][1] == "Cancelled"
        free = house.run("gates")
        assert {w.run_id for w in worker.poll()} == {free}, "both slots are free"
        cancel_run(house.world.operator, run_id=free, reason="enough")


def settlements(house: House, run_id: UUID) -> list[str]:
    """How often, and how, the run's money was given back."""
    with reading(house.system):
        reservation = Reservation.objects.get(run_id=run_id)
        moves = LedgerEntry.objects.filter(reservation_id=reservation.id).exclude(movement=Movement.RESERVED)
        return [str(m) for m in moves.order_by().values_list("movement", flat=True).distinct()]


@pytest.mark.requirement("RUN-12", "STP-05")
def test_five_requests_in_any_order_two_at_once_let_the_run_go_after_the_fifth(
    house: House, chance: random.Random
) -> None:
    worker = house.hand(slots=10)
    for _ in range(rounds(3)):
        run_id = house.run("five")
        asked = []
        for work in worker.poll():
            worker.acquire(work)
            asked.append(worker.ask(work, park=chance.random() < 0.7).approval_id)
        chance.shuffle(asked)
        reviewers = (house.world.reviewer, house.world.workspace_admin)

        def decide(mine: list[Any], by: Context) -> None:
            for approval_id in mine:
                house.decide(approval_id, by=by)

        cut = chance.randrange(1, 5)
        shares = zip((asked[:cut], asked[cut:]), reviewers, strict=True)
        answers = race(*(partial(decide, mine, by) for mine, by in shares))
        assert answers == [None, None]
        assert house.state(run_id) == "Running"
        with reading(house.system):
            rows = JournalEntry.objects.filter(stream_id=run_id).order_by("sequence")
            story = [(row.entity, row.from_state, row.to_state) for row in rows]
        left = [at for at, told in enumerate(story) if told == ("run", "WaitingForApproval", "Running")]
        decided = [at for at, told in enumerate(story) if told == ("approval", "Pending", "Approved")]
        assert (len(left), len(decided)) == (1, 5)
        assert left[0] > max(decided), "it waited for the fifth"
        cancel_run(house.world.operator, run_id=run_id, reason="enough")
        for attempt in house.attempts(run_id):
            if attempt.state == "Open":
                house.let_lapse(attempt.lease_id)
        worker.poll()


@pytest.mark.requirement("RUN-28")
def test_a_transient_failure_that_meets_a_cancellation_makes_no_new_attempt(
    house: House, chance: random.Random
) -> None:
    worker = house.hand(slots=4)
    for _ in range(rounds(6)):
        run_id = house.run()
        work = worker.take()
        acts = [
            partial(worker.fail, work),
            partial(cancel_run, house.world.operator, run_id=run_id, reason="now"),
        ]
        chance.shuffle(acts)
        answers = race(*acts)
        assert not [answer for answer in answers if isinstance(answer, Exception)], answers
        house.make_due(run_id)
        assert worker.poll() == []
        [attempt] = house.attempts(run_id)
        assert (house.state(run_id), attempt.state, attempt.failure_class) == (
            "Cancelled",
            "Failed",
            "transient",
        )
