"""The schema of a workflow's input, written by strangers: checked once, and then judged within bounds.

JSON Schema has loops, multiplies itself by references, and holds regular expressions; the library follows
all of it without an end. Here every judgement has a budget, and patterns are matched by RE2, whose time
grows with the text alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import re2
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from factory.kernel.errors import FieldError
from factory.kernel.hashing import canonical
from registry.manifest.faults import format_faults, pointer, short

MOST_JUDGEMENTS = 50_000
"""Keywords that are judged for one input: some hundred milliseconds."""
DEEPEST = 40
MOST_FAULTS = 50
LONGEST_PATTERN = 1_000
REFERENCES = ("$ref", "$dynamicRef")

_left: ContextVar[int] = ContextVar("judgements_left")


class _TooMuch(Exception):
    """The budget of a judgement is used up."""


class CannotJudge(Exception):
    """Refuse to judge whether a value fits: it takes too long, or goes too far."""


def schema_faults(schema: Mapping[str, Any], base: str) -> list[FieldError]:
    """Return the faults of a JSON Schema of an object that is written in a manifest."""
    if schema.get("type") != "object":
        return [FieldError(f"{base}/type", "The input of a workflow is an object.")]
    faults = list(_forbidden_faults(schema, base, 0))
    if faults:
        return faults[:MOST_FAULTS]
    try:
        Draft202012Validator.check_schema(schema)
        root = Registry().with_resource("", DRAFT202012.create_resource(schema))
        return list(_references(root.resolver(), schema, base))[:MOST_FAULTS]
    except SchemaError as fault:
        return [FieldError(base + pointer(*fault.absolute_path), short(fault.message, 300))]
    except (RecursionError, ArithmeticError):
        return [FieldError(base, "The schema cannot be checked: it or a number of it goes too far.")]


def input_faults(workflow: Mapping[str, Any], value: Any, *, whose: str = "workflow") -> list[FieldError]:
    """Return what the input schema of a workflow, or of who else is named, says against an input.

    Pointers start at `/input`.
    """
    token = _left.set(MOST_JUDGEMENTS)
    try:
        errors = _Bounded(workflow["inputSchema"]).iter_errors(value)
        faults = [
            FieldError("/input" + f.pointer, f.detail) for error in errors for f in format_faults(error)
        ]
    except (_TooMuch, RecursionError):
        return [FieldError("/input", f"The {whose}'s input schema takes too long to judge this input.")]
    except (ArithmeticError, Unresolvable, re2.error) as fault:
        return [FieldError("/input", f"The {whose}'s input schema cannot judge this input: {fault}"[:300])]
    finally:
        _left.reset(token)
    return sorted(faults, key=lambda fault: fault.pointer)[:MOST_FAULTS]


def fits(schema: Mapping[str, Any], value: Any, most: int) -> tuple[bool, int]:
    """Return whether a schema takes a value, and what is left of `most` judgements. Raises `CannotJudge`."""
    token = _left.set(most)
    try:
        taken = next(_Bounded(schema).iter_errors(value), None) is None
        return taken, _left.get()
    except (_TooMuch, RecursionError, ArithmeticError, Unresolvable, re2.error) as fault:
        raise CannotJudge from fault
    finally:
        _left.reset(token)


def _forbidden_faults(value: Any, base: str, depth: int) -> Iterator[FieldError]:
    """Find what no schema may hold anywhere: too deep a nest, foreign references, other patterns."""
    if depth > DEEPEST:
        yield FieldError(base, "The schema is nested too deeply.")
        return
    for key, inner in _inside(value):
        place = base + pointer(key)
        if isinstance(inner, str):
            yield from _text_faults(key, inner, place)
        elif key == "patternProperties":
            yield FieldError(place, "Write additionalProperties, and propertyNames with a pattern, instead.")
        else:
            yield from _forbidden_faults(inner, place, depth + 1)


def _inside(value: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _text_faults(key: str | int, text: str, place: str) -> Iterator[FieldError]:
    if key == "$id" or (key in REFERENCES and not text.startswith("#")):
        yield FieldError(place, "Only references inside the schema are allowed.")
    elif key == "pattern":
        yield from _pattern_faults(text, place)


def _pattern_faults(text: str, place: str) -> Iterator[FieldError]:
    try:
        _pattern(text)
    except re2.error as fault:
        words = fault.args[0].decode() if fault.args and isinstance(fault.args[0], bytes) else str(fault)
        yield FieldError(place, f"Patterns are those of RE2, without looking around: {words}"[:300])


@lru_cache(maxsize=1024)
def _pattern(text: str) -> Any:
    if len(text) > LONGEST_PATTERN:
        raise re2.error(f"it has more than {LONGEST_PATTERN} characters.")
    options = re2.Options()
    options.log_errors = False
    return re2.compile(text, options)


def _references(resolver: Any, value: Any, base: str) -> Iterator[FieldError]:
    """Find references to nothing."""
    for key, inner in _inside(value):
        if key in REFERENCES and isinstance(inner, str):
            try:
                resolver.lookup(inner)
            except Unresolvable:
                yield FieldError(base + pointer(key), "The reference leads to nothing.")
        else:
            yield from _references(resolver, inner, base + pointer(key))


Errors = Iterator[ValidationError]


def _spend(judgements: int) -> None:
    left = _left.get() - judgements
    if left < 0:
        raise _TooMuch
    _left.set(left)


def _counted(judge: Any) -> Any:
    """Make a keyword cost one judgement, and one for each thing that it lists."""

    def judged(validator: Any, keyword: Any, instance: Any, schema: Any) -> Errors:
        _spend(1 + (len(keyword) if isinstance(keyword, list | dict) else 0))
        yield from judge(validator, keyword, instance, schema) or ()

    return judged


def _pattern_judged(validator: Any, pattern: str, instance: Any, schema: Any) -> Errors:
    if isinstance(instance, str) and not _pattern(pattern).search(instance):
        yield ValidationError(f"{short(instance)!r} does not match {pattern!r}")


def _unique_judged(validator: Any, wanted: bool, instance: Any, schema: Any) -> Errors:
    """Compare canonical forms, which are equal for equal values; the library compares each with each."""
    if wanted and isinstance(instance, list) and len({canonical(item) for item in instance}) < len(instance):
        yield ValidationError("The elements are not all different.")


_OURS = {"pattern": _pattern_judged, "uniqueItems": _unique_judged}
_Bounded = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {word: _counted(judge) for word, judge in {**Draft202012Validator.VALIDATORS, **_OURS}.items()},
)
