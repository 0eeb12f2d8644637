"""What a schema asks of an input is told in words, whatever strangers have written into it."""

from typing import Any

import pytest

from runs.admin.detail.inputs import MOST, wanted


@pytest.mark.parametrize(
    ("schema", "required", "optional"),
    [
        ({}, "", ""),
        ({"properties": {"depth": {"type": "integer"}}}, "", "depth (a whole number)"),
        ({"required": ["a"], "properties": {"a": {"type": ["string", "null"]}}}, "a (text or null)", ""),
        ({"required": ["a"], "properties": {"a": True}}, "a", ""),
        ({"required": ["a"]}, "a", ""),
        ({"required": ["a\u202e"], "properties": {"a": {"type": 7}}}, "a⟨U+202E⟩", "a"),
    ],
)
def test_names_what_is_required_and_what_may_be_given(
    schema: dict[str, Any], required: str, optional: str
) -> None:
    told = wanted("It", schema)
    assert (told.required, told.optional) == (required, optional)


@pytest.mark.parametrize(
    ("schema", "is_all"),
    [
        ({}, True),
        ({"type": "object", "additionalProperties": False, "properties": {}, "title": "An input"}, True),
        ({"type": ["object", "null"]}, True),
        ({"type": "array"}, False),
        ({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, False),
        ({"type": "object", "allOf": [{"required": ["a"]}]}, False),
        ({"type": "object", "$ref": "#/$defs/input"}, False),
        ({"type": "object", "minProperties": 1}, False),
        ({"type": "object", "if": {"required": []}, "then": {"required": ["a"]}}, False),
    ],
)
def test_says_that_nothing_else_is_required_only_of_what_cannot_require_it(
    schema: dict[str, Any], is_all: bool
) -> None:
    assert wanted("It", schema).is_all is is_all


def test_of_many_fields_it_names_some_and_says_how_many_there_are_besides() -> None:
    told = wanted("It", {"properties": {f"f{n}": {} for n in range(MOST + 2)}})
    assert told.optional.endswith(f"f{MOST - 1}, and 2 more")
