"""Every two acts on one run, one of them stopped half-way while the other comes: the end is a serial one.

The first stands still before its first lock, where all that it has read may turn out to be old, or before
its commit, where it holds all its locks. What comes of both, answers and rows, must be what one of the two
orders gives when they do not overlap.
"""

import random
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, connections

from approvals.models import ApprovalRequest, Authorization
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from projects.commands import resume_project, suspend_project
from runs.commands import cancel_run, enforce_deadline, expire_lease, start_run
from runs.models import Attempt, CancellationIntent, Lease, Receipt, Run, Step
from tests.faults.rounds import rounds
from tests.support.hands import Hand
from tests.support.proposals import DIFF
from tests.support.queries import deadlocks
from tests.support.receipts import receipt
from tests.support.running import House
from usage.models import Reservation

OTHER = {"kind": "diff", "files": []}
STOPS = ("before its first lock", "before its commit")
LOCKS = ("FOR NO KEY UPDATE", "FOR SHARE", "FOR UPDATE")
LONGEST_STOP = 3.0


@dataclass
class Scene:
    """A run with one gated step in a worker's hands."""

    house: House
    hand: Hand
    run_id: UUID
    work: Any
    asked: UUID | None

    def shown(self) -> dict[str, Any]:
        """The rows, without what is another in every scene: ids and times."""
        with reading(self.house.system):
            run, step = Run.objects.get(pk=self.run_id), Step.objects.get(run_id=self.run_id)
            of_run = {"run_id": self.run_id}
            approvals = ApprovalRequest.objects.filter(**of_run).order_by("requested_at")
            return {
                "run": (run.state, run.failure_class),
                "step": (step.state, step.attention, step.failure_class),
                "attempts": [(a.number, a.state) for a in Attempt.objects.filter(**of_run)],
                "leases": [x.state for x in Lease.objects.filter(**of_run).order_by("fencing_token")],
                "approvals": [(a.proposal_hash, a.state, a.decision) for a in approvals],
                "used": Authorization.objects.filter(**of_run).count(),
                "intents": CancellationIntent.objects.filter(**of_run).count(),
                "receipts": Receipt.objects.filter(**of_run).count(),
                "money": Reservation.objects.get(**of_run).state,
            }


Act = Callable[[Scene], Any]
ACTS: dict[str, Act] = {
    "report success": lambda s: s.hand.report(s.work, output=1),
    "report failure": lambda s: s.hand.fail(s.work),
    "report doubt": lambda s: s.hand.report(s.work, "Uncertain", "uncertain"),
    "renew": lambda s: s.hand.acquire(s.work),
    "ask": lambda s: s.hand.ask(s.work),
    "ask and park": lambda s: s.hand.ask(s.work, park=True),
    "ask for another": lambda s: s.hand.ask(s.work, OTHER),
    "approve": lambda s: s.house.decide(needed(s)),
    "reject": lambda s: s.house.decide(needed(s), "reject"),
    "send back": lambda s: s.house.decide(needed(s), "request_changes"),
    "authorize": lambda s: s.hand.authorize(s.work, needed(s), DIFF),
    "send receipts": lambda s: s.hand.receipts(s.work, receipt()),
    "expire": lambda s: expire_lease(
        s.house.system, lease_id=s.work.lease_id, fencing_token=s.work.fencing_token
    ),
    "cancel": lambda s: cancel_run(s.house.world.operator, run_id=s.run_id, reason="enough"),
    "deadline": lambda s: enforce_deadline(s.house.system, run_id=s.run_id),
    "start": lambda s: start_run(s.house.system, run_id=s.run_id),
    "suspend": lambda s: suspend_project(
        s.house.world.workspace_admin, project_id=s.house.world.project, reason="pause"
    ),
}
SCENES = [
    (question, lapsed) for question in ("none", "asked", "approved", "used") for lapsed in (False, True)
]


def needed(scene: Scene) -> UUID:
    if scene.asked is None:
        raise DomainError("Nothing was asked.")
    return scene.asked


def scene_of(house: House, hand: Hand, question: str, lapsed: bool) -> Scene:
    resume(house)
    run_id = house.run("gated")
    [work] = [work for work in hand.poll() if work.run_id == run_id]
    hand.acquire(work)
    asked = hand.ask(work).approval_id if question != "none" else None
    if asked is not None and question != "asked":
        house.decide(asked)
    if asked is not None and question == "used":
        hand.authorize(work, asked)
    if lapsed:
        house.let_lapse(work.lease_id, seconds=31)
        house.pass_deadline(run_id)
    return Scene(house, hand, run_id, work, asked)


def resume(house: House) -> None:
    with suppress(DomainError):
        resume_project(house.world.workspace_admin, project_id=house.world.project, reason="go on")


def answer(act: Act, scene: Scene) -> str:
    """How it was answered: done, or the code of the refusal."""
    try:
        act(scene)
    except DomainError as refusal:
        return refusal.code
    return "done"


def in_turn(scene: Scene, first: str, second: str) -> tuple[dict[str, str], dict[str, Any]]:
    answers = {"first": answer(ACTS[first], scene), "second": answer(ACTS[second], scene)}
    return answers, scene.shown()


class Stopped:
    """A thread's statements, one of which waits until it may go on."""

    def __init__(self, stop: str) -> None:
        self.stop, self.there, self.go_on = stop, threading.Event(), threading.Event()

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        locks = any(word in sql for word in LOCKS)
        if self.stop == STOPS[0] and locks:
            self._wait()
        done = execute(sql, params, many, context)
        if self.stop == STOPS[1] and "INSERT INTO factory_journalentry" in sql:
            self._wait()
        return done

    def _wait(self) -> None:
        if not self.there.is_set():
            self.there.set()
            self.go_on.wait(LONGEST_STOP)


def overlapping(scene: Scene, first: str, second: str, stop: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The first stops; the second comes, and ends or waits for a lock; the first goes on."""
    answers: dict[str, str] = {}
    stopped, backend = Stopped(stop), threading.Event()
    pids: list[int] = []

    def one() -> None:
        with connection.execute_wrapper(stopped):
            answers["first"] = answer(ACTS[first], scene)
        stopped.there.set()  # it met no such statement
        connections.close_all()

    def other() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            pids.append(cursor.fetchone()[0])
        backend.set()
        answers["second"] = answer(ACTS[second], scene)
        connections.close_all()

    threads = [threading.Thread(target=one), threading.Thread(target=other)]
    threads[0].start()
    assert stopped.there.wait(30)
    threads[1].start()
    assert backend.wait(30)
    until_done_or_waiting(threads[1], pids[0])
    stopped.go_on.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return answers, scene.shown()


def until_done_or_waiting(thread: threading.Thread, pid: int) -> None:
    ends = time.monotonic() + LONGEST_STOP - 1
    while thread.is_alive() and time.monotonic() < ends:
        with connection.cursor() as cursor:
            cursor.execute("SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s", [pid])
            row = cursor.fetchone()
        if row and row[0] == "Lock":
            return
        time.sleep(0.01)


@pytest.mark.requirement("RUN-28")
def test_two_acts_on_one_run_end_as_if_one_came_after_the_other(house: House, chance: random.Random) -> None:
    """All pairs in all scenes at FACTORY_FAULT_ROUNDS=600; by default a few of them, others each time."""
    before, every = deadlocks(), list(product(ACTS, ACTS, SCENES, STOPS))
    for number, (first, second, scene, stop) in enumerate(chance.sample(every, min(rounds(8), len(every)))):
        hand = house.hand(f"w{number}", slots=200)
        one = in_turn(scene_of(house, hand, *scene), first, second)
        answers, rows = in_turn(scene_of(house, hand, *scene), second, first)
        turned = {"first": answers["second"], "second": answers["first"]}, rows
        found = overlapping(scene_of(house, hand, *scene), first, second, stop)
        assert found in (one, turned), f"{first}, stopped {stop}, and {second}, in {scene}"
    assert deadlocks() == before
    resume(house)


def test_an_act_on_what_was_read_before_the_lock_is_found_out(
    tenant_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weaker rule: a run that is read, and not locked. Its version catches it: "busy"."""
    house = House(tenant_id)
    hand = house.hand(slots=100)
    acts, plain = ("cancel", "report success"), ("none", False)
    one = in_turn(scene_of(house, hand, *plain), *acts)
    answers, rows = in_turn(scene_of(house, hand, *plain), *reversed(acts))
    turned = {"first": answers["second"], "second": answers["first"]}, rows
    assert overlapping(scene_of(house, hand, *plain), *acts, STOPS[0]) in (one, turned)

    def unlocked(ctx: Any, run_id: UUID) -> Run:
        run = Run.objects.get(pk=run_id)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM projects_project LIMIT 1 FOR SHARE")  # here the first one stops
        return run

    monkeypatch.setattr(sys.modules["runs.commands.cancel_run"], "lock_run", unlocked)
    assert overlapping(scene_of(house, hand, *plain), *acts, STOPS[0]) not in (one, turned)
