"""Where two rules meet in one run: late effects and doubts, rounds and retries, parking and limits."""

from dataclasses import replace

import pytest

from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from projects.commands import suspend_project
from runs.commands import expire_lease, resolve_step
from runs.selectors import run_view
from tests.support.evidence import audits, journal, violations
from tests.support.hands import Hand
from tests.support.proposals import OTHER_DIFF, said
from tests.support.receipts import costing, effect
from tests.support.running import House

pytestmark = pytest.mark.slow

OTHER = OTHER_DIFF


def lapse(house: House, work) -> None:
    """The holder has been silent for longer than its lease and the grace."""
    house.let_lapse(work.lease_id)
    assert expire_lease(house.system, lease_id=work.lease_id, fencing_token=work.fencing_token)


def settle(house: House, run_id, step, resolution: str) -> None:
    evidence = {"resolution": resolution, "evidence": "I looked at the branch."}
    resolve_step(house.world.operator, run_id=run_id, step_id=step.id, version=step.version, **evidence)


def authorized(house: House, worker: Hand):
    """A holder that has passed the gate."""
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    worker.authorize(work, asked.approval_id)
    return work, asked


@pytest.mark.parametrize("covered", [True, False])
def test_an_effect_that_is_told_late_leaves_the_doubt_to_be_settled(house: House, covered: bool) -> None:
    """The worker fell silent after the gate, and wakes up with its receipt: the usual story of a doubt."""
    run_id, worker = house.run("gated"), house.hand()
    work, asked = authorized(house, worker)
    lapse(house, work)
    told = worker.receipts(work, effect(asked.approval_id if covered else None))
    assert (told.recorded, told.superseded) == (1, True)
    [noted] = audits(house.system, "LateEffect")
    step = house.steps(run_id)["publish"]
    assert (step.state, step.attention, noted.outcome) == ("Running", "uncertain", "noted")
    assert violations(house.tenant) == []
    settle(house, run_id, step, "effect-happened")
    assert (house.state(run_id), house.steps(run_id)["publish"].attention) == ("Completed", "")


def test_a_late_effect_and_an_unproven_one_in_one_call_are_both_on_record(house: House) -> None:
    house.run("gated")
    worker = house.hand()
    work, asked = authorized(house, worker)
    lapse(house, work)
    worker.receipts(
        work, effect(asked.approval_id), effect(None) | {"receiptId": "no-time", "occurredAt": "soon"}
    )
    named = {
        action: audits(house.system, action)[0].detail["receipts"]["first"]
        for action in ("LateEffect", "UnprovenEffect")
    }
    assert named["UnprovenEffect"] == ["no-time"]
    assert len(named["LateEffect"]) == 1
    assert named["LateEffect"] != ["no-time"]


def test_a_late_effect_is_still_to_be_looked_at_when_a_later_attempt_fails(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    lapse(house, work)
    worker.receipts(work, effect(None))
    house.make_due(run_id)
    worker.fail(worker.take(), "permanent")
    step = house.steps(run_id)["publish"]
    assert (step.state, step.attention) == ("Failed", "late-effect")


def test_settling_a_doubt_withdraws_what_the_step_still_asked(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work, _ = authorized(house, worker)
    worker.ask(work, proposal=OTHER)
    worker.report(work, "Uncertain", "uncertain", reason="the line was cut")
    assert house.state(run_id) == "WaitingForApproval"
    settle(house, run_id, house.steps(run_id)["publish"], "effect-happened")
    assert house.state(run_id) == "Completed"
    assert sorted(a.state for a in house.approvals(run_id)) == ["Approved", "Cancelled"]


def test_the_tenth_round_ends_a_step_that_waits_for_its_retry_too(house: House) -> None:
    """The worker asked, and broke before anybody answered: the answer comes to a step without an attempt."""
    run_id, worker = house.run("gated"), house.hand()
    for number in range(9):
        asked = worker.ask(worker.take(), proposal=said(f"round {number}"), park=True)
        house.decide(asked.approval_id, "request_changes", reason=f"no {number}")
    work = worker.take()
    last = worker.ask(work, proposal=said("round 9"))
    worker.fail(work)
    assert (house.state(run_id), house.step_states(run_id)) == ("WaitingForApproval", {"publish": "Pending"})
    house.decide(last.approval_id, "request_changes", reason="no more")
    run = house.row(run_id)
    assert (run.state, run.failure_class) == ("Failed", "validation")
    step = house.steps(run_id)["publish"]
    assert (step.state, step.failure_class) == ("Failed", "validation")
    assert journal(house.system, step.id)[-1] == ("Pending", "Failed", "CorrectionsExhausted")


def test_the_time_that_a_person_takes_does_not_stop_the_next_holder(house: House) -> None:
    run_id, worker = house.run("hasty"), house.hand()
    work = worker.take()
    asked = worker.ask(work, park=True)
    house._owner(
        "UPDATE runs_attempt SET held_at = held_at - interval '1 hour', "
        "dispatched_at = dispatched_at - interval '1 hour' WHERE id = %s",
        [work.attempt_id],
        unpinned=True,
    )
    house.decide(asked.approval_id)
    again = worker.take()
    assert not worker.acquire(again).cancel_requested
    worker.authorize(again, asked.approval_id)
    worker.report(again, output=1, receipts=[effect(asked.approval_id)])
    assert house.state(run_id) == "Completed"


def test_a_run_that_has_spent_its_limit_ends_when_its_parked_attempt_is_decided(house: House) -> None:
    """Nothing more of it is dispatched, and no attempt is left that could settle: it must not hang."""
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    worker.receipts(work, costing("6"))
    asked = worker.ask(work, park=True)
    house.decide(asked.approval_id)
    run = house.row(run_id)
    assert (run.state, run.failure_class) == ("Failed", "budget")
    assert journal(house.system, run_id)[-1] == ("Running", "Failed", "BudgetExhausted")
    assert house.attempt(work.attempt_id).state == "Cancelled"


def test_a_run_ends_when_what_a_dead_worker_spent_passes_its_limit(house: House) -> None:
    run_id, worker = house.run(), house.hand()
    work = worker.take()
    lapse(house, work)
    assert house.step_states(run_id) == {"look": "Pending"}
    worker.receipts(work, costing("6"))
    assert (house.state(run_id), house.row(run_id).failure_class) == ("Failed", "budget")


@pytest.mark.parametrize("how", ["the holder fell silent", "nobody acquired the offer"])
def test_a_run_over_its_limit_ends_when_its_attempt_is_parked_by_silence(house: House, how: str) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    asked = worker.ask(work, park=how != "the holder fell silent")
    house.decide(asked.approval_id)
    if how == "nobody acquired the offer":
        [again] = worker.poll()
        worker.receipts(work, costing("6"))
        work = again
    else:
        worker.receipts(work, costing("6"))
    assert house.state(run_id) == "Running"
    lapse(house, work)
    assert (house.state(run_id), house.row(run_id).failure_class) == ("Failed", "budget")


def test_a_run_over_its_limit_lets_its_holder_finish(house: House) -> None:
    run_id, worker = house.run(), house.hand()
    work = worker.take()
    worker.receipts(work, costing("6"))
    assert house.state(run_id) == "Running"
    worker.report(work, output=1)
    assert house.state(run_id) == "Completed"


@pytest.mark.requirement("ATT-16")
@pytest.mark.parametrize(
    ("outcome", "failure_class"),
    [("Succeeded", None), ("Failed", "permanent"), ("Cancelled", "cancellation"), ("Uncertain", "uncertain")],
)
def test_what_a_holder_reported_is_kept_whatever_the_outcome(house: House, outcome, failure_class) -> None:
    house.run()
    worker = house.hand()
    work = worker.take()
    worker.report(
        work, outcome, failure_class, reason=None if failure_class is None else "so", output={"n": 1}
    )
    assert house.attempt(work.attempt_id).output == {"n": 1}


@pytest.mark.requirement("LSE-02")
def test_somebody_elses_lease_is_a_stale_token_and_never_an_order_to_stop(house: House) -> None:
    house.run()
    holder, stranger = house.hand("w1"), house.hand("w2")
    work = holder.take()
    with pytest.raises(DomainError) as refused:
        stranger.acquire(work, instance_id=stranger.instance)
    assert refused.value.code == "stale-fencing-token"
    assert [a.outcome for a in audits(house.system, "AcquireLease")] == ["refused"]
    assert not holder.acquire(work, instance_id=holder.instance).cancel_requested


@pytest.mark.requirement("SEC-05")
def test_a_stale_token_is_told_and_audited_also_in_a_suspended_project(house: House) -> None:
    house.run("gated")
    worker = house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    suspend_project(house.world.tenant_admin, project_id=house.world.project, reason="audit")
    stale = replace(work, fencing_token=work.fencing_token - 1)
    with pytest.raises(DomainError) as refused:
        worker.authorize(stale, asked.approval_id)
    assert refused.value.code == "stale-fencing-token"
    assert [a.outcome for a in audits(house.system, "TakeAuthorization")] == ["refused"]


def waiting(house: House, run_id, key: str) -> str:
    with reading(house.system):
        view = run_view(house.system, run_id)
    return next(step.waiting for step in view.steps if step.node_key == key)


def test_why_a_step_waits_is_said_truly_of_limits_and_suspension(house: House) -> None:
    run_id, worker = house.run("gates"), house.hand()
    one, two = worker.poll()
    for work in (one, two):
        worker.acquire(work)
    worker.fail(two)
    house.make_due(run_id)
    worker.receipts(one, costing("6"))
    key = two.snapshot["stepKey"]
    assert waiting(house, run_id, key).startswith("The run has used more than it may cost")

    other = house.run("gated")
    [work] = [w for w in worker.poll() if w.run_id == other]
    worker.acquire(work)
    asked = worker.ask(work, park=True)
    house.decide(asked.approval_id)
    assert waiting(house, other, "publish") == "Decided; waits for a worker."
    suspend_project(house.world.tenant_admin, project_id=house.world.project, reason="audit")
    assert waiting(house, other, "publish") == "The project is suspended."
