"""However a run ends while people are asked: what nothing needs any more is withdrawn, and the run ends."""

from copy import deepcopy
from uuid import UUID

import pytest

from approvals.commands import expire_approval
from approvals.states import DECIDED
from projects.commands import kill_project
from registry.commands import revoke_release
from runs.commands import cancel_killed_run, cancel_run, follow_withdrawal, resolve_step
from runs.reconcilers import LeaseExpiryReconciler
from runs.selectors.answers import OfferedAttempt
from tests.runs.test_limits import asking
from tests.support.evidence import journal, outbox, violations
from tests.support.hands import Hand
from tests.support.receipts import costing, effect, thinking
from tests.support.running import House
from tests.support.workflows import MANIFEST, human, node, workflow

pytestmark = pytest.mark.slow

WRITE = {"side_effect_class": "shared-write"}
SPARE = workflow("spare", node("c"), node("a"), node("end", "a", "c", when="steps.a.go"))
EMPTY = workflow("empty", node("c"), node("a"), node("end", "a", "c", forEach="steps.a.todo"))
QUESTION = workflow(
    "question", node("a"), node("c"), human("ask", "a"), node("end", "c", "ask", when="input.go")
)
PROPOSAL = workflow("proposal", node("c"), node("g", **WRITE), node("end", "c", "g", when="input.go"))
ALL = workflow(
    "all",
    node("a"),
    node("c"),
    node("g", **WRITE),
    node("x"),
    human("ask", "a"),
    node("y", "x", forEach="steps.x.todo"),
    node("end", "c", "g", "ask", "y"),
)


@pytest.fixture
def house(tenant_id) -> House:
    house = asking(House(tenant_id))
    made = deepcopy(MANIFEST)
    made["version"] = "1.1.0"
    made["workflows"] = [*made["workflows"], SPARE, EMPTY, QUESTION, PROPOSAL, ALL]
    house.release = house.publish(made, commit="b" * 40)
    return house


def begun(house: House, workflow_id: str) -> tuple[UUID, Hand, dict[str, OfferedAttempt]]:
    """A run whose first steps are all held, by their keys."""
    given = {"repository": "https://git.example.test/x.git", "go": False}
    run_id, worker = house.run(workflow_id, input=given), house.hand()
    works = {work.snapshot["stepKey"]: work for work in worker.poll()}
    for work in works.values():
        worker.acquire(work)
    return run_id, worker, works


def kinds(house: House, run_id: UUID) -> list[str]:
    """What the run asks of people now: more money, a step's proposal, or a question."""
    kind = {True: "question", False: "proposal"}
    return sorted(
        "money" if view.step_id is None else kind[view.attempt_id is None] for view in house.pending(run_id)
    )


def assert_ended(house: House, run_id: UUID, state: str, withdrawn: set[UUID]) -> None:
    """It is over; of what it asked, these were cancelled, journaled and told, and nothing is Pending."""
    assert (house.state(run_id), house.pending(run_id)) == (state, [])
    assert {view.id for view in house.approvals(run_id) if view.state == "Cancelled"} == withdrawn
    told = {data["approvalId"] for topic, data in outbox(house.system, run_id) if topic == DECIDED}
    for approval_id in withdrawn:
        assert journal(house.system, approval_id)[-1][:2] == ("Pending", "Cancelled")
        assert str(approval_id) in told
    assert violations(house.tenant) == []


@pytest.mark.parametrize(("name", "output"), [("spare", {"go": False}), ("empty", {"todo": []})])
def test_the_last_success_ends_a_run_that_asks_for_money(house: House, name: str, output: dict) -> None:
    run_id, worker, works = begun(house, name)
    worker.report(works["c"], output=1, receipts=[costing("6")])
    assert kinds(house, run_id) == ["money"]
    [money] = house.pending(run_id)
    worker.report(works["a"], output=output)
    assert_ended(house, run_id, "Completed", {money.id})
    causes = [cause for _, _, cause in journal(house.system, run_id)]
    assert causes[-3:] == ["ApprovalRequested", "ApprovalWithdrawn", "LastStepSucceeded"]


@pytest.mark.parametrize("workflow_id", ["spare", "empty"])
def test_going_on_with_unknown_cost_is_not_asked_about_once_nothing_is_left(
    house: House, workflow_id: str
) -> None:
    run_id, worker, works = begun(house, workflow_id)
    worker.report(works["c"], output=1, receipts=[thinking()])
    [money] = house.pending(run_id)
    assert "nobody knows" in money.summary
    worker.report(works["a"], output={"go": False, "todo": []})
    assert_ended(house, run_id, "Completed", {money.id})


def test_the_answer_to_the_last_question_ends_a_run_that_asks_for_money(house: House) -> None:
    run_id, worker, works = begun(house, "question")
    worker.report(works["a"], output=1)
    worker.report(works["c"], output=1, receipts=[costing("6")])
    assert kinds(house, run_id) == ["money", "question"]
    asked = {view.subject_type: view.id for view in house.pending(run_id)}
    house.decide(asked["run"])
    assert_ended(house, run_id, "Completed", {asked["spend"]})


def test_a_step_that_is_done_needs_neither_its_proposal_nor_money(house: House) -> None:
    run_id, worker, works = begun(house, "proposal")
    worker.ask(works["g"])
    worker.report(works["c"], output=1, receipts=[costing("6")])
    assert kinds(house, run_id) == ["money", "proposal"]
    withdrawn = {view.id for view in house.pending(run_id)}
    worker.report(works["g"], output=1)
    assert_ended(house, run_id, "Completed", withdrawn)


def test_an_operators_word_ends_a_run_that_asks_for_money(house: House) -> None:
    run_id, worker, works = begun(house, "proposal")
    asked = worker.ask(works["g"])
    house.decide(asked.approval_id)
    worker.authorize(works["g"], asked.approval_id)
    worker.report(works["g"], "Uncertain", "uncertain", reason="the line went dead")
    worker.report(works["c"], output=1, receipts=[costing("6")])
    [money] = house.pending(run_id)
    step = house.steps(run_id)["g"]
    resolve_step(
        house.world.operator,
        run_id=run_id,
        step_id=step.id,
        resolution="effect-happened",
        evidence="The commit is there.",
        version=step.version,
    )
    assert_ended(house, run_id, "Completed", {money.id})


END = {
    "a step fails": "Failed",
    "a step was cancelled": "Failed",
    "too long a list": "Failed",
    "an effect nobody authorized": "Failed",
    "the money is refused": "Failed",
    "the proposal is refused": "Failed",
    "the question is refused": "Failed",
    "the money is not answered": "Failed",
    "the question is not answered": "Failed",
    "cancelled": "Cancelling",
    "the kill switch": "Cancelling",
    "revoked, block": "Failed",
    "revoked, cancel": "Cancelling",
}


def end(house: House, how: str, run_id: UUID, worker: Hand, works: dict[str, OfferedAttempt]) -> None:
    by_kind = {
        ("money" if v.step_id is None else "proposal" if v.attempt_id else "question"): v
        for v in house.pending(run_id)
    }
    what, _, verdict = how.removeprefix("the ").partition(" is ")
    if how == "a step fails":
        worker.fail(works["x"], "permanent")
    elif how == "a step was cancelled":
        worker.report(works["x"], "Cancelled", "cancellation")
    elif how == "too long a list":
        worker.report(works["x"], output={"todo": list(range(101))})
    elif how == "an effect nobody authorized":
        worker.report(works["x"], output=1, receipts=[effect(None)])
    elif verdict == "refused":
        house.decide(by_kind[what].id, "reject", reason="no")
    elif verdict == "not answered":
        house._owner(
            "UPDATE approvals_approvalrequest SET expires_at = requested_at + interval '1 us' WHERE id = %s",
            [by_kind[what].id],
            unpinned=True,
        )
        expire_approval(house.system, approval_id=by_kind[what].id, version=by_kind[what].version)
    elif how == "cancelled":
        cancel_run(house.world.operator, run_id=run_id, reason="stop")
    elif how == "the kill switch":
        kill_project(house.world.workspace_admin, project_id=house.world.project, reason="it goes wild")
        cancel_killed_run(house.system, run_id=run_id)
    else:
        in_flight = how.rpartition(" ")[2]
        revoke_release(house.world.operator, release_id=house.release, in_flight=in_flight, reason="it leaks")
        follow_withdrawal(house.system, run_id=run_id)


@pytest.mark.parametrize("how", sorted(END))
def test_a_run_that_ends_asks_for_nothing_more(house: House, how: str) -> None:
    """Money, a proposal and a question are Pending at once; what is decided about one ends the others."""
    run_id, worker, works = begun(house, "all")
    worker.report(works["a"], output=1)
    worker.ask(works["g"])
    worker.report(works["c"], output=1, receipts=[costing("6")])
    assert kinds(house, run_id) == ["money", "proposal", "question"]
    before = {view.id for view in house.pending(run_id)}
    end(house, how, run_id, worker, works)
    closed = {view.id for view in house.approvals(run_id) if view.state in ("Rejected", "Expired")}
    assert len(closed) == (" is " in how)
    assert_ended(house, run_id, END[how], before - closed)


def test_a_run_that_waits_does_not_pass_its_deadline(house: House) -> None:
    run_id, worker, works = begun(house, "all")
    worker.ask(works["g"])
    house.pass_deadline(run_id)
    LeaseExpiryReconciler().run_once(house.tenant)
    assert (house.state(run_id), kinds(house, run_id)) == ("WaitingForApproval", ["proposal"])
