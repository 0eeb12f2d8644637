"""The manifest: read strictly, checked completely, every fault with its place. Pure: no database, no Git."""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError

from factory.errors import FieldError, InvalidInput
from factory.hashing import canonical
from registry.errors import ManifestRefused

CLASSES = ("read", "sandbox", "shared-write", "external", "production", "publication")
"""Side-effect classes of a step, weakest first."""
GATED = frozenset(CLASSES[2:])
MAX_MANIFEST_BYTES = 256 * 1024
MAX_FAULTS = 50

_JSON_TAGS = ("null", "bool", "int", "float", "str", "seq", "map")


class _Loader(yaml.SafeLoader):
    """YAML that is JSON in other clothes: no aliases (they make bombs), no double keys, no dates."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            _stop(self.peek_event(), "an alias is not allowed")  # type: ignore[no-untyped-call]
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None):
            _stop(event, "an anchor is not allowed")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:str":
                _stop(key, "a key has to be text; put it in quotes")
            if key.value in seen:
                _stop(key, f"the key {key.value!r} is written twice")
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_constructors = {
    tag: make
    for tag, make in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.removeprefix("tag:yaml.org,2002:") in _JSON_TAGS
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, expression) for tag, expression in rules if not tag.endswith((":timestamp", ":merge"))]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _stop(where: Any, problem: str) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=where.start_mark)


def parse(content: bytes) -> dict[str, Any]:
    """The manifest as JSON values. Raises ManifestRefused with the line of the fault."""
    if len(content) > MAX_MANIFEST_BYTES:
        raise ManifestRefused(f"The manifest is larger than {MAX_MANIFEST_BYTES // 1024} KiB.")
    try:
        value = yaml.load(content.decode("utf-8"), Loader=_Loader)
        canonical(value)
    except UnicodeDecodeError as fault:
        raise ManifestRefused("The manifest is not UTF-8 text.") from fault
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ManifestRefused(f"The manifest is not readable{place}: {fault.problem}.") from fault
    except (yaml.YAMLError, RecursionError, ValueError, InvalidInput) as fault:
        raise ManifestRefused(f"The manifest is not readable: {fault}") from fault
    if not isinstance(value, dict):
        raise ManifestRefused("The manifest has to be a mapping.")
    return value


@cache
def _validator() -> Draft202012Validator:
    schema = json.loads((Path(__file__).parent / "manifest_schema.json").read_text("utf-8"))
    return Draft202012Validator(schema)


def check(manifest: Mapping[str, Any]) -> list[FieldError]:
    """Every fault of a manifest. What its schema refuses is told first, alone: the rest would guess."""
    shape = [fault for error in _validator().iter_errors(manifest) for fault in _told(error)]
    if shape:
        return sorted(shape, key=lambda fault: fault.pointer)[:MAX_FAULTS]
    skills = {skill["skillId"]: skill for skill in manifest["skills"]}
    agents = {agent["agentId"]: agent for agent in manifest["agents"]}
    faults = [*_doubles(manifest), *_agent_faults(manifest, skills), *_skill_faults(manifest)]
    faults += _entry_fault("/evaluation", manifest["evaluation"])
    for index, workflow in enumerate(manifest["workflows"]):
        faults += workflow_faults(workflow, agents, skills, f"/workflows/{index}")
    return faults[:MAX_FAULTS]


def validated(content: bytes) -> dict[str, Any]:
    """Parse and check; raises ManifestRefused with all faults."""
    manifest = parse(content)
    faults = check(manifest)
    if faults:
        first = f"{faults[0].pointer or '/'}: {faults[0].detail}"
        raise ManifestRefused(f"The manifest has {len(faults)} fault(s), the first at {first}", errors=faults)
    return manifest


def pointer(*parts: str | int) -> str:
    """A JSON Pointer (RFC 6901) to a place."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def _told(error: ValidationError) -> Iterator[FieldError]:
    place = pointer(*error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
        for key in sorted(set(error.instance) - set(known)):
            yield FieldError(place + pointer(key), "This key is not known.")
    elif error.validator == "required" and isinstance(error.instance, dict):
        needed = [key for key in error.schema["required"] if key not in error.instance]  # type: ignore[index]
        key = next((key for key in needed if repr(key) in error.message), needed[0])
        yield FieldError(place + pointer(key), "This key is missing.")
    elif error.validator == "const" and place.endswith("/kind"):
        yield FieldError(place, f"The kind {_short(error.instance)} is not known; there is: agent.")
    else:
        yield FieldError(place, _short(error.message, 300))


def _short(value: Any, limit: int = 80) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _repeated(base: str, values: Sequence[str], key: str) -> Iterator[FieldError]:
    many = {value for value, count in Counter(values).items() if count > 1}
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in many and value in seen:
            yield FieldError(f"{base}/{index}/{key}", f"{value} is defined twice.")
        seen.add(value)


def _doubles(manifest: Mapping[str, Any]) -> Iterator[FieldError]:
    for group, key in (
        ("agents", "agentId"),
        ("skills", "skillId"),
        ("workflows", "workflowId"),
        ("modelProfiles", "modelProfileId"),
    ):
        yield from _repeated(f"/{group}", [item[key] for item in manifest[group]], key)
    names = [dependency.partition("@")[0] for dependency in manifest.get("dependencies", [])]
    for index, name in enumerate(names):
        if name == manifest["asset"]:
            yield FieldError(f"/dependencies/{index}", "A release cannot depend on its own asset.")
        elif name in names[:index]:
            yield FieldError(f"/dependencies/{index}", f"{name} is depended on twice.")


def _entry_fault(base: str, item: Mapping[str, Any]) -> Iterator[FieldError]:
    if "entry" in item and item["entry"] not in item["files"]:
        yield FieldError(f"{base}/entry", f"{item['entry']} is not among the files.")


def _agent_faults(manifest: Mapping[str, Any], skills: Mapping[str, Any]) -> Iterator[FieldError]:
    for index, agent in enumerate(manifest["agents"]):
        for place, skill in enumerate(agent.get("skills", [])):
            if skill not in skills:
                yield FieldError(f"/agents/{index}/skills/{place}", f"There is no skill {skill}.")


def _skill_faults(manifest: Mapping[str, Any]) -> Iterator[FieldError]:
    for index, skill in enumerate(manifest["skills"]):
        base = f"/skills/{index}"
        tools = skill.get("tools", [])
        yield from _entry_fault(base, skill)
        yield from _repeated(f"{base}/tools", [tool["name"] for tool in tools], "name")
        for place, tool in enumerate(tools):
            if rank(tool["sideEffectClass"]) > rank(skill["sideEffectClass"]):
                yield FieldError(
                    f"{base}/tools/{place}/sideEffectClass",
                    f"The tool is {tool['sideEffectClass']}, above its skill's {skill['sideEffectClass']}.",
                )


def rank(side_effect_class: str) -> int:
    """How strong a class is: 0 for read."""
    return CLASSES.index(side_effect_class)


def workflow_faults(
    workflow: Mapping[str, Any], agents: Mapping[str, Any], skills: Mapping[str, Any], base: str = ""
) -> list[FieldError]:
    """The faults of one workflow against the agents and skills of its release."""
    nodes = workflow["nodes"]
    faults = [*_repeated(f"{base}/nodes", [node["key"] for node in nodes], "key")]
    faults += _schema_faults(workflow["inputSchema"], f"{base}/inputSchema")
    for index, node in enumerate(nodes):
        faults += _node_faults(node, agents, skills, f"{base}/nodes/{index}")
    faults += _edge_faults(nodes, base)
    if workflow["output"] not in {node["key"] for node in nodes}:
        faults.append(FieldError(f"{base}/output", f"There is no node {workflow['output']}."))
    return faults or _graph_faults(nodes, workflow["output"], base)


def _node_faults(
    node: Mapping[str, Any], agents: Mapping[str, Any], skills: Mapping[str, Any], base: str
) -> Iterator[FieldError]:
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
    places = {node["key"]: index for index, node in enumerate(nodes)}
    circle = find_circle(needs)
    if circle:
        way = " → ".join((*circle, circle[0]))
        return [FieldError(f"{base}/nodes/{places[circle[0]]}/dependsOn", f"The nodes form a circle: {way}.")]
    used = _needed_for(output, needs)
    return [
        FieldError(f"{base}/nodes/{index}", f"The node {key} leads to no output.")
        for key, index in places.items()
        if key not in used
    ]


def find_circle(needs: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """The keys of one circle, or nothing. Takes away what depends on nothing until only circles are left."""
    left = {key: set(others) for key, others in needs.items()}
    while free := [key for key, others in left.items() if not others & left.keys()]:
        for key in free:
            del left[key]
    if not left:
        return ()
    way = [min(left)]
    while (following := min(left[way[-1]] & left.keys())) not in way:
        way.append(following)
    return tuple(way[way.index(following) :])


def _needed_for(output: str, needs: Mapping[str, Iterable[str]]) -> set[str]:
    found, ahead = set(), [output]
    while ahead:
        key = ahead.pop()
        if key not in found:
            found.add(key)
            ahead.extend(needs[key])
    return found


def _schema_faults(schema: Mapping[str, Any], base: str) -> list[FieldError]:
    if schema.get("type") != "object":
        return [FieldError(f"{base}/type", "The input of a workflow is an object.")]
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as fault:
        return [FieldError(base + pointer(*fault.absolute_path), _short(fault.message, 300))]
    return list(_foreign_references(schema, base))


def _foreign_references(value: Any, base: str) -> Iterator[FieldError]:
    """References that leave the schema: nothing is fetched while a submission is checked."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if key in ("$ref", "$dynamicRef", "$id", "$schema") and isinstance(inner, str):
            if key == "$id" or (key != "$schema" and not inner.startswith("#")):
                yield FieldError(base + pointer(key), "Only references inside the schema are allowed.")
        else:
            yield from _foreign_references(inner, base + pointer(key))


def input_faults(workflow: Mapping[str, Any], value: Any) -> list[FieldError]:
    """What a workflow's input schema says against an input; pointers start at `/input`."""
    errors = Draft202012Validator(workflow["inputSchema"]).iter_errors(value)
    faults = [
        FieldError("/input" + fault.pointer, fault.detail) for error in errors for fault in _told(error)
    ]
    return sorted(faults, key=lambda fault: fault.pointer)[:MAX_FAULTS]
