"""Gated actions: what is asked, who waits, and what each decision does to a run."""

from dataclasses import replace
from uuid import uuid4

import pytest

from approvals.commands import expire_approval, publish_policy_revision
from factory.kernel.errors import DomainError, TooLarge
from factory.kernel.tenancy import reading
from runs.commands import ParkRequest
from runs.errors import ClassAboveStep, EnvironmentUnknown, PinsMismatch, ProposalChanged, RunNotWorking
from tests.support.evidence import counts, journal
from tests.support.proposals import DIFF, OTHER_DIFF, said
from tests.support.receipts import effect
from tests.support.running import House

OTHER = OTHER_DIFF


def code_of(call) -> str:
    with pytest.raises(DomainError) as refused:
        call()
    return refused.value.code


@pytest.mark.requirement("WAPI-08")
def test_the_same_question_is_the_same_request(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    first = worker.ask(work)
    again = worker.ask(work)
    assert (again.approval_id, again.opened, again.version) == (first.approval_id, False, first.version)
    parked = worker.ask(work, park=True)
    assert (parked.approval_id, parked.parked) == (first.approval_id, True)
    assert [a.state for a in house.approvals(run_id)] == ["Pending"]
    assert [to for _, to, _ in journal(house.system, run_id)].count("WaitingForApproval") == 1


@pytest.mark.requirement("WAPI-08")
def test_parking_again_after_a_lost_answer_is_answered_the_same(house: House) -> None:
    house.run("gated")
    worker, thief = house.hand(), house.hand("thief")
    work = worker.take()
    first = worker.ask(work, park=True)
    before = counts(house.system)
    for _ in range(2):
        again = worker.ask(work, park=True)
        assert (again.approval_id, again.parked, again.decision) == (first.approval_id, True, None)
    assert counts(house.system) == before, "nothing moved, and nothing stale is noted"
    for call in (
        lambda: worker.ask(work),
        lambda: worker.ask(work, OTHER, park=True),
        lambda: thief.ask(work, park=True),
    ):
        assert code_of(call) == "stale-fencing-token"
    house.decide(first.approval_id)
    assert worker.ask(work, park=True).decision is None, "the decision comes with the next lease"
    worker.take()
    assert code_of(lambda: worker.ask(work, park=True)) == "stale-fencing-token"


def test_once_decided_the_lease_stays_even_with_park(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id, reason="fine")
    told = worker.ask(work, park=True)
    assert told.decision is not None
    assert (told.parked, told.decision.decision, told.decision.reason) == (False, "approve", "fine")
    worker.authorize(work, asked.approval_id)
    worker.report(work, output=1, receipts=[effect(asked.approval_id)])
    assert house.state(run_id) == "Completed"


@pytest.mark.requirement("APR-06")
def test_another_proposal_makes_the_older_request_stale(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    first = worker.ask(work)
    second = worker.ask(work, proposal=OTHER)
    assert second.opened
    assert {a.id: a.state for a in house.approvals(run_id)} == {
        first.approval_id: "Stale",
        second.approval_id: "Pending",
    }
    assert house.state(run_id) == "WaitingForApproval"
    house.decide(second.approval_id)
    assert code_of(lambda: worker.authorize(work, second.approval_id)) == "not-authorized"
    worker.authorize(work, second.approval_id, OTHER)
    assert house.state(run_id) == "Running"


@pytest.mark.requirement("RUN-13", "FLR-07", "ARC-07")
@pytest.mark.parametrize("how", ["reject", "expire"])
def test_a_no_or_silence_fails_the_run(house: House, how: str) -> None:
    run_id = house.run("mixed")
    worker = house.hand()
    works = {w.snapshot["stepKey"]: w for w in worker.poll()}
    for work in works.values():
        worker.acquire(work)
    asked = worker.ask(works["gate"], park=True)
    if how == "reject":
        house.decide(asked.approval_id, "reject", reason="too much")
    else:
        house._owner(
            "UPDATE approvals_approvalrequest SET requested_at = requested_at - interval '71 hours', "
            "expires_at = clock_timestamp() - interval '1 second' WHERE id = %s",
            [asked.approval_id],
            unpinned=True,
        )
        expire_approval(house.system, approval_id=asked.approval_id, version=asked.version)
    run = house.row(run_id)
    assert (run.state, run.failure_class) == ("Failed", "policy-denied")
    assert house.attempt(works["gate"].attempt_id).state == "Cancelled"
    assert house.step_states(run_id) == {"gate": "Cancelled", "side": "Running"}
    assert worker.acquire(works["side"]).cancel_requested
    worker.report(works["side"], "Cancelled", "cancellation")
    assert house.step_states(run_id)["side"] == "Cancelled"
    assert worker.poll() == []


@pytest.mark.requirement("APR-14")
def test_changes_requested_come_back_to_the_same_attempt_with_the_words(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    asked = worker.ask(work, park=True)
    house.decide(asked.approval_id, "request_changes", reason="shorter, please")
    assert house.state(run_id) == "Running"
    again = worker.take()
    assert again.attempt_id == work.attempt_id
    assert again.decision is not None
    assert (again.decision.decision, again.decision.reason) == ("request_changes", "shorter, please")
    second = worker.ask(again, proposal=OTHER, park=True)
    house.decide(second.approval_id)
    third = worker.take()
    worker.authorize(third, second.approval_id, OTHER)
    worker.report(third, output=1, receipts=[effect(second.approval_id, OTHER)])
    assert (house.state(run_id), len(house.attempts(run_id))) == ("Completed", 1)


def test_after_ten_rounds_the_step_fails(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    for number in range(10):
        work = worker.take()
        asked = worker.ask(work, proposal=said(f"round {number}"), park=True)
        house.decide(asked.approval_id, "request_changes", reason=f"no {number}")
    run = house.row(run_id)
    assert (run.state, run.failure_class) == ("Failed", "validation")
    assert house.attempt(work.attempt_id).state == "Failed"


@pytest.mark.requirement("RUN-12", "STP-05")
def test_a_run_waits_until_the_last_of_its_requests_is_decided(house: House) -> None:
    run_id = house.run("gates")
    worker = house.hand()
    one, two = worker.poll()
    asked = []
    for work in (one, two):
        worker.acquire(work)
        asked.append(worker.ask(work, park=True))
    house.decide(asked[1].approval_id)
    assert (house.state(run_id), worker.poll()) == ("WaitingForApproval", [])
    [first] = [a for a in house.approvals(run_id) if a.id == asked[1].approval_id]
    assert first.valid_until is None, "Its validity starts when the run goes on."
    house.decide(asked[0].approval_id)
    assert house.state(run_id) == "Running"
    assert all(a.valid_until for a in house.approvals(run_id))
    for work in worker.poll():
        worker.acquire(work)
        worker.authorize(work, work.decision.approval_id)
        worker.report(work, output=1, receipts=[effect(work.decision.approval_id)])
    worker.report(worker.take(), output="end")
    assert house.state(run_id) == "Completed"


@pytest.mark.requirement("STP-05")
def test_while_it_waits_leased_work_goes_on_and_nothing_new_is_dispatched(house: House) -> None:
    run_id = house.run("mixed")
    worker = house.hand(slots=8)
    works = {w.snapshot["stepKey"]: w for w in worker.poll()}
    for work in works.values():
        worker.acquire(work)
    asked = worker.ask(works["gate"])
    assert not worker.acquire(works["side"]).cancel_requested
    worker.fail(works["side"])
    house.make_due(run_id)
    assert (house.state(run_id), worker.poll()) == ("WaitingForApproval", [])
    house.decide(asked.approval_id)
    assert [w.snapshot["stepKey"] for w in worker.poll()] == ["side"]


@pytest.mark.requirement("APR-17")
def test_refuses_what_does_not_fit_the_run(house: House) -> None:
    house.run("single")
    run_id = house.run("gated")
    worker = house.hand()
    works = {w.run_id: w for w in worker.poll()}
    for each in works.values():
        worker.acquire(each)
    work = works[run_id]
    [reader] = [w for w in works.values() if w.run_id != run_id]
    before = counts(house.system)[:2]
    with pytest.raises(ProposalChanged):
        worker.ask(work, proposal_hash="sha256:" + "0" * 64)
    for pins in ({"release_id": uuid4()}, {"snapshot_id": uuid4()}, {"policy_revision": "r9"}):
        with pytest.raises(PinsMismatch):
            worker.ask(work, **pins)
    for word in ("external", "production", "publication"):
        with pytest.raises(ClassAboveStep):
            worker.ask(work, action_class=word)
    with pytest.raises(ClassAboveStep):
        worker.ask(reader)
    with pytest.raises(EnvironmentUnknown):
        worker.ask(work, environment_id=house.world.environment)
    with pytest.raises(TooLarge):
        worker.ask(work, park=ParkRequest({"much": "x" * (256 * 1024)}))
    assert code_of(lambda: worker.ask(work, action_class="sing")) == "invalid-input"
    assert code_of(lambda: worker.ask(work, summary=" ")) == "invalid-input"
    assert counts(house.system)[:2] == before
    assert worker.ask(reader, action_class="read").effect == "allow"
    assert worker.ask(work, action_class="read").effect == "require-approval", "The node's class counts."


def test_what_the_policy_denies_moves_nothing(house: House) -> None:
    document = {
        "rules": [{"actionClass": "shared-write", "effect": "deny"}],
        "modelProfiles": ["code-agent"],
        "defaults": {"maxCostUsd": 5, "maxMinutes": 60},
    }
    publish_policy_revision(house.system, document=document)
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    assert work.snapshot["policyRevision"] == "r2"
    assert code_of(lambda: worker.ask(work)) == "policy-denied"
    assert (house.state(run_id), house.attempt(work.attempt_id).state) == ("Running", "Open")
    worker.fail(work, "policy-denied")
    assert house.row(run_id).failure_class == "policy-denied"


@pytest.mark.requirement("RUN-06", "POL-02")
def test_a_run_keeps_the_policy_that_it_was_accepted_under(house: House) -> None:
    house.run("gated")
    document = {
        "rules": [{"actionClass": "shared-write", "effect": "deny"}],
        "modelProfiles": ["code-agent"],
        "defaults": {"maxCostUsd": 5, "maxMinutes": 60},
    }
    publish_policy_revision(house.system, document=document)
    worker = house.hand()
    assert worker.ask(worker.take()).effect == "require-approval"


@pytest.mark.requirement("APR-09")
@pytest.mark.parametrize("why", ["pending", "other hash", "suspended", "cancelling", "other step's"])
def test_the_gate_at_execution_stays_shut(house: House, why: str) -> None:
    from projects.commands import suspend_project
    from runs.commands import cancel_run

    run_id = house.run("gates")
    worker = house.hand()
    works = worker.poll()
    for each in works:
        worker.acquire(each)
    work, other = works
    asked = worker.ask(work)
    proposal, holder = DIFF, work
    if why != "pending":
        house.decide(asked.approval_id)
    if why == "other hash":
        proposal = OTHER
    if why == "other step's":
        holder = other
    if why == "suspended":
        suspend_project(house.world.tenant_admin, project_id=house.world.project, reason="audit")
    if why == "cancelling":
        cancel_run(house.system, run_id=run_id, reason="enough")
    codes = {"suspended": "project-not-active", "cancelling": "run-not-working"}
    assert code_of(lambda: worker.authorize(holder, asked.approval_id, proposal)) == codes.get(
        why, "not-authorized"
    )
    with reading(house.system):
        from approvals.selectors import authorizations_of_attempt

        assert authorizations_of_attempt(work.attempt_id) == []


@pytest.mark.requirement("APR-09")
def test_an_authorization_is_for_one_holder_and_renews_its_lease(house: House) -> None:
    house.run("gated")
    worker = house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    house.let_lapse(work.lease_id, seconds=5)
    taken = worker.authorize(work, asked.approval_id)
    assert worker.authorize(work, asked.approval_id).id == taken.id
    [lease] = house.leases(work.run_id)
    assert lease.expires_at > taken.authorized_at
    house.let_lapse(work.lease_id, seconds=31)
    assert code_of(lambda: worker.authorize(work, asked.approval_id)) == "lease-expired"


def test_an_unused_approval_serves_the_next_attempt(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    worker.fail(work)
    house.make_due(run_id)
    again = worker.take()
    assert again.number == 2
    told = worker.ask(again)
    assert (told.approval_id, told.opened, told.decision.decision) == (asked.approval_id, False, "approve")
    worker.authorize(again, asked.approval_id)
    worker.report(again, output=1, receipts=[effect(asked.approval_id)])
    assert house.state(run_id) == "Completed"


def test_a_success_that_needs_no_answer_withdraws_the_question(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    worker.ask(work)
    worker.report(work, output="nothing to do after all")
    assert house.state(run_id) == "Completed"
    assert [a.state for a in house.approvals(run_id)] == ["Cancelled"]


@pytest.mark.requirement("RUN-26", "IDN-17")
def test_the_requester_decides_on_no_path(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    asked = worker.ask(worker.take())
    requester = house.world.requester
    both = replace(requester, actor=replace(requester.actor, roles=frozenset({"Reviewer", "Requester"})))
    before = counts(house.system)[:2]
    for who in (requester, both, house.world.service):
        assert code_of(lambda who=who: house.decide(asked.approval_id, by=who)) in (
            "separation-of-duties",
            "insufficient-role",
            "insufficient-scope",
        )
    assert (house.state(run_id), counts(house.system)[:2]) == ("WaitingForApproval", before)


def test_nothing_is_asked_for_a_run_that_has_ended(house: House) -> None:
    from runs.commands import enforce_deadline

    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    house.pass_deadline(run_id)
    assert enforce_deadline(house.system, run_id=run_id)
    with pytest.raises(RunNotWorking):
        worker.ask(work)
    assert house.row(run_id).failure_class == "permanent"
