"""Events: frozen facts with a topic, a version and a JSON Schema.

A field in snake_case goes over the wire in camelCase; nothing else is renamed.
"""

import dataclasses
import re
import types
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from inspect import cleandoc
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

_topics: dict[str, type["Event"]] = {}


class Event:
    """Something that happened. Subclasses are declared with `@event(topic)`."""

    topic: ClassVar[str] = ""
    schema_version: ClassVar[int] = 1
    consumers: ClassVar[tuple[str, ...]] = ()

    def payload(self) -> dict[str, Any]:
        """The event's data as it goes over the wire."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]  # every subclass is a dataclass
        return {camel(f.name): wire(getattr(self, f.name)) for f in fields}


E = TypeVar("E", bound=Event)


@dataclass_transform(frozen_default=True)
def event(topic: str, version: int = 1, consumers: Sequence[str] = ()) -> Callable[[type[E]], type[E]]:
    """Declare an event class: it becomes a frozen dataclass with a topic.

    `consumers` names the services that are known to want it, whether or not they have subscribed yet.
    """

    def declare(cls: type[E]) -> type[E]:
        declared = dataclasses.dataclass(frozen=True)(cls)
        declared.topic = topic
        declared.schema_version = version
        declared.consumers = tuple(sorted(consumers))
        return declared

    return declare


def register_event(cls: type[Event]) -> None:
    """Make an event known to whoever asks for topics: docs, subscriptions, the console."""
    if _topics.setdefault(cls.topic, cls) is not cls:
        raise ValueError(f"There is already an event on {cls.topic}.")


def topics() -> dict[str, type[Event]]:
    """Return every registered event by its topic."""
    return dict(_topics)


def known_consumers() -> dict[str, tuple[str, ...]]:
    """Every service that an event names as its consumer, with the topics that it is known to want."""
    found: dict[str, list[str]] = {}
    for topic, cls in sorted(_topics.items()):
        for consumer in cls.consumers:
            found.setdefault(consumer, []).append(topic)
    return {name: tuple(found[name]) for name in sorted(found)}


def camel(name: str) -> str:
    """The wire name of a field: `run_id` is `runId`."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def wire(value: Any) -> Any:
    """A value in JSON's types: money as a string, times as RFC 3339 in UTC."""
    if isinstance(value, UUID | Decimal):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {str(k): wire(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [wire(v) for v in value]
    return value


class FixedWords(tuple[str, ...]):
    """The only words that a text of an event can be: `Annotated[str, Words(…)]`."""


Hash = Annotated[str, re.compile(r"^sha256:[0-9a-f]{64}$")]
"""A hash as it goes over the wire."""

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    UUID: {"type": "string", "format": "uuid"},
    Decimal: {"type": "string", "pattern": r"^-?\d+(\.\d+)?$"},
    datetime: {"type": "string", "format": "date-time"},
}


def _schema_of(hint: Any) -> dict[str, Any]:
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    origin = get_origin(hint)
    if origin is Annotated:
        return _narrowed(*get_args(hint))
    if origin is Literal:
        return {"enum": list(get_args(hint))}
    if origin in (Union, types.UnionType):
        return {
            "anyOf": [{"type": "null"} if arg is type(None) else _schema_of(arg) for arg in get_args(hint)]
        }
    if origin in (list, tuple, Sequence):
        return {"type": "array", "items": _schema_of(get_args(hint)[0])}
    if hint is dict or origin in (dict, Mapping):
        return {"type": "object"}
    raise TypeError(f"An event cannot carry a {hint!r}.")


def _narrowed(hint: Any, *marks: Any) -> dict[str, Any]:
    found = _schema_of(hint)
    for mark in marks:
        if isinstance(mark, FixedWords):
            found["enum"] = list(mark)
        elif isinstance(mark, re.Pattern):
            found["pattern"] = mark.pattern
    return found


def schema(cls: type[Event]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of an event's data."""
    hints = get_type_hints(cls, include_extras=True)
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # every subclass is a dataclass
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": cls.__name__,
        "description": cleandoc(cls.__doc__ or ""),  # Python 3.13 takes the indentation away itself
        "x-topic": cls.topic,
        "x-schema-version": cls.schema_version,
        **({"x-consumers": list(cls.consumers)} if cls.consumers else {}),
        "type": "object",
        "properties": {camel(f.name): _schema_of(hints[f.name]) for f in fields},
        "required": [camel(f.name) for f in fields if f.default is dataclasses.MISSING],
        "additionalProperties": False,
    }
