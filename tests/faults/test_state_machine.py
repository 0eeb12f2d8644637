"""Any acts in any order, on the house and on the reference beside it: after each, the two agree.

The auditor looks after every step as well. `FACTORY_FAULT_ROUNDS` makes the long profile longer.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, Phase, settings, strategies
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from approvals.models import ApprovalRequest
from factory.evidence.auditor import audit_all
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from runs.commands import cancel_run, expire_lease, resolve_step
from runs.models import Attempt, Lease, Run, Step
from tests.faults.reference import RunModel
from tests.faults.rounds import MORE, rounds
from tests.support.evidence import violations
from tests.support.proposals import said
from tests.support.running import House

EACH_STEP = ("A1", "A3", "A4", "B1", "B1b", "B2", "B3", "B4", "B6", "B7", "B8", "C1", "C3", "D3", "E2c")
OUTCOMES = [
    ("Succeeded", None),
    ("Failed", "transient"),
    ("Failed", "permanent"),
    ("Uncertain", "uncertain"),
    ("Cancelled", "cancellation"),
]
RESOLUTIONS = ["effect-happened", "effect-did-not-happen", "give-up"]
SHRINKS = bool(os.environ.get("FACTORY_FAULT_SHRINK"))
"""Whether a failure is made smaller, which takes minutes."""
PROPOSALS = [said("this"), said("that")]


@dataclass
class Pair:
    """A run of the house and what it should be."""

    id: UUID
    model: RunModel
    work: Any = None
    older: Any = None
    told: Any = None


class Lives(RuleBasedStateMachine):
    """A few runs at once; each rule is one act of somebody, tried on one of them."""

    house: House
    """Set by the test: a house is made once, and each example has runs of its own in it."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[Pair] = []
        self.hand = self.house.hand(f"w-{uuid4().hex[:8]}", slots=200)

    def some(self, number: int, *leases: str) -> Pair | None:
        """One of the runs, of those whose lease is so."""
        fitting = [pair for pair in self.pairs if not leases or pair.model.lease in leases]
        return fitting[number % len(fitting)] if fitting else None

    @precondition(lambda self: len(self.pairs) < 4)
    @rule(gated=strategies.sampled_from([True, True, False]))
    def submit(self, gated: bool) -> None:
        run_id = self.house.run("gated" if gated else "single")
        self.pairs.append(Pair(run_id, RunModel(gated)))

    @precondition(lambda self: self.pairs)
    @rule()
    def poll(self) -> None:
        for pair in self.pairs:
            self.house.make_due(pair.id)
        found = {work.run_id: work for work in self.hand.poll()}
        for pair in self.pairs:
            offered = pair.model.offer()
            work = found.pop(pair.id, None)
            assert (work is not None) == offered, (pair.model, work)
            if work is not None and (pair.work is None or work.lease_id != pair.work.lease_id):
                assert pair.work is None or work.fencing_token > pair.work.fencing_token
                pair.older, pair.work, pair.told = pair.work, work, None
        assert not found

    @rule(number=strategies.integers(0, 9))
    def acquire_or_renew(self, number: int) -> None:
        pair = self.some(number, "Offered", "Held")
        if pair is not None:
            grant = self.hand.acquire(pair.work)
            pair.model.acquire()
            assert grant.cancel_requested == (not pair.model.working)

    @rule(number=strategies.integers(0, 9))
    def lapse(self, number: int) -> None:
        pair = self.some(number, "Offered", "Held")
        if pair is not None:
            self.house.let_lapse(pair.work.lease_id)
            fence = {"lease_id": pair.work.lease_id, "fencing_token": pair.work.fencing_token}
            assert expire_lease(self.house.system, **fence)
            assert not expire_lease(self.house.system, **fence), "once is enough"
            pair.model.lapse()

    @rule(number=strategies.integers(0, 9), proposal=strategies.integers(0, 1), park=strategies.booleans())
    def ask(self, number: int, proposal: int, park: bool) -> None:
        pair = self.some(number, "Held")
        if pair is None or not pair.model.gated:
            return
        working = pair.model.working
        refused = self.tried(lambda: self.hand.ask(pair.work, PROPOSALS[proposal], park=park))
        assert (refused == "") == working, refused
        pair.model.ask(proposal, park)

    @rule(number=strategies.integers(0, 9))
    def authorize(self, number: int) -> None:
        pair = self.some(number, "Held")
        if pair is None or pair.model.last.request is None:
            return
        asked = pair.model.requests[pair.model.last.request]
        approval_id = self.requests(pair)[pair.model.last.request].id
        refused = self.tried(lambda: self.hand.authorize(pair.work, approval_id, PROPOSALS[asked.proposal]))
        assert (refused == "") == pair.model.may_authorize(), (refused, pair.model)
        pair.model.authorize()

    @rule(number=strategies.integers(0, 9), how=strategies.sampled_from(OUTCOMES))
    def report(self, number: int, how: tuple[str, str | None]) -> None:
        pair = self.some(number, "Held")
        if pair is not None:
            pair.told = how
            self.hand.report(pair.work, *how, output={"n": 1})
            pair.model.report(*how)

    @rule(number=strategies.integers(0, 9))
    def report_again(self, number: int) -> None:
        """The identical repeat is answered; nothing changes."""
        pair = self.some(number)
        if pair is not None and pair.told is not None and not pair.model.lease:
            self.hand.report(pair.work, *pair.told, output={"n": 1})

    @rule(number=strategies.integers(0, 9), how=strategies.sampled_from(OUTCOMES))
    def report_late(self, number: int, how: tuple[str, str | None]) -> None:
        """Under a lease that is over: refused; nothing changes."""
        pair = self.some(number)
        if pair is not None and pair.older is not None:
            refused = self.tried(lambda: self.hand.report(pair.older, *how, output={"late": True}))
            assert refused in ("stale-fencing-token", "attempt-settled"), (refused, pair.model)

    @rule(
        number=strategies.integers(0, 9),
        decision=strategies.sampled_from(["approve", "approve", "reject", "request_changes"]),
    )
    def decide(self, number: int, decision: str) -> None:
        waiting = [pair for pair in self.pairs if pair.model.pending]
        if waiting and sum(r.sent_back for r in waiting[number % len(waiting)].model.requests) < 9:
            pair = waiting[number % len(waiting)]
            [asked] = [row for row in self.requests(pair) if row.state == "Pending"]
            self.house.decide(asked.id, decision)
            pair.model.decide(decision)
            again = self.tried(lambda: self.house.decide(asked.id, "approve"))
            assert again == "already-decided"

    @rule(number=strategies.integers(0, 9))
    def cancel(self, number: int) -> None:
        pair = self.some(number)
        if pair is not None:
            refused = self.tried(
                lambda: cancel_run(self.house.world.operator, run_id=pair.id, reason="enough")
            )
            assert (refused != "") == (pair.model.state in ("Completed", "Failed")), refused
            pair.model.cancel()

    @rule(number=strategies.integers(0, 9), resolution=strategies.sampled_from(RESOLUTIONS))
    def resolve(self, number: int, resolution: str) -> None:
        doubtful = [pair for pair in self.pairs if pair.model.attention]
        if doubtful:
            pair = doubtful[number % len(doubtful)]
            [step] = self.house.steps(pair.id).values()
            facts = {"step_id": step.id, "version": step.version, "evidence": "I looked."}
            resolve_step(self.house.world.operator, run_id=pair.id, resolution=resolution, **facts)
            pair.model.resolve(resolution)

    @invariant()
    def agree(self) -> None:
        for pair in self.pairs:
            assert self.shown(pair) == pair.model.shown(), pair.model
        if self.pairs:
            assert [v for v in audit_all(EACH_STEP) if v.tenant_id == self.house.tenant] == []

    def shown(self, pair: Pair) -> Any:
        with reading(self.house.system):
            run = Run.objects.get(pk=pair.id)
            step = Step.objects.get(run_id=pair.id)
            tries = Attempt.objects.filter(run_id=pair.id).order_by("number")
            lease = Lease.objects.filter(run_id=pair.id, state__in=("Offered", "Held")).first()
            return (
                str(run.state),
                str(step.state),
                str(step.attention),
                [str(one.state) for one in tries],
                str(lease.state) if lease else "",
                [row.state for row in self.requests(pair)],
            )

    def requests(self, pair: Pair) -> list[ApprovalRequest]:
        with reading(self.house.system):
            rows = ApprovalRequest.objects.filter(run_id=pair.id)
            return list(rows.order_by("requested_at", "id"))

    @staticmethod
    def tried(act: Any) -> str:
        """The code of the refusal; empty if there was none."""
        try:
            act()
        except DomainError as refusal:
            return refusal.code
        return ""

    def teardown(self) -> None:
        for pair in self.pairs:
            if not pair.model.over:
                cancel_run(self.house.world.operator, run_id=pair.id, reason="the end")


@pytest.fixture
def lives(tenant_id: str) -> Iterator[type[Lives]]:
    made = type("Lives", (Lives,), {"house": House(tenant_id, budget="1000000")})
    yield made
    assert violations(tenant_id) == []


def profile(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        print_blob=True,
        database=None,
        phases=(
            Phase.explicit,
            Phase.generate,
            *([Phase.shrink] if os.environ.get("FACTORY_FAULT_SHRINK") else []),
        ),
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.requirement("RUN-11", "STP-03")
def test_the_house_does_what_the_reference_says_at_length(lives: type[Lives]) -> None:
    """200 lives of 50 acts at FACTORY_FAULT_ROUNDS=34."""
    run_state_machine_as_test(lives, settings=profile(rounds(6), min(50, int(20 * max(1, MORE)))))


def handed_on(lives: Lives) -> None:
    """An attempt that was parked, and is in another's hands after the decision."""
    lives.submit(gated=True)
    lives.poll()
    lives.acquire_or_renew(0)
    lives.ask(0, 0, park=True)
    lives.decide(0, "approve")
    lives.poll()
    lives.acquire_or_renew(0)
    lives.agree()


def test_a_token_that_is_not_compared_is_found_out(tenant_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weaker rule: whoever once held the step may end it."""
    made = type("Weak", (Lives,), {"house": House(tenant_id)})()
    handed_on(made)
    made.report_late(0, ("Succeeded", None))
    made.agree()

    def anyones(ctx: Any, tried: Any, lease_id: UUID, token: int) -> Any:
        lease = Lease.objects.filter(attempt_id=tried.attempt.id).order_by("-fencing_token").first()
        lease.run = tried.run
        return lease

    monkeypatch.setattr(sys.modules["runs.commands.report_outcome"], "current_lease", anyones)
    with pytest.raises(AssertionError):
        made.report_late(0, ("Succeeded", None))
