"""Conditions and paths that strangers write: a small part of JMESPath, checked before it is ever used.

An expression comes from a manifest, so it is not trusted. What is kept of the language is what picks from
its data and compares: every result is a part of the data, a truth or a number, so that one evaluation
takes time in proportion to the expression and the data. What could grow (multi-selections, flattening,
text made from data, lists written into the expression) is refused, and so is what is too long or too deep.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from factory.kernel.errors import InvalidInput
from factory.kernel.hashing import MOST_WHOLE, canonical

MOST_CHARACTERS = 500
DEEPEST = 24
FUNCTIONS: Mapping[str, int] = {
    "abs": 1, "ceil": 1, "contains": 2, "ends_with": 2, "floor": 1, "keys": 1, "length": 1, "max": 1,
    "min": 1, "not_null": 1, "starts_with": 2, "sum": 1, "type": 1, "values": 1,
}  # fmt: skip
"""With how many values each is called. `not_null` takes any number more."""
STEPS, INPUT = "steps", "input"

_PLAIN = frozenset({"index_expression", "comparator", "and_expression", "or_expression", "not_expression"})
_PROJECTIONS = frozenset({"projection", "value_projection", "filter_projection", "pipe"})
_PARTS = frozenset({"field", "index_expression", "index", "subexpression", *_PROJECTIONS, "current"})
"""What may stand before a dot. The library reads `!a.b` as `(!a).b`, which nobody means."""

Node = Mapping[str, Any]


class ExpressionFault(ValueError):
    """The expression is not in the language; the message says what is wrong and what to write."""


class NotJudged(ValueError):
    """The expression could not be evaluated on this data, such as the length of a number."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression; `steps` are the names that it reads below `steps`, in their order."""

    text: str
    steps: tuple[str, ...]

    def value(self, data: Any) -> Any:
        """Return what it finds in the data; null where there is nothing. Raises `NotJudged`."""
        try:
            found = jmespath.compile(self.text).search(data)
        except (ValueError, TypeError, ArithmeticError, LookupError, RecursionError) as fault:
            raise NotJudged(str(fault)[:300]) from fault
        _check_numbers(found)
        return found

    def holds(self, data: Any) -> bool:
        """Tell whether it is true: anything but null, false, and the empty text, list or object."""
        found = self.value(data)
        return found is not None and found is not False and found not in ("", [], {})


@lru_cache(maxsize=1024)
def parse(text: str) -> Expression:
    """Check an expression. Raises `ExpressionFault`."""
    if len(text) > MOST_CHARACTERS:
        raise ExpressionFault(f"An expression has at most {MOST_CHARACTERS} characters.")
    try:
        tree: Node = jmespath.compile(text).parsed
    except (JMESPathError, ValueError) as fault:
        raise ExpressionFault(f"It is not readable: {' '.join(str(fault).split())[:200]}") from fault
    except RecursionError as fault:
        raise ExpressionFault("It is nested too deeply.") from fault
    read = list(_references(tree, rooted=True, depth=0))
    return Expression(text, tuple(dict.fromkeys(name for name in read if name)))


def _references(node: Node, *, rooted: bool, depth: int) -> Iterator[str]:
    """Check the node and all below it; the names of the steps that it reads, and "" for the input.

    Within a projection or behind a pipe a path begins at the element, not at the root.
    """
    if depth > DEEPEST:
        raise ExpressionFault("It is nested too deeply.")
    kind, inner = node["type"], depth + 1
    if kind in ("field", "subexpression", "current"):
        yield from _path(node, rooted, inner)
    elif kind == "index_expression":
        yield from _references(node["children"][0], rooted=rooted, depth=inner)
    elif kind in _PROJECTIONS:
        first, *others = node["children"]
        yield from _references(first, rooted=rooted, depth=inner)
        for child in others:
            yield from _references(child, rooted=False, depth=inner)
    elif kind in _PLAIN or kind == "function_expression":
        _check_function(node)
        for child in node["children"]:
            yield from _references(child, rooted=rooted, depth=inner)
    elif kind == "literal":
        _check_literal(node["value"])
    elif rooted or kind not in ("index", "identity", "slice"):
        raise ExpressionFault(f"This part of JMESPath is not used here: {kind.replace('_', ' ')}.")


def _path(node: Node, rooted: bool, depth: int) -> Iterator[str]:
    first, *others = node["children"] or (node,)
    if others and first["type"] not in _PARTS:
        raise ExpressionFault("Put what a word such as ! or == is about in brackets: !(input.x).")
    if first["type"] != "field" and first["type"] != "current":
        yield from _references(first, rooted=rooted, depth=depth)
    elif rooted:
        yield _root(first, others)
    for child in others:
        if child["type"] != "field":
            yield from _references(child, rooted=False, depth=depth)


def _root(first: Node, others: list[Node]) -> str:
    """The step whose output a path from the root reads, or "" when it reads the run's input."""
    name = first.get("value")
    if name == INPUT and first["type"] == "field":
        return ""
    if name != STEPS or first["type"] != "field":
        raise ExpressionFault(f"A path begins with {INPUT} or with {STEPS}.<key>, and not with {name}.")
    step = _leading(others[0]) if others else None
    if step is None:
        raise ExpressionFault(f"Say which step is meant: {STEPS}.<key>, with quotes around a key with a '-'.")
    return step


def _leading(node: Node) -> str | None:
    """The name that a part of a path begins with, such as a of a[0] or of a[*].b."""
    while node["type"] in ("index_expression", "projection", "filter_projection", "value_projection"):
        node = node["children"][0]
    return str(node["value"]) if node["type"] == "field" else None


def _check_function(node: Node) -> None:
    if node["type"] != "function_expression":
        return
    name, count = node["value"], len(node["children"])
    if name not in FUNCTIONS:
        known = ", ".join(sorted(FUNCTIONS))
        raise ExpressionFault(f"There is no function {name}; there is {known}.")
    if count < FUNCTIONS[name] or (count > FUNCTIONS[name] and name != "not_null"):
        raise ExpressionFault(f"{name} is called with {FUNCTIONS[name]} values, and not with {count}.")


def _check_literal(value: Any) -> None:
    if isinstance(value, float) and not isfinite(value):
        raise ExpressionFault("A number is a finite one.")
    if isinstance(value, list | dict):
        raise ExpressionFault("A value that is compared with is a text, a number, true, false or null.")
    try:
        canonical(value)
    except InvalidInput as fault:
        raise ExpressionFault(f"A value that is compared with is no JSON: {fault.detail}") from fault


def _check_numbers(found: Any) -> None:
    """A sum or a rounding may leave the numbers that JSON has: nobody could be handed such an element."""
    ahead = [found]
    while ahead:
        value = ahead.pop()
        if isinstance(value, dict):
            ahead.extend(value.values())
        elif isinstance(value, list):
            ahead.extend(value)
        elif isinstance(value, int | float) and not abs(value) <= MOST_WHOLE:
            raise NotJudged("A number is out of range.")
