"""An effect that nobody authorised is found whoever ends the attempt, and is asked about once."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from factory.kernel.reconciling import reconcilers
from projects.commands import kill_project
from runs.commands import cancel_run, enforce_deadline, expire_lease, recover_lease
from runs.dispatch import drain_worker
from runs.states import ATTEMPT_TERMINAL
from runs.subjects.action import MOST_ROUNDS
from tests.support.acts import revoke
from tests.support.evidence import audits, violations
from tests.support.hands import Hand
from tests.support.proposals import said
from tests.support.receipts import effect
from tests.support.running import House

pytestmark = pytest.mark.slow

Ender = Callable[[House, Hand, Any, UUID], None]


def lapse(house: House, work: Any) -> None:
    house.let_lapse(work.lease_id)
    assert expire_lease(house.system, lease_id=work.lease_id, fencing_token=work.fencing_token)


def silence(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    lapse(house, work)


def outcome(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    hand.fail(work)


def silence_while_asking(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    hand.ask(work)
    lapse(house, work)


def silence_after_the_yes(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    house.decide(hand.ask(work).approval_id)
    lapse(house, work)


def cancellation_and_silence(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    cancel_run(house.world.operator, run_id=run_id, reason="enough")
    lapse(house, work)


def cancellation_of_what_is_parked(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    hand.ask(work, park=True)
    cancel_run(house.world.operator, run_id=run_id, reason="enough")


def cancellation_of_what_is_offered_again(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    house.decide(hand.ask(work, park=True).approval_id)
    assert len(hand.poll()) == 1
    cancel_run(house.world.operator, run_id=run_id, reason="enough")


def kill_switch(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    hand.ask(work, park=True)
    kill_project(house.world.workspace_admin, project_id=house.world.project, reason="it goes wild")
    reconcilers()["KillSwitchReconciler"].run_once(house.tenant)


def withdrawal(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    hand.ask(work, park=True)
    revoke(house, "block")
    reconcilers()["ReleaseDecreeReconciler"].run_once(house.tenant)


def deadline_and_silence(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    house.pass_deadline(run_id)
    assert enforce_deadline(house.system, run_id=run_id)
    lapse(house, work)


def rejection(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    house.decide(hand.ask(work, park=True).approval_id, "reject")


def rejection_and_silence(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    house.decide(hand.ask(work).approval_id, "reject")
    lapse(house, work)


def corrections_exhausted(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    for n in range(MOST_ROUNDS):
        house.decide(hand.ask(work, said(f"way {n}"), park=True).approval_id, "request_changes")
        if n < MOST_ROUNDS - 1:
            work = hand.take()


def corrections_exhausted_and_silence(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    """The step fails while its holder is still at it, who then falls silent."""
    for n in range(MOST_ROUNDS):
        house.decide(hand.ask(work, said(f"way {n}")).approval_id, "request_changes")
    lapse(house, work)


def drained_and_silent(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    drain_worker(hand.ctx, name=hand.name, instance_id=hand.instance)
    lapse(house, work)


def restore(house: House, hand: Hand, work: Any, run_id: UUID) -> None:
    house._owner(
        "UPDATE runs_lease SET fencing_token = fencing_token - (1::bigint << 40) WHERE id = %s",
        [work.lease_id],
        unpinned=True,
    )
    assert recover_lease(house.system, lease_id=work.lease_id)


ENDERS: dict[str, Ender] = {
    ender.__name__: ender
    for ender in (
        outcome,
        silence,
        silence_while_asking,
        silence_after_the_yes,
        cancellation_and_silence,
        cancellation_of_what_is_parked,
        cancellation_of_what_is_offered_again,
        kill_switch,
        withdrawal,
        deadline_and_silence,
        rejection,
        rejection_and_silence,
        corrections_exhausted,
        corrections_exhausted_and_silence,
        drained_and_silent,
        restore,
    )
}


@pytest.mark.requirement("APR-09")
@pytest.mark.parametrize("ender", ENDERS)
def test_whoever_ends_the_attempt_finds_it(house: House, ender: str) -> None:
    run_id, hand = house.run("gated"), house.hand()
    work = hand.take()
    hand.receipts(work, effect(None))
    ENDERS[ender](house, hand, work, run_id)
    assert house.attempt(work.attempt_id).state in ATTEMPT_TERMINAL
    [step] = house.steps(run_id).values()
    assert step.attention == "violation", "An Operator is asked."
    assert step.state in ("Failed", "Cancelled"), "It is not tried again."
    if step.state == "Failed" and not ender.startswith("corrections_exhausted_and"):
        assert step.failure_class == "policy-denied"
    noted = audits(house.system, "PolicyViolation")
    assert [note.subject for note in noted] == [f"attempt:{work.attempt_id}"]
    house.make_due(run_id)
    assert hand.poll() == []
    assert violations(house.tenant) == []


def test_the_effect_of_a_read_only_step_is_found_as_well(house: House) -> None:
    run_id, hand = house.run("single"), house.hand()
    work = hand.take()
    hand.receipts(work, effect(None))
    lapse(house, work)
    [step] = house.steps(run_id).values()
    assert (step.state, step.failure_class, step.attention) == ("Failed", "policy-denied", "violation")


@pytest.mark.parametrize("effects", [1, 2])
def test_one_authorization_covers_one_effect(house: House, effects: int) -> None:
    run_id, hand = house.run("gated"), house.hand()
    work = hand.take()
    asked = hand.ask(work)
    house.decide(asked.approval_id)
    hand.authorize(work, asked.approval_id)
    hand.report(work, receipts=[effect(asked.approval_id) for _ in range(effects)])
    [step] = house.steps(run_id).values()
    if effects == 1:
        assert (step.state, step.attention) == ("Succeeded", "")
    else:
        assert (step.state, step.failure_class, step.attention) == ("Failed", "policy-denied", "violation")
        assert "with one that was already used" in step.reason
    assert len(audits(house.system, "PolicyViolation")) == effects - 1
    assert violations(house.tenant) == []


def test_an_effect_that_was_authorized_is_uncertain_and_none_is_timed_out(house: House) -> None:
    acted, idle, hand = house.run("gated"), house.run("gated"), house.hand()
    works = {work.run_id: work for work in hand.poll()}
    for work in works.values():
        hand.acquire(work)
    asked = hand.ask(works[acted])
    house.decide(asked.approval_id)
    hand.authorize(works[acted], asked.approval_id)
    hand.receipts(works[acted], effect(asked.approval_id))
    hand.receipts(works[idle], effect(None, tookPlace=False))
    for work in works.values():
        lapse(house, work)
    assert house.steps(acted)["publish"].attention == "uncertain"
    assert house.attempt(works[idle].attempt_id).state == "TimedOut"
    assert house.step_states(idle) == {"publish": "Pending"}
