"""Real threads with connections of their own: what happens when two people act at once."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connections

PATIENCE = 30


def at_once(acts: Sequence[Callable[[], Any]], *, patience: float = PATIENCE) -> list[Any]:
    """Start all acts at the same moment; each one's answer, or the exception that it raised, in order."""
    gate = threading.Barrier(len(acts))
    answers: list[Any] = [None] * len(acts)

    def run(index: int, act: Callable[[], Any]) -> None:
        try:
            gate.wait(PATIENCE)
            answers[index] = act()
        except Exception as fault:
            answers[index] = fault
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience)
        assert not thread.is_alive(), "An act did not end."
    return answers
