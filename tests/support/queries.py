"""Query budgets: how many statements each hot path may send, kept in tests/query_counts.json.

A budget is a ceiling. Raise one only with a reason in the commit, and lower it when the path got better.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection
from django.test.utils import CaptureQueriesContext

from factory.kernel import reloading

COUNTS = Path(__file__).parent.parent / "query_counts.json"


@contextmanager
def within_budget(name: str) -> Iterator[None]:
    """Fail, with the statements, if the block sends more than `name` may.

    The settings, which a process reads again every few seconds, are read just before: whether those seconds
    pass in the block says nothing about the block.
    """
    budgets: dict[str, int] = json.loads(COUNTS.read_text())
    reloading.forget()
    reloading.value(next(iter(reloading.ABOUT)))
    with CaptureQueriesContext(connection) as seen:
        yield
    sent = [query["sql"][:160] for query in seen.captured_queries]
    assert name in budgets, f"{COUNTS.name} has no budget {name}; it sent {len(sent)}: {sent}"
    assert len(sent) <= budgets[name], "\n".join([f"{name}: {len(sent)} of {budgets[name]}", *sent])


def deadlocks() -> int:
    """How many there have been in this database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])
