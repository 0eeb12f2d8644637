"""Schemas that nothing fits together are found; what might fit is never called impossible."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.manifest.contradictions import contradiction, contradictions
from registry.manifest.input_schemas import input_faults

A = {
    "type": "object",
    "required": ["a"],
    "properties": {"a": {"type": "string"}},
    "additionalProperties": False,
}
IMPOSSIBLE: dict[str, tuple[dict[str, Any], str]] = {
    "a member that is not allowed": ({"required": ["b"]}, "/b"),
    "another type": ({"properties": {"a": {"type": ["number", "null"]}}}, "/a"),
    "a value of another type": ({"properties": {"a": {"const": 3}}}, "/a"),
    "no value of a list": ({"properties": {"a": {"enum": [1, None]}}}, "/a"),
    "a value that a pattern refuses": ({"properties": {"a": {"const": "x", "pattern": "y"}}}, "/a"),
    "bounds that cross": ({"properties": {"a": {"minLength": 3, "allOf": [{"maxLength": 2}]}}}, "/a"),
    "nothing": ({"properties": {"a": False}}, "/a"),
    "nothing, by a reference": ({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": False}}, "/a"),
    "more members than may be": ({"minProperties": 2}, ""),
    "every way of a choice": (
        {"anyOf": [{"required": ["b"]}, {"properties": {"a": {"type": "null"}}}]},
        "/b",
    ),
}
LONG: dict[str, Any] = {"anyOf": [{"anyOf": [{"type": "null"}] * 300}] * 300 + [{"type": "string"}]}
POSSIBLE: dict[str, dict[str, Any]] = {
    "the same": A,
    "a member that may be absent": {"properties": {"b": False, "c": {"type": "null", "const": 1}}},
    "one way of a choice": {"anyOf": [{"required": ["b"]}, {"required": ["a"]}]},
    "what a choice evaluates": {
        "properties": {"a": {"const": "x"}},
        "anyOf": [{"properties": {"a": {"const": "x"}}}],
        "unevaluatedProperties": False,
    },
    "what only a way of a choice names": {
        "const": {"a": "x"},
        "anyOf": [{"properties": {"a": {"type": "string"}}}],
        "unevaluatedProperties": False,
    },
    "a value that takes too long to judge": {"const": {"a": "x"}, "properties": {"a": LONG}},
    "a loop": {"$ref": "#"},
    "a member like itself": {"required": ["a"], "properties": {"a": {"$ref": "#/properties/a"}}},
    "integers among numbers": {"properties": {"b": {"type": "number", "allOf": [{"type": "integer"}]}}},
    "bounds that touch": {"properties": {"a": {"minLength": 2, "maxLength": 2}}},
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_finds_what_nothing_fits_and_where(name: str) -> None:
    schema, place = IMPOSSIBLE[name]
    found = contradiction(A, {"type": "object", **schema})
    assert found is not None
    assert found.place == place


@pytest.mark.parametrize("name", POSSIBLE)
def test_leaves_alone_what_something_might_fit(name: str) -> None:
    assert contradiction(A, {"type": "object", **POSSIBLE[name]}) is None


def test_many_releases_are_looked_at_within_one_budget() -> None:
    """Each value of a list is judged by each schema: alone that is a lot, with twenty releases too much."""
    values = {
        "type": "object",
        "properties": {"a": {"enum": [str(n) for n in range(300)]}},
        "required": ["a"],
    }
    release = {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}] * 60}}, "required": ["a"]}
    assert len(contradictions(values, [[release]])) == 1
    assert contradictions(values, [[release]] * 20) == [], "It is not known, so it is not refused"


_values = st.one_of(st.none(), st.booleans(), st.integers(-2, 3), st.sampled_from(["", "x", "yy"]))
_leaves = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", "null", ["string", "null"]]),
        "enum": st.lists(_values, min_size=1, max_size=2),
        "minimum": st.integers(-2, 3),
        "exclusiveMaximum": st.integers(-2, 3),
        "minLength": st.integers(0, 3),
        "maxLength": st.integers(0, 2),
    },
)
_objects = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("ab"), _leaves)},
    optional={
        "required": st.lists(st.sampled_from("ab"), unique=True),
        "additionalProperties": st.booleans(),
        "minProperties": st.integers(0, 2),
    },
)


@settings(max_examples=60, deadline=None)
@given(_objects, _objects, st.dictionaries(st.sampled_from("abc"), _values))
def test_what_fits_both_is_never_called_impossible(
    one: dict[str, Any], two: dict[str, Any], value: dict[str, Any]
) -> None:
    if not any(input_faults({"inputSchema": schema}, value) for schema in (one, two)):
        assert contradiction(one, two) is None
