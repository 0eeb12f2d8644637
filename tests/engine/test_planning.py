"""What holds of every workflow, whatever its shape, its conditions and the order in which its steps end."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.engine import Failed, PlanCompleted, Ready, StepFact, node_of, nodes, plan

INPUT = {"yes": True, "no": False}
Facts = dict[str, StepFact]


def node(key: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {
        "key": key,
        "kind": "agent",
        "agentId": "a",
        "sideEffectClass": "read",
        "dependsOn": [*needs],
        **more,
    }


def flow(*made: dict[str, Any], output: str | None = None) -> dict[str, Any]:
    return {"nodes": list(made), "output": output or made[-1]["key"]}


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    """A workflow without circles: each node may depend on earlier ones; the last one is the output.

    Every step's output is `{"list": [...], "go": …}`, of whatever it is told by `outputs`.
    """
    count = draw(st.integers(1, 8))
    keys = [f"n{i}" for i in range(count)]
    made = []
    for index, key in enumerate(keys):
        needs = draw(st.lists(st.sampled_from(keys[:index]), unique=True)) if index else []
        one = node(key, *needs)
        ahead = [f"steps.{need}.go" for need in needs]
        when = draw(st.sampled_from([None, None, "input.yes", "input.no", *ahead]))
        plain = [need for need in needs if not any("forEach" in n for n in made if n["key"] == need)]
        if when:
            one["when"] = when
        if plain and draw(st.booleans()):
            one["forEach"] = f"steps.{draw(st.sampled_from(plain))}.list"
        if draw(st.integers(0, 4)) == 0 and "forEach" not in one:
            one |= {"kind": "human", "question": "?"}
        made.append(one)
    return {"nodes": draw(st.permutations(made)), "output": keys[-1]}


@st.composite
def outputs(draw: st.DrawFn) -> dict[str, Any]:
    return {"list": list(range(draw(st.integers(0, 3)))), "go": draw(st.booleans())}


def walk(definition: dict[str, Any], draw: st.DataObject, fail_at: str | None = None) -> tuple[Any, Facts]:
    """Do what the plan says, ending steps in any order, until there is nothing more to do."""
    needs = {n["key"]: set(n["dependsOn"]) for n in definition["nodes"]}
    facts: Facts = {}
    for _ in range(60):
        found = plan(definition, INPUT, list(facts.values()))
        if isinstance(found, Failed):
            return found, facts
        done = _done(definition, facts)
        for settled in found.settled:
            assert settled.node.key not in facts, "A node was settled twice."
            output = [] if settled.state == "Succeeded" else None
            facts[settled.node.key] = StepFact(settled.node.key, settled.state, output)
            done |= {settled.node.key}
        if isinstance(found, PlanCompleted):
            return found, facts
        for due in found.due:
            assert due.key not in facts, "A node ran twice."
            assert needs[due.node.key] <= done, "It ran before what it needs."
            facts[due.key] = StepFact(due.key, "Running")
        at_work = sorted(key for key, fact in facts.items() if fact.state == "Running")
        if not at_work:
            assert found.settled, "Nothing is at work, nothing is ready, and it is not over."
            continue
        key = draw.draw(st.sampled_from(at_work))
        if node_of(key)[0] == fail_at:
            facts[key] = StepFact(key, "Failed", failure_class="permanent", reason="broke")
        else:
            facts[key] = StepFact(key, "Succeeded", output=draw.draw(outputs()))
    raise AssertionError("It never ends.")


def _done(definition: dict[str, Any], facts: Facts) -> set[str]:
    found = {}
    for key, fact in facts.items():
        found.setdefault(node_of(key)[0], []).append(fact.state in ("Succeeded", "Skipped"))
    return {key for key, states in found.items() if all(states)}


def joined(facts: Facts, key: str) -> Any:
    if key in facts:
        return facts[key].output
    own = {node_of(k)[1]: fact.output for k, fact in facts.items() if node_of(k)[0] == key}
    return [own[index] for index in sorted(own)]


def must_be_skipped(definition: dict[str, Any], facts: Facts, key: str) -> bool:
    """The rule of the house, told a second time: its condition is false, or all before it was skipped."""
    one = next(n for n in definition["nodes"] if n["key"] == key)
    needs = one["dependsOn"]
    if needs and all(facts.get(n, StepFact(n, "")).state == "Skipped" for n in needs):
        return True
    match one.get("when", "input.yes").split("."):
        case ["input", word]:
            return not INPUT[word]
        case ["steps", step, "go"]:
            read = joined(facts, step)
            return not (isinstance(read, dict) and read["go"])
    raise AssertionError("The test writes no other conditions.")


@given(definitions(), st.data())
@settings(max_examples=120, deadline=None)
@pytest.mark.requirement("WFE-08", "STP-14")
def test_each_node_runs_once_after_what_it_needs_or_is_skipped_for_a_reason(
    definition: dict[str, Any], data: st.DataObject
) -> None:
    found, facts = walk(definition, data)
    assert isinstance(found, PlanCompleted)
    assert found.output == joined(facts, definition["output"])
    assert {node_of(key)[0] for key in facts} == {n["key"] for n in definition["nodes"]}
    for key in (n["key"] for n in definition["nodes"]):
        was_skipped = key in facts and facts[key].state == "Skipped"
        assert was_skipped == must_be_skipped(definition, facts, key), key
    ordinals = [
        n.ordinal + (node_of(k)[1] or 0) for k in facts for n in nodes(definition) if n.key == node_of(k)[0]
    ]
    assert len(set(ordinals)) == len(facts), "Two steps have the same place."


@given(definitions(), st.data())
@settings(max_examples=60, deadline=None)
@pytest.mark.requirement("RUN-17", "WFE-07")
def test_fails_as_soon_as_a_step_does(definition: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from([n["key"] for n in definition["nodes"]]))
    found, facts = walk(definition, data, fail_at=key)
    failed = [fact.key for fact in facts.values() if fact.state == "Failed"]
    assert found == Failed("permanent", "broke", failed[0]) if failed else isinstance(found, PlanCompleted)


@given(definitions(), st.data())
@settings(max_examples=80, deadline=None)
@pytest.mark.requirement("WFE-08")
def test_the_plan_is_the_same_whatever_the_order_and_never_takes_back(
    definition: dict[str, Any], data: st.DataObject
) -> None:
    _, facts = walk(definition, data)
    told = list(facts.values())
    count = data.draw(st.integers(0, len(told)))
    early = [StepFact(f.key, "Running") if i >= count else f for i, f in enumerate(told)]
    early = _without_followers(definition, early)
    found = plan(definition, INPUT, early)
    assert plan(definition, INPUT, data.draw(st.permutations(early))) == found
    for due in found.due if isinstance(found, Ready) else ():
        assert due.key in facts, "It was ready, and yet never ran."
    for settled in found.settled:
        assert facts[settled.node.key].state == settled.state


def _without_followers(definition: dict[str, Any], facts: list[StepFact]) -> list[StepFact]:
    """Only what can be there already: nothing whose predecessor is still at work; one is, at least."""
    left = {f.key: f for f in facts}
    if all(f.state != "Running" for f in facts):
        last = definition["output"]
        left = {k: f for k, f in left.items() if node_of(k)[0] != last}
    needs = {n["key"]: n["dependsOn"] for n in definition["nodes"]}
    while True:
        done = _done(definition, left)
        lost = [k for k in left if not done.issuperset(needs[node_of(k)[0]])]
        if not lost:
            return list(left.values())
        for key in lost:
            del left[key]


def test_a_cancelled_step_fails_the_workflow() -> None:
    found = plan(flow(node("a")), {}, [StepFact("a", "Cancelled")])
    assert isinstance(found, Failed)
    assert found.failure_class == "cancellation"


def over(items: list[Any], *facts: StepFact) -> Any:
    definition = flow(node("a"), node("b", "a", forEach="steps.a.list"), node("c", "b"))
    return plan(definition, {}, [StepFact("a", "Succeeded", {"list": items}), *facts])


def test_a_node_fans_out_over_a_list_and_joins_in_its_order() -> None:
    assert [due.key for due in over(["x", "y"]).due] == ["b[0]", "b[1]"]
    assert [due.key for due in over(["x", "y"], StepFact("b[1]", "Succeeded", 1)).due] == ["b[0]"]
    both = (StepFact("b[1]", "Succeeded", 1), StepFact("b[0]", "Succeeded", 0))
    assert [due.key for due in over(["x", "y"], *both).due] == ["c"]
    alone = flow(node("a"), node("b", "a", forEach="steps.a.list"))
    ended = plan(alone, {}, [StepFact("a", "Succeeded", {"list": ["x", "y"]}), *both])
    assert isinstance(ended, PlanCompleted)
    assert ended.output == [0, 1]


def test_an_empty_list_succeeds_and_one_that_is_too_long_or_none_fails() -> None:
    empty = over([])
    assert [(s.node.key, s.state) for s in empty.settled] == [("b", "Succeeded")]
    assert [due.key for due in empty.due] == ["c"]
    assert len(over([0] * 100).due) == 100
    for wrong in ([0] * 101, "text", None, {"a": 1}, 3, True):
        found = over(wrong)
        assert (found.failure_class, found.key) == ("validation", "b")
        assert found.reason.startswith("b: forEach found")


def test_a_fan_out_over_a_skipped_branch_has_nothing_to_do() -> None:
    definition = flow(
        node("a", when="input.no"), node("z"), node("b", "a", "z", forEach="steps.a.list"), node("c", "b")
    )
    found = plan(definition, INPUT, [StepFact("a", "Skipped"), StepFact("z", "Succeeded")])
    assert [(s.node.key, s.state) for s in found.settled] == [("b", "Succeeded")]


def test_everything_skipped_is_completed_with_nothing() -> None:
    definition = flow(node("a", when="input.no"), node("b", "a"), node("c", "b"))
    found = plan(definition, INPUT, [])
    assert isinstance(found, PlanCompleted)
    assert found.output is None
    assert [(s.node.key, s.cause) for s in found.settled] == [
        ("a", "ConditionFalse"),
        ("b", "PredecessorsSkipped"),
        ("c", "PredecessorsSkipped"),
    ]


def test_a_condition_that_cannot_be_judged_fails_the_node() -> None:
    found = plan(flow(node("a", when="length(input.yes) > `1`")), INPUT, [])
    assert (found.failure_class, found.key) == ("validation", "a")
