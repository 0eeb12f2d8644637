"""A workflow's definition: its nodes, their conditions and the graph that they make. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from factory.kernel.errors import FieldError
from factory.kernel.expressions import ExpressionFault, parse
from registry.manifest.faults import repeated
from registry.manifest.input_schemas import schema_faults

CLASSES = ("read", "sandbox", "shared-write", "external", "production", "publication")
"""Side-effect classes of a step, weakest first."""
GATED = frozenset(CLASSES[2:])
AGENT, HUMAN = "agent", "human"
OF_AN_AGENT = ("skillId", "forEach", "maxAttempts", "timeoutMinutes", "correctionLimit")
"""What a human node has no use for: a person is not tried again, and has until the request expires."""


def rank(side_effect_class: str) -> int:
    """Return how strong a class is: 0 for read."""
    return CLASSES.index(side_effect_class)


def workflow_faults(
    workflow: Mapping[str, Any], agents: Mapping[str, Any], skills: Mapping[str, Any], base: str = ""
) -> list[FieldError]:
    """Return the faults of one workflow against the agents and skills of its release."""
    nodes = workflow["nodes"]
    faults = [*repeated(f"{base}/nodes", [node["key"] for node in nodes], "key")]
    faults += schema_faults(workflow["inputSchema"], f"{base}/inputSchema")
    for index, node in enumerate(nodes):
        place = f"{base}/nodes/{index}"
        faults += _kind_faults(node, place) or _node_faults(node, agents, skills, place)
        faults += _expression_faults(node, place)
    faults += _edge_faults(nodes, base)
    if workflow["output"] not in {node["key"] for node in nodes}:
        faults.append(FieldError(f"{base}/output", f"There is no node {workflow['output']}."))
    return faults or _graph_faults(nodes, workflow["output"], base)


def _kind_faults(node: Mapping[str, Any], base: str) -> list[FieldError]:
    """Refuse an agent's members for a person, and a person's for an agent."""
    human = node["kind"] == HUMAN
    needed, foreign = ("question", ("agentId", *OF_AN_AGENT)) if human else ("agentId", ("question",))
    pointers = [f"{base}/{key}" for key in foreign if key in node]
    faults = [FieldError(place, f"A node of kind {node['kind']} cannot have this.") for place in pointers]
    if needed not in node:
        faults.append(FieldError(f"{base}/{needed}", f"A node of kind {node['kind']} needs this."))
    if "gate" in node and node["sideEffectClass"] not in GATED:
        words = f"Nobody is asked about a {node['sideEffectClass']} node: there is nothing to narrow."
        faults.append(FieldError(f"{base}/gate", words))
    if human and node["sideEffectClass"] not in GATED:
        words = f"A person is always asked: one of {', '.join(CLASSES[2:])}."
        faults.append(FieldError(f"{base}/sideEffectClass", words))
    return faults


def _expression_faults(node: Mapping[str, Any], base: str) -> Iterator[FieldError]:
    """Refuse conditions and fan-outs outside the language, or that read more than predecessors and input."""
    for key in ("when", "forEach"):
        if key not in node:
            continue
        try:
            read = parse(node[key]).steps
        except ExpressionFault as fault:
            yield FieldError(f"{base}/{key}", str(fault))
            continue
        strangers = [step for step in read if step not in node.get("dependsOn", ())]
        if strangers:
            words = f"{strangers[0][:63]} is not among dependsOn: only what is done by then can be read."
            yield FieldError(f"{base}/{key}", words)
        elif key == "forEach" and not read:
            yield FieldError(f"{base}/{key}", "A fan-out is over a list in a predecessor's output.")


def _node_faults(
    node: Mapping[str, Any], agents: Mapping[str, Any], skills: Mapping[str, Any], base: str
) -> Iterator[FieldError]:
    if node["kind"] == HUMAN:
        return
    agent, name = agents.get(node["agentId"]), node.get("skillId")
    if agent is None:
        yield FieldError(f"{base}/agentId", f"There is no agent {node['agentId']}.")
    elif name is not None and name not in agent.get("skills", []):
        yield FieldError(f"{base}/skillId", f"The agent {node['agentId']} has no skill {name}.")
    skill = skills.get(name) if name else None
    if skill is not None and rank(skill["sideEffectClass"]) > rank(node["sideEffectClass"]):
        yield FieldError(
            f"{base}/sideEffectClass",
            f"The skill {name} is {skill['sideEffectClass']}, above the node's {node['sideEffectClass']}.",
        )
    tools = {tool["sideEffectClass"] for tool in (skill or {}).get("tools", [])}
    if node["sideEffectClass"] in GATED and node["sideEffectClass"] not in tools:
        wanted = node["sideEffectClass"]
        yield FieldError(f"{base}/skillId", f"A {wanted} node needs a skill that has a tool of that class.")


def _edge_faults(nodes: Sequence[Mapping[str, Any]], base: str) -> Iterator[FieldError]:
    keys = {node["key"] for node in nodes}
    for index, node in enumerate(nodes):
        for place, needed in enumerate(node.get("dependsOn", [])):
            where = f"{base}/nodes/{index}/dependsOn/{place}"
            if needed not in keys:
                yield FieldError(where, f"There is no node {needed}.")
            elif needed == node["key"]:
                yield FieldError(where, "A node cannot depend on itself.")


def _graph_faults(nodes: Sequence[Mapping[str, Any]], output: str, base: str) -> list[FieldError]:
    needs = {node["key"]: tuple(node.get("dependsOn", ())) for node in nodes}
    numbers = {node["key"]: index for index, node in enumerate(nodes)}
    circle = find_circle(needs)
    if circle:
        pointer, path = f"{base}/nodes/{numbers[circle[0]]}/dependsOn", " → ".join(circle)
        return [FieldError(pointer, f"The nodes form a circle: {path}.")]
    used = _needed_for(output, needs)
    return [
        FieldError(f"{base}/nodes/{index}", f"The node {key} leads to no output.")
        for key, index in numbers.items()
        if key not in used
    ]


def find_circle(needs: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return the keys of one circle, each of which needs the next, the first again at its end; or nothing."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as fault:
        return tuple(reversed(fault.args[1]))
    return ()


def _needed_for(output: str, needs: Mapping[str, Iterable[str]]) -> set[str]:
    needed, ahead = set(), [output]
    while ahead:
        key = ahead.pop()
        if key not in needed:
            needed.add(key)
            ahead.extend(needs[key])
    return needed
