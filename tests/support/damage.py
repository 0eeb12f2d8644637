"""One run whose chain cannot be continued: every command that would move it fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from tests.support.running import House


@contextmanager
def chain_damaged(house: House, stream_id: UUID) -> Iterator[None]:
    """The head of its chain names a number that is taken; put right at the end."""
    move = "UPDATE factory_chainhead SET sequence = sequence + %s WHERE stream_id = %s"
    house._owner(move, [-1, stream_id])
    try:
        yield
    finally:
        house._owner(move, [1, stream_id])
