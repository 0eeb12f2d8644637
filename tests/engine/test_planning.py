"""What holds of every workflow, whatever its shape and however its steps go."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.engine import Completed, Failed, Ready, StepFact, plan


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    """A workflow without circles: each node may depend on earlier ones; the last one is the output."""
    count = draw(st.integers(1, 8))
    keys = [f"n{i}" for i in range(count)]
    nodes = []
    for index, key in enumerate(keys):
        needs = draw(st.lists(st.sampled_from(keys[:index]), unique=True)) if index else []
        nodes.append({"key": key, "agentId": "a", "sideEffectClass": "read", "dependsOn": needs})
    return {"nodes": draw(st.permutations(nodes)), "output": keys[-1]}


def walk(definition: dict[str, Any], draw: st.DataObject, fail_at: str | None = None) -> Any:
    """Do what the plan says, ending steps in any order, until there is nothing more to do."""
    needs = {node["key"]: set(node["dependsOn"]) for node in definition["nodes"]}
    facts: dict[str, StepFact] = {}
    for _ in range(3 * len(needs) + 2):
        found = plan(definition, {}, list(facts.values()))
        if not isinstance(found, Ready):
            return found, facts
        for node in found.nodes:
            assert node.key not in facts, "A node ran twice."
            assert all(facts[n].state == "Succeeded" for n in needs[node.key]), "It ran before what it needs."
            facts[node.key] = StepFact(node.key, "Running")
        at_work = sorted(key for key, fact in facts.items() if fact.state == "Running")
        assert at_work, "Nothing is at work, nothing is ready, and it is not over."
        key = draw.draw(st.sampled_from(at_work))
        if key == fail_at:
            facts[key] = StepFact(key, "Failed", failure_class="permanent", reason="broke")
        else:
            facts[key] = StepFact(key, "Succeeded", output=key)
    raise AssertionError("It never ends.")


@given(definitions(), st.data())
@settings(max_examples=150, deadline=None)
@pytest.mark.requirement("WFE-08", "STP-04")
def test_runs_every_node_once_after_what_it_needs(definition: dict[str, Any], data: st.DataObject) -> None:
    found, facts = walk(definition, data)
    assert found == Completed(definition["output"], definition["output"])
    assert set(facts) == {node["key"] for node in definition["nodes"]}
    assert {fact.state for fact in facts.values()} == {"Succeeded"}


@given(definitions(), st.data())
@settings(max_examples=100, deadline=None)
@pytest.mark.requirement("RUN-17", "WFE-07")
def test_fails_as_soon_as_a_node_does(definition: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from([node["key"] for node in definition["nodes"]]))
    found, _ = walk(definition, data, fail_at=key)
    assert found == Failed("permanent", "broke", key)


@given(definitions(), st.data())
@settings(max_examples=100, deadline=None)
def test_is_completed_only_when_all_is_done(definition: dict[str, Any], data: st.DataObject) -> None:
    keys = [node["key"] for node in definition["nodes"]]
    open_one = data.draw(st.sampled_from(keys))
    facts = [StepFact(key, "Running" if key == open_one else "Succeeded", key) for key in keys]
    assert plan(definition, {}, facts) == Ready(())


def test_a_cancelled_step_fails_the_workflow() -> None:
    definition = {"nodes": [{"key": "a", "agentId": "a", "sideEffectClass": "read"}], "output": "a"}
    found = plan(definition, {}, [StepFact("a", "Cancelled")])
    assert isinstance(found, Failed)
    assert found.failure_class == "cancellation"
