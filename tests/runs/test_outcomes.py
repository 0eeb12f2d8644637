"""Outcomes: once, by the holder, and what each one means."""

import pytest

from factory.kernel.hashing import digest
from runs.errors import AttemptSettled, LeaseOver, MalformedOutcome, OutcomeHashMismatch, StaleFencingToken
from tests.support.evidence import audits, counts, journal
from tests.support.proposals import DIFF
from tests.support.receipts import effect, receipt
from tests.support.running import House

pytestmark = pytest.mark.slow


@pytest.mark.requirement("ATT-03", "WAPI-07")
def test_the_same_report_again_gets_what_is_recorded(house: House) -> None:
    house.run()
    worker = house.hand()
    work = worker.take()
    first = worker.report(work, output={"n": 1})
    before = counts(house.system)
    assert worker.report(work, output={"n": 1}) == first
    assert counts(house.system) == before
    with pytest.raises(AttemptSettled):
        worker.report(work, output={"n": 2})
    assert house.attempt(work.attempt_id).output == {"n": 1}


@pytest.mark.requirement("ATT-09")
@pytest.mark.parametrize(
    ("outcome", "failure_class", "refusal"),
    [
        ("TimedOut", "transient", MalformedOutcome),
        ("Done", None, MalformedOutcome),
        ("Succeeded", "transient", MalformedOutcome),
        ("Failed", None, MalformedOutcome),
        ("Failed", "uncertain", MalformedOutcome),
        ("Cancelled", "transient", MalformedOutcome),
    ],
)
def test_refuses_what_a_worker_cannot_say(house: House, outcome, failure_class, refusal) -> None:
    house.run()
    worker = house.hand()
    work = worker.take()
    with pytest.raises(refusal):
        worker.report(work, outcome, failure_class)
    with pytest.raises(OutcomeHashMismatch):
        worker.report(work, output=1, outcome_hash=digest("something else"))
    worker.report(work, output=1)


@pytest.mark.requirement("LSE-11")
def test_an_offer_alone_gives_no_right_to_report(house: House) -> None:
    house.run()
    worker = house.hand()
    [work] = worker.poll()
    with pytest.raises(StaleFencingToken):
        worker.report(work, output=1)
    with pytest.raises(LeaseOver):
        worker.receipts(work, receipt())


@pytest.mark.requirement("RUN-17", "RUN-19")
@pytest.mark.parametrize("failure_class", ["permanent", "validation", "policy-denied"])
def test_other_failures_are_never_retried(house: House, failure_class: str) -> None:
    run_id = house.run()
    worker = house.hand()
    worker.fail(worker.take(), failure_class)
    run = house.row(run_id)
    assert (run.state, run.failure_class, run.reason) == ("Failed", failure_class, "it broke")
    assert house.step_states(run_id) == {"look": "Failed"}


@pytest.mark.requirement("ATT-12", "FLR-05", "ATT-14", "ARC-22")
def test_a_transient_failure_is_tried_again_after_a_back_off(house: House) -> None:
    run_id = house.run()
    worker = house.hand()
    first = worker.take()
    worker.fail(first)
    step = house.steps(run_id)["look"]
    waits = (step.next_dispatch_at - house.attempt(first.attempt_id).settled_at).total_seconds()
    assert (step.state, 1.0 <= waits <= 2.0) == ("Pending", True)
    house.make_due(run_id)
    second = worker.take()
    assert second.lease_id != first.lease_id
    worker.report(second, output=1)
    assert house.state(run_id) == "Completed"


def test_a_cancelled_attempt_ends_its_run(house: House) -> None:
    run_id = house.run()
    worker = house.hand()
    worker.report(worker.take(), "Cancelled", "cancellation", reason="told to")
    assert (house.state(run_id), house.row(run_id).failure_class) == ("Failed", "cancellation")


def _authorized(house: House):
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    worker.authorize(work, asked.approval_id)
    return run_id, worker, work, asked


def test_a_transient_failure_after_an_authorization_is_doubted(house: House) -> None:
    run_id, worker, work, _ = _authorized(house)
    told = worker.fail(work)
    assert told.outcome == "Uncertain"
    assert house.steps(run_id)["publish"].attention == "uncertain"
    assert worker.fail(work) == told, "The identical repeat gets what is recorded."


def test_unless_a_receipt_shows_that_nothing_was_done(house: House) -> None:
    run_id, worker, work, asked = _authorized(house)
    told = worker.fail(work, receipts=[effect(asked.approval_id, tookPlace=False)])
    assert (told.outcome, house.step_states(run_id)) == ("Failed", {"publish": "Pending"})
    house.make_due(run_id)
    again = worker.take()
    other = worker.ask(again)
    assert (other.opened, other.approval_id != asked.approval_id) == (True, True), "The approval is spent."
    house.decide(other.approval_id)
    worker.authorize(again, other.approval_id)
    worker.report(again, output=1, receipts=[effect(other.approval_id)])
    assert house.state(run_id) == "Completed"


@pytest.mark.requirement("APR-09")
@pytest.mark.parametrize("kind", ["none", "unauthorized", "another proposal", "twice", "another run's"])
def test_an_effect_that_nobody_authorized_fails_the_step(house: House, kind: str) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    receipts = {
        "none": [effect(None)],
        "unauthorized": [effect(asked.approval_id)],
        "another proposal": [effect(asked.approval_id, proposal={"kind": "other"})],
        "twice": [effect(asked.approval_id), effect(asked.approval_id)],
        "another run's": [effect(house.release)],
    }[kind]
    if kind != "unauthorized":
        worker.authorize(work, asked.approval_id)
    worker.report(work, output=1, receipts=receipts)
    run, step = house.row(run_id), house.steps(run_id)["publish"]
    assert (run.state, run.failure_class) == ("Failed", "policy-denied")
    assert (step.state, step.failure_class, step.attention) == ("Failed", "policy-denied", "violation")
    assert [a.outcome for a in audits(house.system, "PolicyViolation")] == ["noted"]
    assert DIFF


def test_a_failed_run_lets_holders_report_once_and_moves_no_more(house: House) -> None:
    run_id = house.run("diamond")
    worker = house.hand()
    worker.report(worker.take(), output="A")
    b, c = worker.poll()
    worker.acquire(b)
    worker.acquire(c)
    worker.fail(b, "permanent")
    assert house.state(run_id) == "Failed"
    grant = worker.acquire(c)
    assert grant.cancel_requested
    worker.report(c, output="late, but done")
    assert journal(house.system, run_id)[-1][1] == "Failed"
    states = house.step_states(run_id)
    assert (states[b.snapshot["stepKey"]], states[c.snapshot["stepKey"]]) == ("Failed", "Succeeded")
    assert worker.poll() == []
