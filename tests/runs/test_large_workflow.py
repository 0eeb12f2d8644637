"""Two hundred nodes, one of which fans out a hundredfold: an outcome asks as little as in a small one."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.support.queries import within_budget
from tests.support.running import House
from tests.support.workflows import MANIFEST, node, workflow

BRANCHES = 98


def two_hundred() -> dict[str, Any]:
    """root → (many, a hundredfold | 98 branches of two nodes each) → join → end."""
    first = [node(f"a{i}", "root") for i in range(BRANCHES)]
    second = [node(f"b{i}", f"a{i}") for i in range(BRANCHES)]
    ahead = [f"b{i}" for i in range(BRANCHES)]
    many = node("many", "root", forEach="steps.root.list")
    return workflow(
        "large", node("root"), many, *first, *second, node("join", "many", *ahead), node("end", "join")
    )


@pytest.mark.slow
def test_two_hundred_nodes_with_a_hundredfold_fan_out_are_carried_to_their_end(house: House) -> None:
    made = MANIFEST | {"version": "2.0.0", "workflows": [*MANIFEST["workflows"], two_hundred()]}
    assert len(two_hundred()["nodes"]) == 200
    house.publish(made, commit="b" * 40)
    run_id = house.run("large")
    worker = house.hand(slots=400)
    root = worker.take()
    with within_budget("runs.outcome.large"):
        worker.report(root, output={"list": list(range(100))})
    assert len(house.steps(run_id)) == 1 + 100 + BRANCHES
    asked, joined = [], None
    while works := worker.poll():
        for work in works:
            worker.acquire(work)
            if work.snapshot["stepKey"] == "join":
                joined = work.input["predecessors"]["many"]
            with CaptureQueriesContext(connection) as seen:
                worker.report(work, output=work.input.get("item", work.snapshot["stepKey"]))
            asked.append(len(seen.captured_queries))
    run = house.row(run_id)
    assert (run.state, run.output) == ("Completed", "end")
    assert joined == list(range(100))
    assert len(house.steps(run_id)) == 1 + 100 + 2 * BRANCHES + 2
    assert max(asked) - min(asked) <= 12, "What an outcome asks grows with the workflow."
