"""How the nodes of a workflow stand: one step each, or as many as a node fanned out into."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.engine import Node, node_of, nodes
from runs.models import Step
from runs.states import StepState

NO_STEP = "Waiting"
"""What is said of a node that is no step yet."""
_FIRST = (StepState.FAILED, StepState.CANCELLED, StepState.RUNNING, StepState.DISPATCHED, StepState.PENDING)
"""Of many instances, the state that says most about their node."""


@dataclass(frozen=True, slots=True)
class NodeProgress:
    """A node and its steps; `state` is what the node as a whole has come to."""

    node: Node
    state: str
    steps: tuple[Step, ...]

    @property
    def instances(self) -> tuple[Step, ...]:
        """The steps of a node that has fanned out; none for any other."""
        return tuple(step for step in self.steps if node_of(step.node_key)[1] is not None)

    @property
    def done(self) -> int:
        return sum(step.state == StepState.SUCCEEDED for step in self.steps)


def progress_of_nodes(workflow: Mapping[str, Any], steps: Iterable[Step]) -> list[NodeProgress]:
    """Every node in the definition's order."""
    steps_by_node: dict[str, list[Step]] = {}
    for step in steps:
        steps_by_node.setdefault(step.node, []).append(step)
    return [
        NodeProgress(n, _state(steps_by_node.get(n.key, [])), tuple(steps_by_node.get(n.key, ())))
        for n in nodes(workflow)
    ]


def _state(steps: Sequence[Step]) -> str:
    states = {str(step.state) for step in steps}
    if len(states) == 1:
        return states.pop()
    begun = StepState.RUNNING in states or StepState.SUCCEEDED in states
    named = next((str(state) for state in _FIRST if state in states), NO_STEP)
    return str(StepState.RUNNING) if begun and named in ("Dispatched", "Pending") else named
