"""What anchors count besides the heads: rows ever written, purges, and the newest entry."""

from typing import Any

from django.db.backends.utils import CursorWrapper

NEWEST = (
    "greatest((SELECT max(occurred_at) FROM factory_journalentry), "
    "(SELECT max(occurred_at) FROM factory_auditentry))"
)
_TABLES = {"journal": "factory_journalentry", "audit": "factory_auditentry", "outbox": "factory_outboxevent"}


def newest(cursor: CursorWrapper) -> tuple[Any, Any]:
    """Return when the newest entry was made, and what time it is."""
    cursor.execute(f"SELECT {NEWEST}, clock_timestamp()")
    found: tuple[Any, Any] = cursor.fetchone()
    return found


def ever_written(cursor: CursorWrapper) -> dict[str, int]:
    """By kind: what is there and what retention has removed."""
    return {
        kind: one(
            cursor,
            f"SELECT (SELECT count(*) FROM {table}) "
            f"+ coalesce((SELECT sum(rows) FROM factory_purge WHERE kind = '{kind}'), 0)",
        )
        for kind, table in _TABLES.items()
    }


def last_purge(cursor: CursorWrapper) -> tuple[int, str]:
    """The number and the hash of the last purge record."""
    cursor.execute("SELECT number, record_hash FROM factory_purge ORDER BY number DESC LIMIT 1")
    number, hash_ = cursor.fetchone() or (0, "")
    return int(number), str(hash_)


def one(cursor: CursorWrapper, query: str) -> int:
    """The one number that a query answers with; 0 for none."""
    cursor.execute(query)
    row = cursor.fetchone()
    return int(row[0]) if row and row[0] is not None else 0
