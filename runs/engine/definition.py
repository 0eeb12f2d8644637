"""A workflow's definition as the engine reads it. It was checked when its release was submitted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from factory.kernel.expressions import Expression, parse

MOST_INSTANCES = 100
"""A list may be so long at the most that a node fans out over it."""
AGENT, HUMAN = "Agent", "Human"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the definition, with its place in it.

    `ordinal` is its step's, or that of the first of its instances: a node that fans out takes the places of
    as many as it may have, so that every step of a run has a place that is known from the definition alone.
    """

    key: str
    ordinal: int
    kind: str
    agent_id: str
    skill_id: str
    side_effect_class: str
    depends_on: tuple[str, ...]
    question: str = ""
    when: str = ""
    for_each: str = ""
    max_attempts: int | None = None
    timeout_minutes: int | None = None
    correction_limit: int = 0

    @property
    def ordinals(self) -> range:
        """The places that its steps may have."""
        return range(self.ordinal, self.ordinal + (MOST_INSTANCES if self.for_each else 1))

    @property
    def reads(self) -> tuple[str, ...]:
        """The predecessors whose outputs decide whether, and how often, it runs."""
        expressions = [parse(text) for text in (self.when, self.for_each) if text]
        return tuple(dict.fromkeys(step for each in expressions for step in each.steps))

    @property
    def condition(self) -> Expression | None:
        return parse(self.when) if self.when else None

    @property
    def fan_out(self) -> Expression | None:
        return parse(self.for_each) if self.for_each else None


def nodes(definition: Mapping[str, Any]) -> tuple[Node, ...]:
    """The nodes of a definition, numbered in its own order."""
    found, ordinal = [], 1
    for node in definition["nodes"]:
        found.append(_node(node, ordinal))
        ordinal += MOST_INSTANCES if "forEach" in node else 1
    return tuple(found)


def _node(node: Mapping[str, Any], ordinal: int) -> Node:
    return Node(
        key=node["key"],
        ordinal=ordinal,
        kind=HUMAN if node.get("kind") == "human" else AGENT,
        agent_id=node.get("agentId", ""),
        skill_id=node.get("skillId") or "",
        side_effect_class=node["sideEffectClass"],
        depends_on=tuple(node.get("dependsOn", ())),
        question=node.get("question", ""),
        when=node.get("when", ""),
        for_each=node.get("forEach", ""),
        max_attempts=node.get("maxAttempts"),
        timeout_minutes=node.get("timeoutMinutes"),
        correction_limit=node.get("correctionLimit", 0),
    )


def in_order(every: Iterable[Node]) -> list[Node]:
    """Each node after all that it depends on; else in the definition's order."""
    waiting = {node.key: node for node in every}
    followers: dict[str, list[str]] = {key: [] for key in waiting}
    missing = {key: len(node.depends_on) for key, node in waiting.items()}
    for key, node in waiting.items():
        for needed in node.depends_on:
            followers[needed].append(key)
    ready = [key for key, count in missing.items() if not count]
    for key in ready:  # grows while it is read
        for follower in followers[key]:
            missing[follower] -= 1
            if not missing[follower]:
                ready.append(follower)
    return [waiting[key] for key in ready]


def step_key(node: Node, index: int | None) -> str:
    """The key of a node's step, or of one of its instances."""
    return node.key if index is None else f"{node.key}[{index}]"


def node_of(key: str) -> tuple[str, int | None]:
    """The node and the index behind a step's key."""
    name, bracket, rest = key.partition("[")
    return name, int(rest.removesuffix("]")) if bracket else None
