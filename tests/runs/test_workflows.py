"""Branches, fan-outs and people in real runs: what is made, skipped, joined, asked and told to workers."""

from copy import deepcopy
from dataclasses import replace
from uuid import UUID

import pytest

from approvals.commands import publish_policy_revision
from approvals.errors import AnswerNotPossible, NotEligible
from approvals.reconcilers import ApprovalExpiryReconciler
from approvals.selectors import current_policy
from approvals.states import ApprovalState
from approvals.subjects import subject_of
from factory.kernel.commanding import Command
from factory.kernel.tenancy import reading
from runs.commands import cancel_run, start_run
from tests.support.approvals import let_expire
from tests.support.evidence import journal, violations
from tests.support.running import House

pytestmark = pytest.mark.slow


def ends(house: House, run_id: UUID, **outputs: object) -> None:
    """Let one worker do whatever it is offered until there is nothing more."""
    worker = house.hand(slots=200)
    while works := worker.poll():
        for work in works:
            worker.acquire(work)
            key = work.snapshot["stepKey"]
            worker.report(work, output=outputs.get(key, outputs.get(key.partition("[")[0])))


@pytest.mark.requirement("STP-14", "WFE-08")
@pytest.mark.parametrize(
    ("go", "severity", "states"),
    [
        (True, "high", ["Succeeded"] * 4),
        (False, "high", ["Succeeded", "Skipped", "Skipped", "Succeeded"]),
        (True, "low", ["Succeeded", "Skipped", "Skipped", "Succeeded"]),
    ],
)
def test_a_branch_is_taken_or_skipped_with_all_that_needs_it_alone(house, go, severity, states):
    run_id = house.run("branches", input={"repository": "x", "go": go})
    ends(house, run_id, scan={"severity": severity}, fix=1, check=2, end="done")
    run, steps = house.row(run_id), house.steps(run_id)
    assert (run.state, run.output) == ("Completed", "done")
    assert [steps[key].state for key in ("scan", "fix", "check", "end")] == states
    if "Skipped" in states:
        assert steps["fix"].reason == "Its condition is false."
        assert steps["check"].reason == "All that it depends on was skipped."
        assert not any(a.step_id == steps["fix"].id for a in house.attempts(run_id))


def test_a_run_of_which_nothing_has_to_run_is_completed_at_once(house):
    run_id = house.run("idle")
    run = house.row(run_id)
    assert (run.state, run.output) == ("Completed", None)
    assert house.step_states(run_id) == {"a": "Skipped", "b": "Skipped"}
    causes = [cause for _, _, cause in journal(house.system, run_id)]
    assert causes == ["Submitted", "NothingToRun", "LastStepSucceeded"]
    assert start_run(house.system, run_id=run_id) == "Completed"


def test_a_node_fans_out_and_its_outputs_come_together_in_order(house):
    run_id = house.run("modules")
    worker = house.hand(slots=200)
    worker.report(worker.take(), output={"modules": ["a", {"b": 1}, None]})
    works = {work.snapshot["stepKey"]: work for work in worker.poll()}
    assert list(works) == ["module[0]", "module[1]", "module[2]"]
    assert [w.input["item"] for w in works.values()] == ["a", {"b": 1}, None]
    assert [w.input["index"] for w in works.values()] == [0, 1, 2]
    assert {w.input["correctionLimit"] for w in works.values()} == {2}
    for key in ("module[2]", "module[0]", "module[1]"):
        worker.acquire(works[key])
        worker.report(works[key], output=f"of {key}")
    end = worker.take()
    assert end.input["predecessors"] == {"module": ["of module[0]", "of module[1]", "of module[2]"]}
    worker.report(end, output="done")
    assert house.state(run_id) == "Completed"
    assert [step.ordinal for step in house.steps(run_id).values()] == [1, 2, 3, 4, 102]


@pytest.mark.parametrize(
    ("found", "words"), [([0] * 101, "found 101 elements"), ("text", "no list but a text")]
)
def test_a_fan_out_that_is_too_long_or_no_list_fails_of_class_validation(house, found, words):
    run_id = house.run("modules")
    worker = house.hand()
    worker.report(worker.take(), output={"modules": found})
    run = house.row(run_id)
    assert (run.state, run.failure_class) == ("Failed", "validation")
    assert words in run.reason
    assert house.step_states(run_id) == {"scan": "Succeeded"}


def test_a_fan_out_over_an_empty_list_succeeds_with_an_empty_list(house):
    run_id = house.run("modules")
    ends(house, run_id, scan={"modules": []}, end="done")
    assert house.state(run_id) == "Completed"
    assert house.step_states(run_id) == {"scan": "Succeeded", "module": "Succeeded", "end": "Succeeded"}
    assert house.steps(run_id)["module"].output == []


def test_one_failed_instance_fails_the_run_and_stops_the_others(house):
    run_id = house.run("modules")
    worker = house.hand(slots=2)
    worker.report(worker.take(), output={"modules": [1, 2, 3]})
    first, _ = worker.poll()
    worker.acquire(first)
    worker.fail(first, "validation")
    assert (house.state(run_id), house.row(run_id).failure_class) == ("Failed", "validation")
    assert set(house.step_states(run_id).values()) == {"Succeeded", "Failed", "Cancelled"}


@pytest.mark.requirement("STP-10", "WFE-05", "RUN-08")
def test_a_human_step_asks_a_person_and_is_done_by_the_answer(house):
    run_id = house.run("asked")
    step = house.steps(run_id)["ask"]
    assert (house.state(run_id), step.state, step.agent_id) == ("WaitingForApproval", "Running", "")
    assert house.attempts(run_id) == []
    assert house.hand().poll() == []
    [asked] = house.pending(run_id)
    assert (asked.step_id, asked.attempt_id, asked.summary) == (step.id, None, "ask?")
    house.decide(asked.id, reason="go ahead")
    answer = house.steps(run_id)["ask"].output
    assert (answer["decision"], answer["reason"]) == ("approve", "go ahead")
    assert answer["decidedBy"] == house.world.reviewer.actor.subject
    assert house.step_states(run_id) == {"ask": "Succeeded", "end": "Pending"}
    ends(house, run_id, end="done")
    assert house.state(run_id) == "Completed"
    causes = [cause for _, _, cause in journal(house.system, run_id)]
    assert causes == [
        "Submitted",
        "HumanStepOpened",
        "ApprovalRequested",
        "ApprovalGranted",
        "LastStepSucceeded",
    ]


def test_two_human_steps_at_once_are_answered_one_by_one(house):
    run_id = house.run("twice")
    worker = house.hand()
    worker.report(worker.take(), output={"found": 3})
    one, two = sorted(house.pending(run_id), key=lambda view: view.summary)
    house.decide(two.id)
    assert (house.state(run_id), house.step_states(run_id)["two"]) == ("WaitingForApproval", "Succeeded")
    house.decide(one.id)
    assert (house.state(run_id), house.step_states(run_id)["end"]) == ("Running", "Pending")
    ends(house, run_id)
    assert house.state(run_id) == "Completed"


def test_a_rejected_human_step_fails_the_run_and_the_requester_cannot_answer(house):
    run_id = house.run("twice")
    worker = house.hand()
    worker.report(worker.take())
    one, _ = house.pending(run_id)
    with pytest.raises(Exception, match=r"asked|requester|request"):
        house.decide(one.id, by=house.world.requester)
    house.decide(one.id, "reject", reason="no")
    assert (house.state(run_id), house.row(run_id).failure_class) == ("Failed", "policy-denied")
    assert house.pending(run_id) == []
    assert house.step_states(run_id) == {"scan": "Succeeded", "one": "Cancelled", "two": "Cancelled"}


@pytest.mark.parametrize("state", [state for state in ApprovalState if state != ApprovalState.APPROVED])
def test_nothing_but_a_yes_makes_a_human_step_succeed(house, state):
    """Whatever the approvals below let through."""

    run_id = house.run("asked")
    [view] = house.pending(run_id)
    closed = replace(view, state=state, decision="request_changes")
    subject = subject_of(view.subject_type)
    answer = Command("DecideApproval", lambda ctx: subject.decided(ctx, closed), audited=True, strict=True)
    if state in (ApprovalState.REJECTED, ApprovalState.EXPIRED):
        answer(house.world.reviewer)
        assert (house.state(run_id), house.step_states(run_id)) == ("Failed", {"ask": "Cancelled"})
        return
    with pytest.raises(AnswerNotPossible):
        answer(house.world.reviewer)
    assert (house.state(run_id), house.step_states(run_id)) == ("WaitingForApproval", {"ask": "Running"})
    house.decide(view.id)
    assert house.step_states(run_id)["ask"] == "Succeeded"


def test_a_run_of_people_alone_is_carried_to_its_end(house):
    run_id = house.run("word")
    [asked] = house.pending(run_id)
    assert house.state(run_id) == "WaitingForApproval"
    house.decide(asked.id)
    [last] = house.pending(run_id)
    assert (house.state(run_id), last.approver_roles) == ("WaitingForApproval", ("WorkspaceAdmin",))
    with pytest.raises(NotEligible):
        house.decide(last.id)
    house.decide(last.id, by=house.world.workspace_admin)
    run = house.row(run_id)
    assert (run.state, run.output["decision"]) == ("Completed", "approve")


def test_a_run_that_waits_for_a_person_is_cancelled_with_the_question(house):
    run_id = house.run("asked")
    assert cancel_run(house.world.requester, run_id=run_id, reason="not any more") == "Cancelled"
    assert house.pending(run_id) == []
    assert house.step_states(run_id) == {"ask": "Cancelled"}


@pytest.mark.requirement("APR-24")
def test_a_question_that_nobody_answered_is_asked_once_more_and_waits_for_that_answer(house):
    with reading(house.system):
        document = deepcopy(current_policy(house.system).document)
    for rule in document["rules"]:
        if rule["effect"] == "require-approval":
            rule["onExpiry"] = "re-request"
    publish_policy_revision(house.world.tenant_admin, document=document)
    run_id = house.run("asked")
    [first] = house.pending(run_id)
    let_expire(first.id)
    ApprovalExpiryReconciler().run_once(house.tenant)
    [again] = house.pending(run_id)
    assert (again.renews, again.step_id) == (first.id, first.step_id)
    assert (house.state(run_id), house.step_states(run_id)) == ("WaitingForApproval", {"ask": "Running"})
    assert violations(house.tenant) == []
    house.decide(again.id)
    assert house.steps(run_id)["ask"].output["approvalId"] == str(again.id)
    ends(house, run_id, end="done")
    assert house.state(run_id) == "Completed"
    assert violations(house.tenant) == []
