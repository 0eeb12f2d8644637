"""What counts towards `maxAttempts`: whatever a worker held and did not hand back while a person decides."""

from typing import Any
from uuid import UUID

import pytest

from factory.kernel.tenancy import reading
from runs.commands import expire_lease
from runs.operations.settling import attempts_used
from tests.support.evidence import violations
from tests.support.hands import Hand
from tests.support.proposals import said
from tests.support.running import House

pytestmark = pytest.mark.slow


def lapse(house: House, work: Any) -> None:
    house.let_lapse(work.lease_id)
    assert expire_lease(house.system, lease_id=work.lease_id, fencing_token=work.fencing_token)


def attempts_used_of(house: House, run_id: UUID) -> int:
    with reading(house.system):
        return attempts_used(house.steps(run_id)["publish"])


def decided(house: House, hand: Hand) -> tuple[UUID, Any]:
    """A run whose proposal was approved while it was parked, leased again."""
    run_id = house.run("gated")
    house.decide(hand.ask(hand.take(), park=True).approval_id)
    return run_id, hand.take()


def test_what_kills_its_worker_after_the_yes_ends(house: House) -> None:
    hand = house.hand(slots=9)
    run_id, work = decided(house, hand)
    dead = 0
    while True:
        lapse(house, work)
        dead += 1
        if house.state(run_id) != "Running":
            break
        assert dead < 8
        [work] = hand.poll()
        hand.acquire(work)
    step, row = house.steps(run_id)["publish"], house.row(run_id)
    assert dead == step.max_attempts == 3
    assert (step.state, step.failure_class, row.state) == ("Failed", "transient", "Failed")
    assert step.reason == "The worker fell silent. (the last of 3 attempts)"
    assert [str(each.state) for each in house.attempts(run_id)] == ["TimedOut"]
    assert hand.poll() == []
    assert violations(house.tenant) == []


def test_a_holder_that_hands_its_lease_back_uses_up_nothing(house: House) -> None:
    """Sent back and parked again five times, then a holder falls silent: that is the first."""
    hand = house.hand(slots=9)
    run_id = house.run("gated")
    for n in range(5):
        asked = hand.ask(hand.take(), said(f"way {n}"), park=True)
        house.decide(asked.approval_id, "request_changes")
    house.decide(hand.ask(hand.take(), park=True).approval_id)
    lapse(house, hand.take())
    hand.report(hand.take(), output=1)
    assert house.state(run_id) == "Completed"
    assert len(house.attempts(run_id)) == 1


def test_a_holder_that_falls_silent_while_a_person_decides_is_followed_by_another(house: House) -> None:
    """Whoever waits for a person waits as long as that takes: such a silence uses up nothing."""
    hand = house.hand(slots=9)
    run_id = house.run("gated")
    asked = None
    for n in range(4):
        work = hand.take()
        asked = hand.ask(work, said(f"way {n}"))
        lapse(house, work)
        assert house.attempt(work.attempt_id).state == "Parked"
        house.decide(asked.approval_id)
    work = hand.take()
    for silences in range(3):
        assert attempts_used_of(house, run_id) == silences + 1, "the one at work counts"
        assert violations(house.tenant) == []
        lapse(house, work)
        if silences < 2:
            assert house.state(run_id) == "Running"
            work = hand.take()
    assert house.state(run_id) == "Failed", "after the yes each counts"


def test_tries_before_and_after_a_yes_are_added_up(house: House) -> None:
    hand = house.hand(slots=9)
    run_id = house.run("gated")
    hand.fail(hand.take())
    house.make_due(run_id)
    work = hand.take()
    house.decide(hand.ask(work, park=True).approval_id)
    lapse(house, hand.take())
    assert house.state(run_id) == "Running"
    hand.fail(hand.take())
    assert house.state(run_id) == "Failed"
    assert house.steps(run_id)["publish"].reason.endswith("(the last of 3 attempts)")
    assert violations(house.tenant) == []


def test_an_offer_that_nobody_takes_uses_up_nothing(house: House) -> None:
    hand = house.hand(slots=9)
    run_id = house.run("stubborn")
    for _ in range(3):
        [work] = hand.poll()
        lapse(house, work)
    hand.report(hand.take(), output=1)
    assert house.state(run_id) == "Completed"
