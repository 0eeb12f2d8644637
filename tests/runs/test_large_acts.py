"""What a manifest may describe can be done: no act is refused, or cut off, because of how much it moves."""

from typing import Any

import pytest
from django.db import connection

from factory.evidence.auditor import audit_all
from factory.kernel import chain, writing
from runs.commands import cancel_run
from runs.reconcilers import LeaseExpiryReconciler
from tests.support.api import Api
from tests.support.evidence import audits
from tests.support.receipts import effect
from tests.support.running import House
from tests.support.workflows import MANIFEST, node, workflow

pytestmark = pytest.mark.slow
NODES, FANNED = 198, 100


def wide(nodes: int = NODES) -> dict[str, Any]:
    """root → many nodes, each of them a hundredfold → end: at 198 the most that a manifest may say."""
    many = [node(f"m{i}", "root", forEach="steps.root.list") for i in range(nodes)]
    return workflow("wide", node("root"), *many, node("end", *(each["key"] for each in many)))


def fanned_out(house: House, nodes: int = NODES) -> Any:
    """A run whose first outcome has just made all of its steps."""
    house.publish(
        MANIFEST | {"version": "4.0.0", "workflows": [*MANIFEST["workflows"], wide(nodes)]}, "b" * 40
    )
    run_id, hand = house.run("wide"), house.hand("wide")
    hand.report(hand.take(), output={"list": list(range(FANNED))})
    return run_id


def causes(house: House, action: str) -> dict[str, int]:
    """What the audit log says that the newest such act has moved."""
    return dict(audits(house.system, action)[-1].detail["causes"])


def test_the_largest_fan_out_is_taken_and_stopped(house: House) -> None:
    run_id = fanned_out(house)
    made = NODES * FANNED
    assert len(house.steps(run_id)) == made + 1
    told = causes(house, "ReportAttemptOutcome")
    assert told["step:StepReady"] == made
    assert cancel_run(house.world.requester, run_id=run_id, reason="stop") == "Cancelled"
    assert set(house.step_states(run_id).values()) == {"Succeeded", "Cancelled"}
    assert audit_all(["A1", "A3", "A3b", "A4", "A6", "A6b", "C1", "C2"]) == []


def test_the_largest_fan_out_fails_in_one_act(house: House) -> None:
    run_id = fanned_out(house, 80)
    hand = house.hand("failing")
    work = next(iter(hand.poll()))
    hand.acquire(work)
    hand.report(work, "Failed", "permanent", reason="no")
    assert house.state(run_id) == "Failed"
    assert audit_all(["A1", "A3", "A6", "C1", "C2"]) == []


def test_no_statement_is_about_more_than_some_rows(house: House) -> None:
    seen: list[int] = []

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().startswith(("WITH j AS", 'INSERT INTO "runs_step"', 'UPDATE "runs_step" AS t')):
            seen.append(max(len(str(each)) for each in params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count):
        run_id = fanned_out(house, 30)
        cancel_run(house.world.requester, run_id=run_id, reason="stop")
    assert len(seen) > 3 * 30 * FANNED / writing.MOST_AT_ONCE
    assert max(seen) < 2_000 * max(chain.MOST_AT_ONCE, writing.MOST_AT_ONCE)
    assert house.state(run_id) == "Cancelled"
    assert audit_all(["A1", "A3", "A6", "C1", "C2"]) == []


def test_a_thousand_effects_that_come_too_late_are_noted(house: House) -> None:
    house.run("gated")
    hand = house.hand()
    work = hand.take()
    house.let_lapse(work.lease_id)
    LeaseExpiryReconciler().run_once(house.tenant)
    late = [effect(None) | {"receiptId": f"{n:04d}" + "x" * 240} for n in range(600)]
    hand.receipts(work, *late)
    [note] = audits(house.system, "LateEffect")
    assert note.detail["receipts"]["count"] == 600
    assert len(note.detail["receipts"]["first"]) == 20


def test_a_body_with_a_fault_every_few_bytes_gets_a_short_answer(house: House) -> None:
    body = house.payload() | {f"m{n}": 1 for n in range(20_000)}
    answer = Api.as_(house.world.requester).post("/factory/runs", body, Idempotency_Key="k")
    errors = answer.json()["errors"]
    assert answer.status_code == 400
    assert len(errors) == 101
    assert errors[-1] == {"pointer": "", "detail": "And 19,900 more faults."}
