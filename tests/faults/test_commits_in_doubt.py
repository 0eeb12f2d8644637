"""Commits that happen and are told as failures: callers ask again, and nothing happens twice or is lost."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import InterfaceError, OperationalError, connections

from approvals.errors import AlreadyDecided
from approvals.models import Authorization
from factory.kernel import commanding
from factory.kernel.tenancy import reading
from runs.commands import start_run
from runs.models import Attempt, Run
from runs.rest.submissions import submit
from tests.faults.doubtful.base import Doubt, doubt
from tests.faults.rounds import rounds
from tests.support.evidence import violations
from tests.support.hands import Hand
from tests.support.receipts import effect
from tests.support.running import House
from tests.support.threads import at_once
from usage.models import Reservation

THREADS = 4
SHARE = 0.08


@pytest.fixture
def doubtful(monkeypatch: pytest.MonkeyPatch, chance: random.Random) -> Iterator[Doubt]:
    """Threads that start from now on have connections whose commits are doubtful."""
    monkeypatch.setitem(connections.settings["default"], "ENGINE", "tests.faults.doubtful")
    doubt.begin(SHARE, chance.getrandbits(32))
    yield doubt
    doubt.begin(0, 0)


def insist(act: Callable[[], Any]) -> Any:
    """What a client does about a connection that broke: the same call again."""
    for _ in range(50):
        with suppress(OperationalError, InterfaceError):
            return act()
    raise AssertionError("It never was answered.")


class Client:
    """Requester, worker and reviewer of a few runs; it forgets nothing and repeats everything."""

    def __init__(self, house: House, hand: Hand, runs: int) -> None:
        self.house, self.hand, self.runs = house, hand, runs
        self.keys = [str(uuid4()) for _ in range(runs)]

    def live(self) -> None:
        for number, key in enumerate(self.keys):
            payload = self.house.payload("gated" if number % 2 else "single")
            body, _ = insist(partial(submit, self.house.world.requester, payload=payload, key=key))
            insist(partial(start_run, self.house.system, run_id=UUID(body["runId"])))
            for work in insist(self.hand.poll):
                self.carry(work)

    def finish(self) -> None:
        while works := insist(self.hand.poll):
            for work in works:
                self.carry(work)

    def carry(self, work: Any) -> None:
        insist(partial(self.hand.acquire, work))
        receipts = []
        if work.agent_id and work.skill_id == "write":
            asked = insist(partial(self.hand.ask, work)).approval_id
            with suppress(AlreadyDecided):  # it was this very decision whose answer got lost
                insist(partial(self.house.decide, asked))
            insist(partial(self.hand.authorize, work, asked))
            receipts = [effect(asked)]
        insist(partial(self.hand.report, work, output={"done": 1}, receipts=receipts))


@pytest.mark.requirement("API-02", "ATT-03", "FLR-10")
def test_commits_that_are_told_as_failures_happen_once(house: House, doubtful: Doubt) -> None:
    """2,000 runs at FACTORY_FAULT_ROUNDS=60."""
    each = rounds(8)
    hands = [house.hand(f"w{n}", slots=50) for n in range(THREADS)]
    clients = [Client(house, hand, each) for hand in hands]
    patience = 60 + each * 10
    assert [a for a in at_once([client.live for client in clients], patience=patience) if a] == []
    assert [a for a in at_once([client.finish for client in clients], patience=patience) if a] == []
    assert doubtful.told > 2, "the fault never came"
    keys = [key for client in clients for key in client.keys]
    with reading(house.system):
        runs = {run.idempotency_key: run for run in Run.objects.all()}
        tries = Counter(Attempt.objects.values_list("step_id", flat=True))
        used = Counter(Authorization.objects.values_list("run_id", flat=True))
        money = Counter(Reservation.objects.values_list("state", flat=True))
    assert sorted(runs) == sorted(keys), "none lost, none twice"
    assert {run.state for run in runs.values()} == {"Completed"}
    assert set(tries.values()) == {1}, "nothing was dispatched twice"
    assert (len(used), set(used.values())) == (THREADS * (each // 2), {1})
    assert money == {"Settled": len(keys)}


def test_without_the_record_under_the_key_the_run_itself_is_the_answer(
    tenant_id: str, doubtful: Doubt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that leaves no record: the table refuses a second run, and the first one answers."""
    house = House(tenant_id)
    key, body = str(uuid4()), house.payload()

    def ask_twice() -> Any:
        doubtful.begin(1.0, 0)
        with pytest.raises(OperationalError):
            submit(house.world.requester, payload=body, key=key)
        doubtful.begin(0.0, 0)
        return submit(house.world.requester, payload=body, key=key)

    monkeypatch.setattr(commanding, "_claim", lambda work, once: None)
    [told] = at_once([ask_twice])
    body, replayed = told
    assert replayed
    with reading(house.system):
        assert [run.id for run in Run.objects.all()] == [UUID(body["runId"])]
    monkeypatch.undo()
    assert violations(tenant_id) == []
