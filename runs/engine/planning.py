"""plan(): the whole engine.

A node becomes a step once everything that it depends on has succeeded; a run is completed when every
node has succeeded, and failed as soon as one has ended otherwise. The definition was checked when its
release was submitted (no cycles, no strangers, nothing unreachable), so that it needs no second look.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SUCCEEDED, FAILED, CANCELLED = "Succeeded", "Failed", "Cancelled"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the definition, with its place in it."""

    key: str
    ordinal: int
    agent_id: str
    skill_id: str
    side_effect_class: str
    depends_on: tuple[str, ...]
    max_attempts: int | None
    timeout_minutes: int | None


@dataclass(frozen=True, slots=True)
class StepFact:
    """What the engine needs to know of a step that exists."""

    key: str
    state: str
    output: Any = None
    failure_class: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Ready:
    """These nodes can begin; none, while others are still at work."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Completed:
    """Every node has succeeded; the run's output is that of `key`."""

    key: str
    output: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """A node ended otherwise, so that the workflow cannot be completed any more."""

    failure_class: str
    reason: str
    key: str


Plan = Ready | Completed | Failed


def nodes(definition: Mapping[str, Any]) -> tuple[Node, ...]:
    """The nodes of a definition, numbered in its own order."""
    return tuple(
        Node(
            key=node["key"],
            ordinal=ordinal,
            agent_id=node["agentId"],
            skill_id=node.get("skillId") or "",
            side_effect_class=node["sideEffectClass"],
            depends_on=tuple(node.get("dependsOn", ())),
            max_attempts=node.get("maxAttempts"),
            timeout_minutes=node.get("timeoutMinutes"),
        )
        for ordinal, node in enumerate(definition["nodes"], start=1)
    )


def plan(definition: Mapping[str, Any], input: Any, steps: Sequence[StepFact]) -> Plan:
    """What follows from the steps as they are. `input` decides nothing yet: no node has a condition."""
    known = {step.key: step for step in steps}
    for step in steps:
        if step.state == FAILED:
            return Failed(step.failure_class, step.reason, step.key)
        if step.state == CANCELLED:
            return Failed("cancellation", f"The step {step.key} was cancelled.", step.key)
    done = {step.key for step in steps if step.state == SUCCEEDED}
    every = nodes(definition)
    if all(node.key in done for node in every):
        key = definition["output"]
        return Completed(key, known[key].output)
    return Ready(tuple(n for n in every if n.key not in known and done.issuperset(n.depends_on)))
