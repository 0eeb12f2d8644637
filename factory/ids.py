"""Identifiers: UUIDv7 (RFC 9562), so that rows sort by the time they were made."""

from uuid import UUID

from uuid_utils.compat import uuid7 as _uuid7


def uuid7() -> UUID:
    """A new time-ordered identifier."""
    return _uuid7()
