"""Faults of a manifest in the product's words, each at its place. Pure."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from jsonschema.exceptions import ValidationError

from factory.kernel.errors import FieldError


def pointer(*parts: str | int) -> str:
    """Return a JSON Pointer (RFC 6901) to a place."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def format_faults(error: ValidationError) -> Iterator[FieldError]:
    """Yield the faults of a schema error in the product's words, each at its place."""
    place = pointer(*error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
        for key in sorted(set(error.instance) - set(known)):
            yield FieldError(place + pointer(key), "This key is not known.")
    elif error.validator == "required" and isinstance(error.instance, dict):
        needed = [key for key in error.schema["required"] if key not in error.instance]  # type: ignore[index]
        key = next((key for key in needed if repr(key) in error.message), needed[0])
        yield FieldError(place + pointer(key), "This key is missing.")
    else:
        yield FieldError(place, short(error.message, 300))


def short(value: Any, limit: int = 80) -> str:
    """Return a value as text that fits into a sentence."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def repeated(base: str, values: Sequence[str], key: str) -> Iterator[FieldError]:
    """Yield a fault for each value that stood there before."""
    many = {value for value, count in Counter(values).items() if count > 1}
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in many and value in seen:
            yield FieldError(f"{base}/{index}/{key}", f"{value} is defined twice.")
        seen.add(value)
