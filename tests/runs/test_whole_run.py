"""A run from its submission to its end."""

from uuid import UUID

import pytest
from django.db import connection

from factory.kernel.hashing import digest
from factory.kernel.tenancy import reading
from runs.models import Step
from tests.support.api import Api
from tests.support.evidence import journal, outbox
from tests.support.receipts import receipt
from tests.support.running import House
from usage.selectors import reservation_of, usage_of_run


@pytest.mark.requirement("RUN-05", "RUN-08", "RUN-16", "DSP-09")
def test_carries_a_run_to_completed(house: House) -> None:
    run_id = house.run("single")
    worker = house.hand()
    [work] = worker.poll()
    assert house.state(run_id) == "Running"
    assert house.step_states(run_id) == {"look": "Dispatched"}
    grant = worker.acquire(work)
    assert not grant.cancel_requested
    assert house.step_states(run_id) == {"look": "Running"}
    worker.receipts(work, receipt())
    told = worker.report(work, output={"found": 3})
    assert (told.outcome, house.state(run_id)) == ("Succeeded", "Completed")
    run = house.row(run_id)
    assert (run.output, run.output_hash) == ({"found": 3}, digest({"found": 3}))
    assert journal(house.system, run_id) == [
        ("None", "Accepted", "Submitted"),
        ("Accepted", "Running", "FirstAttemptDispatched"),
        ("Running", "Completed", "LastStepSucceeded"),
    ]
    with reading(house.system):
        reservation = reservation_of(run_id)
        assert reservation is not None
        assert reservation.state == "Settled"
        assert usage_of_run(run_id).records == 1
    topics = [topic.rsplit(".", 1)[-1] for topic, _ in outbox(house.system, run_id)]
    assert topics[0] == "run-accepted"
    assert topics[-3:] == ["run-state-changed", "run-completed", "workflow-run-completed"] or (
        "run-completed" in topics
    )


@pytest.mark.requirement("WFE-08")
def test_walks_a_diamond_in_order(house: House) -> None:
    run_id = house.run("diamond")
    worker = house.hand()
    first = worker.take()
    assert first.snapshot["stepKey"] == "a"
    worker.report(first, output="A")
    both = worker.poll()
    assert {w.snapshot["stepKey"] for w in both} == {"b", "c"}
    assert all(w.input["predecessors"] == {"a": "A"} for w in both)
    for work in both:
        worker.acquire(work)
        worker.report(work, output=work.snapshot["stepKey"].upper())
    last = worker.take()
    assert last.input["predecessors"] == {"b": "B", "c": "C"}
    worker.report(last, output="D")
    assert house.row(run_id).output == "D"
    assert isinstance(run_id, UUID)


@pytest.mark.requirement("STP-07")
def test_steps_are_numbered_begun_and_shown_in_the_order_of_the_definition(house: House) -> None:
    run_id = house.run("diamond")
    worker = house.hand(slots=1)
    begun = []
    for _ in range(4):
        work = worker.take()
        begun.append(work.snapshot["stepKey"])
        worker.report(work, output=1)
    assert begun == ["a", "b", "c", "d"]
    shown = Api.as_(house.world.requester).get(f"/factory/runs/{run_id}").json()["steps"]
    assert [(step["ordinal"], step["nodeKey"]) for step in shown] == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    with connection.cursor() as cursor:
        once = connection.introspection.get_constraints(cursor, Step._meta.db_table)["step_ordinal_once"]
    assert (once["unique"], once["columns"]) == (True, ["tenant_id", "run_id", "ordinal"])


@pytest.mark.requirement("RUN-11", "RUN-12", "DSP-11")
def test_parks_for_a_person_and_goes_on_with_the_decision(house: House) -> None:
    run_id = house.run("gated")
    worker, other = house.hand("w1", slots=1), house.hand("w2")
    work = worker.take()
    asked = worker.ask(work, park=True)
    assert (asked.effect, asked.opened, asked.parked) == ("require-approval", True, True)
    assert house.state(run_id) == "WaitingForApproval"
    assert house.attempt(work.attempt_id).state == "Parked"
    assert other.poll() == []
    assert asked.approval_id is not None
    house.decide(asked.approval_id)
    assert house.state(run_id) == "Running"
    [again] = other.poll()
    assert again.attempt_id == work.attempt_id
    assert again.fencing_token > work.fencing_token
    assert again.checkpoint == {"at": "proposal"}
    assert again.decision is not None
    assert again.decision.decision == "approve"
    other.acquire(again)
    taken = other.authorize(again, asked.approval_id)
    assert other.authorize(again, asked.approval_id).id == taken.id
    from tests.support.receipts import effect

    other.report(again, output={"commit": "c0ffee"}, receipts=[effect(asked.approval_id)])
    assert house.state(run_id) == "Completed"
