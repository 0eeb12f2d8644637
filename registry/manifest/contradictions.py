"""Whether several schemas can ever accept one value together, as far as that can be seen without trying.

Only what is certain counts: keywords that are not looked at (`not`, `if`, patterns) can make a contradiction
that is not found, never one that is not there.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from registry.manifest.faults import pointer, short
from registry.manifest.input_schemas import MOST_JUDGEMENTS, REFERENCES, CannotJudge, fits

DEEPEST = 12
MOST_STEPS = 2_000
EVERY_TYPE = frozenset({"null", "boolean", "object", "array", "number", "string"})
NOT_BY_ITSELF = ("$ref", "allOf", "unevaluatedProperties", "unevaluatedItems")
"""What has been unfolded already, or says something only together with what is taken out beside it."""
BOUNDS = (
    ("number", ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")),
    ("string", ("minLength",), ("maxLength",)),
    ("array", ("minItems",), ("maxItems",)),
    ("object", ("minProperties",), ("maxProperties",)),
)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Name a place where no value fits, as a JSON Pointer within the value, and the reason."""

    place: str
    why: str


class _Undecided(Exception):
    """It would take too long to tell."""


def contradiction(*schemas: Mapping[str, Any]) -> Contradiction | None:
    """Return why nothing fits all of these schemas (each checked already); None where something might."""
    results = contradictions(schemas[0], [schemas[1:]])
    return results[0] if results else None


def contradictions(
    schema: Mapping[str, Any], others: Iterable[Sequence[Mapping[str, Any]]]
) -> list[Contradiction]:
    """Return why nothing fits a schema together with the first of some others, with the second, and so on.

    Empty as soon as something might fit with one of them, or where it would take too long to tell: all are
    looked at within one budget, of some hundred milliseconds.
    """
    search, results = _Search(), []
    for other in others:
        try:
            why = search.of([(given, given) for given in (*other, schema)], "")
        except (_Undecided, CannotJudge):
            return []
        if why is None:
            return []
        results.append(why)
    return results


Part = tuple[Mapping[str, Any], Any]
"""The schema that a reference is looked up in, and the part of it that is meant."""


class _Search:
    def __init__(self) -> None:
        self._left = MOST_STEPS
        self._judgements = MOST_JUDGEMENTS

    def of(self, parts: Sequence[Part], place: str) -> Contradiction | None:
        self._step(place.count("/"))
        flat = [one for root, part in parts for one in self._flat(root, part, 0)]
        words = [part for _, part in flat if isinstance(part, Mapping)]
        if len(words) < len(flat):
            return Contradiction(place, "nothing is allowed there")
        types = frozenset.intersection(EVERY_TYPE, *(_types(part) for part in words))
        if not types:
            return Contradiction(place, f"it would have to be {_format_values(words, 'type')} at once")
        return (
            self._named(words, place)
            or self._bounds(words, types, place)
            or (self._members(flat, place) if types == {"object"} else None)
            or self._choices(flat, place)
        )

    def _step(self, depth: int) -> None:
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            raise _Undecided

    def _flat(self, root: Mapping[str, Any], part: Any, depth: int) -> Iterator[Part]:
        """Yield a schema with what it refers to and its `allOf`; of a boolean one only False matters."""
        self._step(depth)
        if part is True:
            return
        yield root, part
        if not isinstance(part, Mapping):
            return
        if isinstance(part.get("$ref"), str):
            yield from self._flat(root, _looked_up(root, part["$ref"]), depth + 1)
        for inner in part.get("allOf", ()):
            yield from self._flat(root, inner, depth + 1)

    def _named(self, words: Sequence[Mapping[str, Any]], place: str) -> Contradiction | None:
        """Try each value of a schema that names all values that it takes."""
        lists = [[part["const"]] if "const" in part else part["enum"] for part in words if _lists(part)]
        if not lists:
            return None
        judges = [part for part in words if not any(f'"{word}"' in json.dumps(part) for word in REFERENCES)]
        for value in min(lists, key=len):
            self._step(0)
            if all(self._fits(part, value) for part in judges):
                return None
        return Contradiction(place, f"none of {short(min(lists, key=len))} is allowed")

    def _fits(self, part: Mapping[str, Any], value: Any) -> bool:
        taken, self._judgements = fits(part, value, self._judgements)
        return taken

    def _bounds(
        self, words: Sequence[Mapping[str, Any]], types: frozenset[str], place: str
    ) -> Contradiction | None:
        for kind, lows, highs in BOUNDS:
            least = max(((part[w], w) for part in words for w in lows if w in part), default=None)
            most = min(((part[w], w) for part in words for w in highs if w in part), default=None)
            if types != {kind} or least is None or most is None:
                continue
            strict = least[1] == "exclusiveMinimum" or most[1] == "exclusiveMaximum"
            if least[0] > most[0] or (strict and least[0] == most[0]):
                return Contradiction(
                    place, f"{least[1]} {short(least[0])} and {most[1]} {short(most[0])} exclude each other"
                )
        return None

    def _members(self, flat: Sequence[Part], place: str) -> Contradiction | None:
        """Check that what has to be there could be."""
        needed = sorted({name for _, part in flat for name in part.get("required", ())})
        for name in needed:
            about = [(root, part) for root, whole in flat if (part := _member(whole, name)) is not True]
            here = place + pointer(name)
            if any(part is False for _, part in about):
                return Contradiction(here, "it is required, and no such member is allowed")
            fault = self.of(about, here)
            if fault is not None:
                return fault
        least = max((part.get("minProperties", 0) for _, part in flat), default=0)
        closed = [set(part.get("properties", ())) for _, part in flat if _closed(part)]
        if closed and len(set.intersection(*closed)) < least:
            return Contradiction(place, f"it needs {least} members, and fewer are allowed")
        return None

    def _choices(self, flat: Sequence[Part], place: str) -> Contradiction | None:
        """Try each way of an `anyOf` or `oneOf`, with everything else."""
        for at, (root, part) in enumerate(flat):
            for word in ("anyOf", "oneOf"):
                if word not in part:
                    continue
                rest = [*flat[:at], *flat[at + 1 :]]
                bare = {key: value for key, value in part.items() if key not in (word, *NOT_BY_ITSELF)}
                faults = [self.of([*rest, (root, bare), (root, way)], place) for way in part[word]]
                if faults and all(faults):
                    return faults[0]
        return None


def _types(part: Mapping[str, Any]) -> frozenset[str]:
    named = part.get("type", list(EVERY_TYPE))
    names = {named} if isinstance(named, str) else set(named)
    return frozenset("number" if name == "integer" else name for name in names)


def _format_values(words: Sequence[Mapping[str, Any]], word: str) -> str:
    return " and ".join(dict.fromkeys(short(part[word]) for part in words if word in part))


def _lists(part: Mapping[str, Any]) -> bool:
    return "const" in part or "enum" in part


def _closed(part: Mapping[str, Any]) -> bool:
    return part.get("additionalProperties") is False


def _member(whole: Mapping[str, Any], name: str) -> Any:
    """Return what a schema asks of a member of that name."""
    if name in whole.get("properties", {}):
        return whole["properties"][name]
    return whole.get("additionalProperties", True)


def _looked_up(root: Mapping[str, Any], reference: str) -> Any:
    """Return the part that a reference names by a path; what is named otherwise says nothing here."""
    if reference != "#" and not reference.startswith("#/"):
        return True
    value: Any = root
    for step in reference[2:].split("/") if len(reference) > 2 else ():
        key = step.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, ValueError, IndexError, TypeError):
            return True
    return value
