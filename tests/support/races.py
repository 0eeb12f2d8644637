"""Two at once: real threads with real connections, let go by one barrier."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import connection, connections, transaction

Outcome = Any
"""What a racer returned, or the exception that it met."""


def race(*racers: Callable[[], Any]) -> list[Outcome]:
    """Run all at the same moment, each on a connection of its own; the outcomes in the same order."""
    barrier = threading.Barrier(len(racers))
    outcomes: list[Outcome] = [None] * len(racers)

    def run(index: int, racer: Callable[[], Any]) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")  # the connection stands before anybody is let go
            barrier.wait(timeout=10)
            outcomes[index] = racer()
        except Exception as met:  # a racer's refusal is what the test is about
            outcomes[index] = met
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive(), "a racer hangs"
    return outcomes


def refusals(outcomes: Sequence[Outcome]) -> list[str]:
    """The names of the exceptions among the outcomes, sorted."""
    return sorted(type(o).__name__ for o in outcomes if isinstance(o, Exception))


@contextmanager
def row_held(tenant_id: str, table: str, key: UUID, seconds: float, *, column: str = "id") -> Iterator[None]:
    """Somebody else has the row for so long."""
    locked = threading.Event()

    def hold() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('factory.tenant', %s, true)", [tenant_id])
            cursor.execute(f"SELECT 1 FROM {table} WHERE {column} = %s FOR NO KEY UPDATE", [key])
            locked.set()
            time.sleep(seconds)
        connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    assert locked.wait(10)
    yield
    thread.join(30)
