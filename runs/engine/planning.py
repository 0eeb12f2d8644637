"""plan(): the whole engine.

A node becomes a step once everything that it depends on is done: succeeded, or skipped. It is skipped
itself if its condition is false, or if all that it depends on was skipped. A node that fans out becomes one
step for each element of its list, all at once. A run is completed when every node is done, and failed as
soon as one has ended otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from factory.kernel.expressions import NotJudged
from runs.engine.definition import MOST_INSTANCES, Node, in_order, node_of, nodes, step_key

SUCCEEDED, FAILED, CANCELLED, SKIPPED = "Succeeded", "Failed", "Cancelled", "Skipped"
VALIDATION = "validation"
CONDITION_FALSE, ALL_SKIPPED, NOTHING_TO_DO = "ConditionFalse", "PredecessorsSkipped", "NothingToFanOut"


@dataclass(frozen=True, slots=True)
class StepFact:
    """Hold what the engine needs to know of a step that exists."""

    key: str
    state: str
    output: Any = None
    failure_class: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step to be made: a node, or one instance of a node that fans out."""

    node: Node
    index: int | None = None

    @property
    def key(self) -> str:
        return step_key(self.node, self.index)

    @property
    def ordinal(self) -> int:
        return self.node.ordinal + (self.index or 0)


@dataclass(frozen=True, slots=True)
class Settled:
    """A node that is done without any work: skipped, or fanned out over an empty list."""

    node: Node
    state: str
    cause: str


@dataclass(frozen=True, slots=True)
class Ready:
    """These steps can begin; none, while others are still at work."""

    due: tuple[PlannedStep, ...]
    settled: tuple[Settled, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanCompleted:
    """Every node is done; the run's output is that of `key`, null if that was skipped."""

    key: str
    output: Any
    settled: tuple[Settled, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """A node ended otherwise, or cannot begin, so that the workflow cannot be completed any more."""

    failure_class: str
    reason: str
    key: str


Plan = Ready | PlanCompleted | Failed


class _Fault(Exception):
    """A node whose condition or list cannot be judged."""


@dataclass(slots=True)
class _State:
    """Hold what is known while the nodes are gone through in order."""

    input: Any
    facts: dict[str, dict[int | None, StepFact]]
    done: dict[str, Any] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    due: list[PlannedStep] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)

    def data(self, node: Node) -> dict[str, Any]:
        """Return what expressions of a node may read."""
        return {"input": self.input, "steps": {key: self.done[key] for key in node.depends_on}}


def plan(definition: Mapping[str, Any], input: Any, steps: Sequence[StepFact]) -> Plan:
    """Return what follows from the steps as they are, whatever their order.

    The outputs of `needed_outputs` have to be there; no other is looked at.
    """
    ended = _ended(steps)
    if ended is not None:
        return ended
    every = nodes(definition)
    state = _State(input, _by_node(steps))
    for node in in_order(every):
        try:
            _look_at(state, node)
        except (_Fault, NotJudged) as fault:
            return Failed(VALIDATION, f"{node.key}: {fault}", node.key)
    if len(state.done) == len(every):
        output = definition["output"]
        return PlanCompleted(output, state.done[output], tuple(state.settled))
    return Ready(tuple(state.due), tuple(state.settled))


def needed_outputs(definition: Mapping[str, Any], keys: Sequence[str]) -> frozenset[str]:
    """The nodes whose outputs the next plan may have to look at, when these steps exist: a run's outputs
    together may be large, and most of them decide nothing any more."""
    there = {name for name, index in map(node_of, keys) if index is None}
    ahead = [node for node in nodes(definition) if node.key not in there]
    return frozenset({definition["output"], *(key for node in ahead for key in node.reads)})


def elements(node: Node, input: Any, outputs: Mapping[str, Any]) -> list[Any]:
    """The list that a node fans out over, in the outputs of its predecessors. Raises `NotJudged`."""
    items = node.fan_out.value({"input": input, "steps": outputs}) if node.fan_out else None
    if not isinstance(items, list):
        raise NotJudged(f"forEach found no list but {_kind(items)}.")
    return items


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "a truth", str: "a text", dict: "an object"}
    return names.get(type(value), "a number")


def _ended(steps: Sequence[StepFact]) -> Failed | None:
    for step in sorted(steps, key=lambda step: step.key):
        if step.state == FAILED:
            return Failed(step.failure_class, step.reason, step.key)
        if step.state == CANCELLED:
            return Failed("cancellation", f"The step {step.key} was cancelled.", step.key)
    return None


def _by_node(steps: Sequence[StepFact]) -> dict[str, dict[int | None, StepFact]]:
    facts_by_node: dict[str, dict[int | None, StepFact]] = {}
    for step in steps:
        name, index = node_of(step.key)
        facts_by_node.setdefault(name, {})[index] = step
    return facts_by_node


def _look_at(state: _State, node: Node) -> None:
    """Find out whether a node is done, under way, due, or not yet."""
    facts = state.facts.get(node.key, {})
    own = facts.get(None)
    if own is not None:
        if own.state in (SUCCEEDED, SKIPPED):
            _is_done(state, node, own.output, skipped=own.state == SKIPPED)
        return
    if any(key not in state.done for key in node.depends_on):
        return
    if not facts and (cause := _why_skipped(state, node)):
        state.settled.append(Settled(node, SKIPPED, cause))
        _is_done(state, node, None, skipped=True)
    elif node.for_each:
        _fan_out(state, node, facts)
    else:
        state.due.append(PlannedStep(node))


def _is_done(state: _State, node: Node, output: Any, *, skipped: bool) -> None:
    state.done[node.key] = None if skipped else output
    if skipped:
        state.skipped.add(node.key)


def _why_skipped(state: _State, node: Node) -> str:
    """Of whatever has nothing before it, nothing was skipped."""
    if node.depends_on and state.skipped.issuperset(node.depends_on):
        return ALL_SKIPPED
    condition = node.condition
    return CONDITION_FALSE if condition and not condition.holds(state.data(node)) else ""


def _fan_out(state: _State, node: Node, facts: Mapping[int | None, StepFact]) -> None:
    over_skipped = state.skipped.intersection(node.reads)
    items = [] if over_skipped else elements(node, state.input, state.data(node)["steps"])
    if len(items) > MOST_INSTANCES:
        raise _Fault(f"forEach found {len(items)} elements; at most {MOST_INSTANCES} are allowed.")
    if not items:
        state.settled.append(Settled(node, SUCCEEDED, NOTHING_TO_DO))
        _is_done(state, node, [], skipped=False)
        return
    state.due += [PlannedStep(node, index) for index in range(len(items)) if index not in facts]
    ended = [facts[index] for index in range(len(items)) if index in facts]
    if len(ended) == len(items) and all(fact.state == SUCCEEDED for fact in ended):
        _is_done(state, node, [fact.output for fact in ended], skipped=False)
