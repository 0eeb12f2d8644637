"""What a schema asks of an input, in words: for who writes one by hand."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from factory.console.show import seen

MOST = 30
"""So many fields are named; the schema itself stands behind them."""
KINDS = {
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
    "object": "an object",
    "null": "null",
}

PLAIN = {
    "$comment", "$defs", "$id", "$schema", "additionalProperties", "default", "deprecated", "description",
    "examples", "properties", "readOnly", "required", "title", "type", "writeOnly",
}  # fmt: skip
"""What a schema may say without requiring more than it names: with any other word, it may."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose schema it is, what it requires by name, whether that is all that it could require, what it takes
    besides, and the schema."""

    whose: str
    required: str
    is_all: bool
    optional: str
    schema: Mapping[str, Any]


def wanted(whose: str, schema: Mapping[str, Any]) -> Wanted:
    """The fields of a schema's object; what it says by other means is read in the schema."""
    told = schema.get("properties")
    fields: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    named = schema.get("required")
    required = [str(name) for name in named] if isinstance(named, list) else []
    optional = [name for name in fields if name not in required]
    return Wanted(
        whose,
        ", ".join(_fields(required, fields)),
        _is_plain(schema),
        ", ".join(_fields(optional, fields)),
        schema,
    )


def _is_plain(schema: Mapping[str, Any]) -> bool:
    """Tell whether any object that has the required fields could do, as far as fields go."""
    told = schema.get("type", "object")
    return schema.keys() <= PLAIN and "object" in (told if isinstance(told, list) else [told])


def _fields(names: list[str], fields: Mapping[str, Any]) -> Iterator[str]:
    for name in names[:MOST]:
        kind = _kind(fields.get(name))
        yield f"{seen(name)} ({kind})" if kind else seen(name)
    if len(names) > MOST:
        yield f"and {len(names) - MOST} more"


def _kind(schema: Any) -> str:
    """Return what a value may be, as far as its type says."""
    told = schema.get("type") if isinstance(schema, Mapping) else None
    kinds = told if isinstance(told, list) else [told]
    return " or ".join(KINDS[kind] for kind in kinds if isinstance(kind, str) and kind in KINDS)
