"""How many statements the hot paths send: an index is no help to a path that asks too often."""

from collections import Counter
from typing import Any
from uuid import uuid4

import pytest

from factory.kernel import reloading
from runs.commands import cancel_run, start_run
from runs.rest.submissions import submit
from tests.support.api import Api
from tests.support.evidence import outbox, violations
from tests.support.queries import within_budget
from tests.support.receipts import receipt
from tests.support.running import House
from tests.support.workflows import MANIFEST, human, node, workflow

RUNS = "/factory/runs"


@pytest.fixture(autouse=True)
def settings_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a moment has passed since they were last read is not what is counted here."""
    monkeypatch.setattr(reloading, "SECONDS_REMEMBERED", 3600.0)


def test_the_commands_of_a_run_stay_within_their_budgets(house: House) -> None:
    ctx, worker = house.world.requester, house.hand()
    with within_budget("runs.submit"):
        body, _ = submit(ctx, payload=house.payload(), key=str(uuid4()))
    with within_budget("runs.start"):
        start_run(house.system, run_id=body["runId"])
    with within_budget("runs.poll"):
        [work] = worker.poll()
    with within_budget("runs.acquire"):
        worker.acquire(work)
    with within_budget("runs.renew"):
        worker.acquire(work)
    with within_budget("runs.outcome"):
        worker.report(work, output=1, receipts=[receipt()])
    with within_budget("runs.poll.idle"):
        assert worker.poll() == []


@pytest.mark.requirement("API-10")
def test_lists_cost_the_same_however_long_they_are(house: House) -> None:
    api, worker = Api.as_(house.world.requester), house.hand(slots=9)
    for _ in range(3):
        run_id = house.run("diamond")
    for work in worker.poll():
        worker.acquire(work)
    api.get(RUNS)  # keys and caches are warm
    paths = {
        "GET /runs": RUNS,
        "GET /runs/{id}": f"{RUNS}/{run_id}",
        "GET /runs/{id}/journal": f"{RUNS}/{run_id}/journal",
        "GET /runs/{id}/graph": f"{RUNS}/{run_id}/graph",
    }
    for name, path in paths.items():
        with within_budget(name):
            assert api.get(path).status_code == 200


def wide() -> dict[str, Any]:
    """root → two nodes a hundredfold each; first → twelve questions."""
    many = [node(key, "root", forEach="steps.root.list") for key in ("left", "right")]
    asked = [human(f"ask{i}", "first") for i in range(12)]
    end = node("end", "left", "right", *(question["key"] for question in asked))
    return workflow("wide", node("root"), node("first"), *many, *asked, end)


@pytest.mark.slow
def test_cancelling_two_hundred_open_steps_asks_as_little_as_cancelling_one(house: House) -> None:
    """Steps that wait, offers that nobody took, an attempt in somebody's hands, questions: all at once."""
    made = MANIFEST | {"version": "2.0.0", "workflows": [*MANIFEST["workflows"], wide()]}
    house.publish(made, commit="b" * 40)
    run_id = house.run("wide")
    worker = house.hand(slots=12)
    works = {work.snapshot["stepKey"]: work for work in worker.poll()}
    worker.acquire(works["root"])
    worker.report(works["root"], output={"list": list(range(100))})
    offers = worker.poll()
    worker.acquire(next(work for work in offers if work.snapshot["stepKey"] == "left[0]"))
    worker.acquire(works["first"])
    worker.report(works["first"])
    assert (len(house.pending(run_id)), len(house.steps(run_id))) == (12, 214)
    with within_budget("runs.cancel"):
        assert cancel_run(house.world.requester, run_id=run_id, reason="No longer wanted.") == "Cancelling"
    states = house.step_states(run_id)
    assert Counter(states.values()) == {"Succeeded": 2, "Running": 1, "Cancelled": 211}
    assert violations(house.tenant) == []


@pytest.mark.slow
def test_asking_a_hundred_questions_sends_as_little_as_asking_ten(house: House) -> None:
    """A budget counts statements: it is the same for a tenth of them, and for two kinds of gates."""
    few, many = questions("few", 10), questions("many", 100)
    made = MANIFEST | {"version": "2.0.0", "workflows": [*MANIFEST["workflows"], few, many]}
    house.publish(made, commit="b" * 40)
    worker = house.hand(slots=12)
    for kind, number in (("few", 10), ("many", 100)):
        run_id = house.run(kind)
        work = worker.take()
        with within_budget("runs.outcome, human steps"):
            worker.report(work, output={"seen": "all"})
        asked = house.pending(run_id)
        assert (len(asked), house.state(run_id)) == (number, "WaitingForApproval")
        assert {(view.quorum, view.approver_roles) for view in asked} >= {(2, ("WorkspaceAdmin",))}
        assert len([t for t, _ in outbox(house.system, run_id) if t.endswith("approval-requested")]) == number
    assert violations(house.tenant) == []


def questions(name: str, number: int) -> dict[str, Any]:
    """One step, and then so many questions at once, every other one for two WorkspaceAdmins."""
    narrow = {"gate": {"roles": ["WorkspaceAdmin"], "quorum": 2}}
    asked = [human(f"ask{i}", "first") | (narrow if i % 2 else {}) for i in range(number)]
    return workflow(name, node("first"), *asked, node("end", *(each["key"] for each in asked)))
