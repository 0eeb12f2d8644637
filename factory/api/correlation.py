"""One id ties a request, its log lines and its events together; the caller may bring it."""

import re
from typing import Any
from uuid import UUID

from factory.kernel.ids import uuid7

TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
NOTHING = re.compile(r"0+")


def sane_traceparent(header: str | None) -> str:
    """The W3C traceparent if it is one, else nothing."""
    match = TRACEPARENT.fullmatch(header or "")
    return header or "" if match and not any(NOTHING.fullmatch(part) for part in match.groups()) else ""


def correlation_id(request_id: str | None, traceparent: str | None) -> UUID:
    """The caller's request id if it is a UUID, else its trace's id, else a new one."""
    if request_id and len(request_id) in (32, 36):
        try:
            return UUID(request_id)
        except ValueError:
            pass
    trace = sane_traceparent(traceparent)
    return UUID(trace.split("-")[1]) if trace else uuid7()


def correlation_of(request: Any) -> UUID:
    """The id of a Django or DRF request, as the middleware set it."""
    bare = getattr(request, "_request", request)
    if not hasattr(bare, "correlation_id"):
        bare.correlation_id = correlation_id(
            bare.headers.get("X-Request-ID"), bare.headers.get("traceparent")
        )
    identifier: UUID = bare.correlation_id
    return identifier
