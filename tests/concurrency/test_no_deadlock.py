"""Eight people and workers do anything to the same few runs: nobody ever waits for each other in a ring."""

import os
import random
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from approvals.commands import expire_approval
from factory.kernel.errors import DomainError
from projects.commands import resume_project, suspend_project
from runs.commands import cancel_run, enforce_deadline, expire_lease, resolve_step
from runs.operations import timing
from tests.support.hands import Hand
from tests.support.proposals import DIFF
from tests.support.queries import deadlocks
from tests.support.receipts import costing, effect, receipt
from tests.support.running import House
from tests.support.threads import at_once

SECONDS = float(os.environ.get("FACTORY_TEST_STORM_SECONDS", "6"))
RUNS = 4
WORKFLOWS = ("gates", "mixed", "gated", "diamond", "single")


class Storm:
    """What all threads share: a few live runs, and every assignment that any worker ever had."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.runs = [house.run(name) for name in WORKFLOWS[:RUNS]]
        self.every = list(self.runs)
        self.hands = [house.hand(f"w{n}", slots=6) for n in range(3)]
        self.works: list[tuple[Hand, Any]] = []
        self.until = time.monotonic() + SECONDS
        self.done: dict[str, int] = {}

    def act(self, seed: int) -> None:
        chance = random.Random(seed)
        acts = self.acts(chance)
        while time.monotonic() < self.until:
            act = chance.choice(acts)
            try:
                act()
                self.done[act.__name__] = self.done.get(act.__name__, 0) + 1
            except (DomainError, IndexError):
                pass

    def acts(self, chance: random.Random) -> list[Callable[[], Any]]:
        """Each weighs as much as it is often here."""
        house = self.house

        def work() -> tuple[Hand, Any]:
            return chance.choice(self.works[-30:])

        def run() -> UUID:
            return chance.choice(self.runs)

        def replace() -> None:
            at = chance.randrange(RUNS)
            if house.state(self.runs[at]) in ("Completed", "Failed", "Cancelled"):
                self.runs[at] = house.run(chance.choice(WORKFLOWS))
                self.every.append(self.runs[at])

        def poll() -> None:
            hand = chance.choice(self.hands)
            for each in hand.poll():
                hand.acquire(each)
                self.works.append((hand, each))

        def renew() -> None:
            hand, each = work()
            hand.acquire(each)

        def ask() -> None:
            hand, each = work()
            hand.ask(each, chance.choice([DIFF, {"n": 1}]), park=chance.random() < 0.5)

        def authorize() -> None:
            hand, each = work()
            for asked in house.approvals(each.run_id):
                if asked.state == "Approved" and asked.step_id == each.step_id:
                    hand.authorize(each, asked.id)

        def report() -> None:
            hand, each = work()
            how = chance.choice([("Succeeded", None), ("Failed", "transient"), ("Uncertain", "uncertain")])
            hand.report(each, *how, receipts=[receipt()])

        def receipts() -> None:
            hand, each = work()
            hand.receipts(each, costing("0.01"), effect(None) if chance.random() < 0.1 else receipt())

        def decide() -> None:
            for asked in house.pending(run()):
                house.decide(asked.id, chance.choice(["approve", "approve", "request_changes", "reject"]))

        def lapse() -> None:
            _, each = work()
            expire_lease(house.system, lease_id=each.lease_id, fencing_token=each.fencing_token)

        def expire() -> None:
            for asked in house.pending(run()):
                expire_approval(house.system, approval_id=asked.id, version=asked.version)

        def cancel() -> None:
            cancel_run(house.world.operator, run_id=run(), reason="enough")

        def deadline() -> None:
            enforce_deadline(house.system, run_id=run())

        def settle() -> None:
            for run_id in self.runs:
                for step in house.steps(run_id).values():
                    if step.attention == "uncertain":
                        self._resolve(run_id, step, chance)

        def suspend() -> None:
            suspend_project(house.world.workspace_admin, project_id=house.world.project, reason="pause")
            resume_project(house.world.workspace_admin, project_id=house.world.project, reason="go on")

        usual = [replace, poll, renew, ask, authorize, report, receipts, decide, settle]
        return usual * 3 + [poll, poll, poll, lapse, expire, cancel, deadline, suspend]

    def _resolve(self, run_id: UUID, step: Any, chance: random.Random) -> None:
        answer = chance.choice(["effect-happened", "effect-did-not-happen", "give-up"])
        resolve_step(
            self.house.world.operator,
            run_id=run_id,
            step_id=step.id,
            resolution=answer,
            evidence="I looked.",
            version=step.version,
        )


@pytest.mark.slow
@pytest.mark.requirement("RUN-28")
def test_random_acts_on_the_same_runs_never_deadlock(
    house: House, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FACTORY_LEASES_DURATION_SECONDS, settings.FACTORY_LEASES_RENEWAL_GRACE_SECONDS = 1, 0
    monkeypatch.setattr(timing, "FIRST_BACK_OFF", timedelta(milliseconds=10))
    before = deadlocks()
    storm = Storm(house)
    faults = [f for f in at_once([partial(storm.act, seed) for seed in range(8)], patience=SECONDS + 60) if f]
    assert faults == []
    assert deadlocks() == before
    for run_id in storm.every:
        if house.state(run_id) in ("Accepted", "Running", "WaitingForApproval"):
            cancel_run(house.world.operator, run_id=run_id, reason="the end")
