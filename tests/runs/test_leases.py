"""Leases: who may speak for an attempt, for how long, and what follows from silence."""

from datetime import UTC, datetime, timedelta

import pytest

from factory.kernel.errors import Conflict
from runs.commands import expire_lease
from runs.errors import AttemptNotFound, LeaseOver, StaleFencingToken, WorkerSuperseded
from runs.reconcilers import LeaseExpiryReconciler
from tests.support.evidence import audits, counts, journal, outbox
from tests.support.receipts import effect, receipt
from tests.support.running import House


def expire(house: House, lease_id, token: int) -> bool:
    return expire_lease(house.system, lease_id=lease_id, fencing_token=token)


@pytest.mark.requirement("LSE-06", "LSE-08")
def test_renews_from_now_and_keeps_the_token(house: House) -> None:
    house.run()
    worker = house.hand()
    work = worker.take()
    house.let_lapse(work.lease_id, seconds=10)  # past its end, within the grace
    before = datetime.now(UTC)
    grant = worker.acquire(work)
    assert (grant.lease_id, grant.fencing_token) == (work.lease_id, work.fencing_token)
    assert timedelta(seconds=118) < grant.expires_at - before < timedelta(seconds=125)
    assert not grant.cancel_requested


@pytest.mark.requirement("LSE-07")
def test_refuses_a_renewal_after_the_grace_before_any_reconciler_came(house: House) -> None:
    house.run()
    worker = house.hand()
    work = worker.take()
    house.let_lapse(work.lease_id, seconds=31)
    with pytest.raises(LeaseOver):
        worker.acquire(work)
    worker.report(work, output=1)  # the outcome of the current token is still worth having


@pytest.mark.requirement("ATT-04", "LSE-11", "SEC-05")
@pytest.mark.parametrize("call", ["acquire", "report", "receipts", "ask", "authorize"])
def test_a_stale_token_changes_nothing_and_is_audited(house: House, call: str) -> None:
    from dataclasses import replace

    house.run("gated")
    worker = house.hand()
    work = worker.take()
    stale = replace(work, fencing_token=work.fencing_token - 1)
    before, seen = counts(house.system), house.attempt(work.attempt_id)
    calls = {
        "acquire": lambda: worker.acquire(stale),
        "report": lambda: worker.report(stale, output=1),
        "receipts": lambda: worker.receipts(stale, receipt()),
        "ask": lambda: worker.ask(stale),
        "authorize": lambda: worker.authorize(stale, house.release),
    }
    with pytest.raises(StaleFencingToken):
        calls[call]()
    entries, events, notes = counts(house.system)
    assert (entries, events, notes) == (before[0], before[1], before[2] + 1)
    assert house.attempt(work.attempt_id).state == seen.state == "Open"
    names = {"acquire": "AcquireLease", "report": "ReportAttemptOutcome", "receipts": "RecordReceipts"}
    names |= {"ask": "RequestApproval", "authorize": "TakeAuthorization"}
    [refused] = [a for a in audits(house.system, names[call]) if a.outcome == "refused"]
    assert refused.detail["code"] == "stale-fencing-token"
    assert refused.detail["currentToken"] == work.fencing_token


@pytest.mark.requirement("LSE-02")
def test_the_right_token_in_the_wrong_hands_is_worth_nothing(house: House) -> None:
    house.run()
    worker, thief = house.hand("w1"), house.hand("w2")
    work = worker.take()
    for steal in (thief.acquire, thief.report):
        with pytest.raises(StaleFencingToken):
            steal(work)
    worker.report(work, output=1)


def test_a_worker_of_another_pool_finds_no_attempt(house: House) -> None:
    house.run()
    work = house.hand().take()
    stranger = house.hand("w9")
    house.pool = "another"
    with pytest.raises(AttemptNotFound):
        stranger.acquire(work)


@pytest.mark.requirement(
    "ATT-10", "ATT-11", "LSE-05", "LSE-09", "LSE-04", "JOB-07", "LSE-07", "FLR-01", "ARC-11"
)
def test_silence_times_out_and_is_retried_under_a_higher_token(house: House) -> None:
    run_id = house.run()
    worker = house.hand("w1")
    work = worker.take()
    assert not expire(house, work.lease_id, work.fencing_token), "It was still good."
    house.let_lapse(work.lease_id, seconds=29)
    assert not expire(house, work.lease_id, work.fencing_token), "The grace was not over."
    house.let_lapse(work.lease_id, seconds=31)
    assert expire(house, work.lease_id, work.fencing_token)
    assert not expire(house, work.lease_id, work.fencing_token), "Twice is once."
    assert journal(house.system, work.attempt_id)[-1] == ("Open", "TimedOut", "LeaseExpired")
    topics = [
        topic for topic, data in outbox(house.system, run_id) if data.get("leaseId") == str(work.lease_id)
    ]
    assert topics.count("run-control.leases.v1.lease-expired") == 1
    assert house.step_states(run_id) == {"look": "Pending"}
    assert worker.poll() == [], "It waits for its back-off."
    house.make_due(run_id)
    again = worker.take()
    assert (again.number, again.fencing_token > work.fencing_token) == (2, True)
    with pytest.raises(StaleFencingToken):
        worker.report(work, output="late")
    worker.report(again, output="in time")
    assert house.row(run_id).output == "in time"


@pytest.mark.requirement("JOB-11", "REG-16")
def test_silence_ends_a_step_that_may_be_tried_once(house: House) -> None:
    run_id = house.run("stubborn")
    work = house.hand().take()
    house.let_lapse(work.lease_id)
    assert expire(house, work.lease_id, work.fencing_token)
    assert (house.step_states(run_id), house.state(run_id)) == ({"look": "Failed"}, "Failed")
    assert house.hand("other").poll() == []


@pytest.mark.requirement("ATT-14", "STP-08")
def test_gives_up_after_the_last_try(house: House) -> None:
    run_id = house.run()
    worker = house.hand()
    for _ in range(3):
        house.make_due(run_id)
        worker.fail(worker.take())
    run = house.row(run_id)
    assert (run.state, run.failure_class) == ("Failed", "transient")
    assert "last of 3" in run.reason
    assert [a.number for a in house.attempts(run_id)] == [1, 2, 3]


def test_an_offer_that_nobody_acquires_uses_up_no_try(house: House) -> None:
    run_id = house.run("stubborn")
    worker = house.hand()
    for expected in (1, 2, 3):
        [work] = worker.poll()
        assert work.number == expected
        house.let_lapse(work.lease_id)
        assert expire(house, work.lease_id, work.fencing_token)
        assert house.attempt(work.attempt_id).state == "TimedOut"
    worker.report(worker.take(), output=1)
    assert house.state(run_id) == "Completed"


@pytest.mark.requirement("ATT-05", "ATT-11")
def test_silence_after_an_authorization_is_uncertain_and_never_retried(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    worker.authorize(work, asked.approval_id)
    house.let_lapse(work.lease_id)
    worker.poll()  # recovery is in the path of every poll
    assert house.attempt(work.attempt_id).state == "Uncertain"
    step = house.steps(run_id)["publish"]
    assert (step.state, step.attention, house.state(run_id)) == ("Running", "uncertain", "Running")
    LeaseExpiryReconciler().run_once(house.tenant)
    assert (worker.poll(), len(house.attempts(run_id))) == ([], 1)


@pytest.mark.parametrize("approved", [False, True])
def test_silence_while_a_person_decides_parks_the_attempt(house: House, approved: bool) -> None:
    run_id = house.run("gated")
    worker, other = house.hand("w1"), house.hand("w2")
    work = worker.take()
    asked = worker.ask(work)
    if approved:
        house.decide(asked.approval_id)
    house.let_lapse(work.lease_id)
    LeaseExpiryReconciler().run_once(house.tenant)
    assert house.attempt(work.attempt_id).state == "Parked"
    if not approved:
        assert other.poll() == []
        house.decide(asked.approval_id)
    again = other.take()
    assert (again.attempt_id, again.decision.decision) == (work.attempt_id, "approve")
    other.authorize(again, asked.approval_id)
    other.report(again, output=1, receipts=[effect(asked.approval_id)])
    assert house.state(run_id) == "Completed"


def test_a_re_lease_that_nobody_acquires_goes_back_to_parked(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    asked = worker.ask(work, park=True)
    house.decide(asked.approval_id)
    [again] = worker.poll()
    house.let_lapse(again.lease_id)
    expire(house, again.lease_id, again.fencing_token)
    assert house.attempt(work.attempt_id).state == "Parked"
    third = worker.take()
    assert (third.attempt_id, third.checkpoint) == (work.attempt_id, {"at": "proposal"})
    assert work.fencing_token < again.fencing_token < third.fencing_token
    worker.report(third, output=1)
    assert house.state(run_id) == "Completed"


@pytest.mark.requirement("WAPI-12")
def test_a_lapsed_holder_is_told_that_it_is_over(house: House) -> None:
    house.run()
    worker = house.hand()
    work = worker.take()
    house.let_lapse(work.lease_id)
    expire(house, work.lease_id, work.fencing_token)
    with pytest.raises(LeaseOver):
        worker.acquire(work)


@pytest.mark.requirement("ATT-16")
def test_receipts_of_a_lapsed_lease_were_paid_all_the_same(house: House) -> None:
    run_id = house.run()
    worker = house.hand()
    work = worker.take()
    house.let_lapse(work.lease_id)
    expire(house, work.lease_id, work.fencing_token)
    late = receipt()
    told = worker.receipts(work, late)
    assert (told.recorded, told.superseded) == (1, True)
    assert worker.receipts(work, late).recorded == 0
    worker.receipts(work, effect(None))
    assert house.steps(run_id)["look"].attention == "late-effect"


def test_a_step_s_own_time_out_stops_its_renewals(house: House) -> None:
    house.run("brief")
    worker = house.hand()
    [work] = worker.poll()
    for grant in (worker.acquire(work), worker.acquire(work)):
        lasts = grant.expires_at - house.attempt(work.attempt_id).held_at
        assert (lasts, grant.cancel_requested, grant.stop) == (timedelta(minutes=1), False, None)
    house._owner(
        "UPDATE runs_lease SET acquired_at = acquired_at - interval '2 minutes' WHERE id = %s",
        [work.lease_id],
    )
    late = worker.acquire(work)
    assert (late.cancel_requested, late.stop, late.expires_at) == (False, "timed-out", grant.expires_at)


def test_the_younger_process_has_the_name(house: House) -> None:
    house.run()
    old = house.hand("w1")
    work = old.take()
    young = house.hand("w1")
    with pytest.raises(WorkerSuperseded):
        old.poll()
    with pytest.raises(WorkerSuperseded):
        old.acquire(work, instance_id=old.instance)
    assert issubclass(WorkerSuperseded, Conflict)
    assert young.poll() == []
