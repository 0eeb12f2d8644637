"""Identifiers: UUIDv7 (RFC 9562), so that rows sort by the time they were made."""

from uuid import UUID

from uuid_utils.compat import uuid7 as _uuid7

IN_WORDS = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""An identifier among other words, for Python and PostgreSQL: the auditor writes `run:ID` and `ID#7`."""


def uuid7() -> UUID:
    """A new time-ordered identifier."""
    return _uuid7()
