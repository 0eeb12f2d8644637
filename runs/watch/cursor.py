"""Where a watcher stands, exactly: not by a number, but by which transactions it has seen.

Rows of the outbox become visible in the order of commits, which no column knows. A PostgreSQL snapshot
knows it: an event is new if its transaction was not visible in the snapshot that the watcher had before.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Self
from uuid import UUID

from django.core import signing

from factory.kernel.errors import FieldError, InvalidInput

SALT = "factory.watch"


class Key(NamedTuple):
    """The order of events within a batch: by time, and always in order within a run."""

    occurred_at: datetime
    stream_id: UUID
    sequence: int
    position: int


@dataclass(frozen=True, slots=True)
class FeedSnapshot:
    """`pg_current_snapshot()`, and its question answered outside the database."""

    text: str
    oldest_running: int
    next: int
    running: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> Self:
        low, high, running = text.split(":")
        return cls(text, int(low), int(high), frozenset(int(part) for part in running.split(",") if part))

    def sees(self, transaction: int) -> bool:
        if transaction < self.oldest_running:
            return True
        return transaction < self.next and transaction not in self.running


@dataclass(frozen=True, slots=True)
class Cursor:
    """Everything that `before` saw was delivered, and what only `batch` saw, up to and with `key`.

    No key means the whole batch.
    """

    before: FeedSnapshot
    batch: FeedSnapshot
    key: Key | None = None

    def covers(self, transaction: int, key: Key) -> bool:
        if self.before.sees(transaction):
            return True
        return self.batch.sees(transaction) and (self.key is None or key <= self.key)

    def seal(self) -> str:
        at: list[Any] = []
        if self.key is not None:
            moment, stream, sequence, position = self.key
            at = [moment.isoformat(), stream.hex, sequence, position]
        return signing.dumps([self.before.text, self.batch.text, at], salt=SALT, compress=True)

    @classmethod
    def open(cls, sealed: str) -> Self:
        try:
            before, batch, at = signing.loads(sealed, salt=SALT)
            key = Key(datetime.fromisoformat(at[0]), UUID(at[1]), at[2], at[3]) if at else None
            return cls(FeedSnapshot.parse(before), FeedSnapshot.parse(batch), key)
        except (signing.BadSignature, ValueError, TypeError, IndexError) as fault:
            error = FieldError("/Last-Event-ID", "Not an id of this stream.")
            raise InvalidInput("The Last-Event-ID is not one of this stream.", errors=[error]) from fault
