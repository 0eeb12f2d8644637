"""A stranger's schema of an input: refused where it is written, and judged within bounds where it is used."""

import json
import time
from typing import Any

import pytest

from registry.errors import ManifestRefused
from registry.manifest.definitions import validated
from registry.manifest.input_schemas import DEEPEST, input_faults
from tests.registry.support import manifest


def definition(**schema: Any) -> dict[str, Any]:
    first = manifest()["workflows"][0]
    return manifest(workflows=[{**first, "inputSchema": {"type": "object", **schema}}])


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


REFUSED = {
    "a reference to nothing": ({"$ref": "#/nothing"}, "/$ref"),
    "an anchor that is nowhere": ({"properties": {"a": {"$ref": "#b"}}}, "/properties/a/$ref"),
    "a dynamic reference to nothing": ({"$dynamicRef": "#b"}, "/$dynamicRef"),
    "a foreign reference": ({"$ref": "https://example.com/"}, "/$ref"),
    "a name of its own": ({"$id": "https://example.com/"}, "/$id"),
    "no pattern": ({"properties": {"a": {"pattern": "["}}}, "/properties/a/pattern"),
    "a pattern that looks ahead": ({"properties": {"a": {"pattern": "(?=a)b"}}}, "/properties/a/pattern"),
    "a long pattern": ({"properties": {"a": {"pattern": "a" * 2000}}}, "/properties/a/pattern"),
    "a large pattern": ({"properties": {"a": {"pattern": "(((a{99}){99}){99})"}}}, "/properties/a/pattern"),
    "patterns of names": ({"patternProperties": {"^(a+)+$": {}}}, "/patternProperties"),
    "a deep nest": (nested(100), "/properties/a" * (DEEPEST // 2) + "/properties"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_what_could_not_be_judged(name: str) -> None:
    schema, place = REFUSED[name]
    with pytest.raises(ManifestRefused) as refused:
        validated(json.dumps(definition(**schema)).encode())
    assert [fault.pointer for fault in refused.value.errors] == [f"/workflows/0/inputSchema{place}"]


TWICE = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i - 1}"}] * 2} for i in range(1, 40)}
HOSTILE: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "a loop": ({"$ref": "#"}, {}, False),
    "what doubles itself": ({"$ref": "#/$defs/d39", "$defs": {"d0": {}, **TWICE}}, {}, False),
    "what doubles itself unseen": (
        {"unevaluatedProperties": False, "$ref": "#/$defs/d39", "$defs": {"d0": {}, **TWICE}},
        {"a": 1},
        False,
    ),
    "a pattern that goes back": ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 60 + "!"}, False),
    "a text that fits it": ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 60}, True),
    "a text with a line after it": ({"properties": {"a": {"pattern": "^a$"}}}, {"a": "a\n"}, False),
    "many to be different": (
        {"properties": {"a": {"uniqueItems": True}}}, {"a": [{"x": i, "y": [i]} for i in range(9000)]}, True,
    ),
    "two that are not": ({"properties": {"a": {"uniqueItems": True}}}, {"a": [{"x": 1}, {"x": 1.0}]}, False),
    "one and true": ({"properties": {"a": {"uniqueItems": True}}}, {"a": [1, True]}, True),
    "a long list against many": (
        {"properties": {"a": {"items": {"enum": [f"x{i}" for i in range(9000)]}}}},
        {"a": ["y"] * 9000},
        False,
    ),
    "a number beyond all": ({"properties": {"a": {"multipleOf": 1.5}}}, {"a": 10**400}, False),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_judges_any_input_soon_and_with_an_answer(name: str) -> None:
    schema, value, fits = HOSTILE[name]
    workflow = validated(json.dumps(definition(**schema)).encode())["workflows"][0]
    began = time.process_time()
    faults = input_faults(workflow, value)
    assert time.process_time() - began < 3
    assert (faults == []) is fits
    assert all(fault.pointer.startswith("/input") for fault in faults)
