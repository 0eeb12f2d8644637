"""YAML that people write and that is hashed as JSON: read so that it can mean one thing only."""

from collections.abc import Hashable
from typing import Any, NoReturn

import yaml

_JSON_TAGS = ("null", "bool", "int", "float", "str", "seq", "map")


class Loader(yaml.SafeLoader):
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


Loader.yaml_constructors = {
    tag: make
    for tag, make in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.removeprefix("tag:yaml.org,2002:") in _JSON_TAGS
}
Loader.yaml_implicit_resolvers = {
    first: [(tag, expression) for tag, expression in rules if not tag.endswith((":timestamp", ":merge"))]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _stop(where: Any, problem: str) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=where.start_mark)


def load(text: str) -> Any:
    """The document as JSON values. Raises `yaml.YAMLError`, which knows the line of the fault."""
    return yaml.load(text, Loader=Loader)


def place(fault: yaml.MarkedYAMLError) -> str:
    """Return where the fault is and what it is, in words."""
    mark = fault.problem_mark
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"{where}: {fault.problem}"
