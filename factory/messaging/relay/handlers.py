"""In-process handlers: what an app does about an event of an app below it, or of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from factory.kernel.commanding import IdempotencyKey
from factory.kernel.context import Context


@dataclass(frozen=True, slots=True)
class Received:
    """An event as a handler gets it: possibly twice, never out of order within its stream."""

    id: UUID
    topic: str
    payload: Mapping[str, Any]
    occurred_at: datetime
    stream_id: UUID
    run_id: UUID | None
    correlation_id: UUID

    def once(self, handler: str) -> IdempotencyKey:
        """The inbox record of this event for a handler, to put a command under."""
        return IdempotencyKey(key=str(self.id), operation=handler)


Handle = Callable[[Context, Received], None]


@dataclass(frozen=True, slots=True)
class Handler:
    """A named consumer of one topic."""

    name: str
    topic: str
    handle: Handle


_handlers: dict[str, list[Handler]] = {}


def register_handler(handler: Handler) -> None:
    """Have a handler called: with one command under `event.once(name)`; `IdempotentReplay` is success."""
    present = _handlers.setdefault(handler.topic, [])
    if any(other.name == handler.name and other is not handler for other in present):
        raise ValueError(f"{handler.topic} already has a handler {handler.name}.")
    if handler not in present:
        present.append(handler)


def handlers(topic: str) -> tuple[Handler, ...]:
    """The handlers of a topic in the order of their declaration."""
    return tuple(_handlers.get(topic, ()))
