"""The auditor: invariants that hold in every snapshot of the database, whatever happened.

Each app declares its own in its `invariants` room. `manage.py verify` evaluates all of them in one
read-only REPEATABLE READ transaction as the auditor's role, which sees every tenant and can change
nothing. Under READ COMMITTED two queries of one check would see two worlds and raise false alarms.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connections, transaction
from django.db.backends.utils import CursorWrapper


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that should not be: which rule, whose, about what, and what was seen."""

    code: str
    tenant_id: str
    subject: str
    detail: str


Check = Callable[[CursorWrapper], Iterable[tuple[Any, Any, Any]]]


@dataclass(frozen=True, slots=True)
class Invariant:
    """A rule with its code and its sentence; `check` yields tenant, subject and detail of violations."""

    code: str
    title: str
    check: Check
    module: str


_invariants: dict[str, Invariant] = {}


def check(code: str, title: str) -> Callable[[Check], Check]:
    """Declare an invariant that needs code besides SQL."""

    def declare(function: Check) -> Check:
        _register(Invariant(code, title, function, function.__module__))
        return function

    return declare


def invariant(code: str, title: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Declare an invariant whose violations are the rows (tenant_id, subject, detail) of one query."""

    def declare(sql: Callable[[], str]) -> Callable[[], str]:
        def run(cursor: CursorWrapper) -> Iterator[tuple[Any, Any, Any]]:
            cursor.execute(sql())
            yield from cursor.fetchall()

        _register(Invariant(code, title, run, sql.__module__))
        return sql

    return declare


def _register(rule: Invariant) -> None:
    if rule.code in _invariants:
        raise ValueError(f"There is already an invariant {rule.code}.")
    _invariants[rule.code] = rule


def invariants() -> list[Invariant]:
    """Every declared invariant, by code."""
    return [_invariants[code] for code in sorted(_invariants)]


@contextmanager
def snapshot(alias: str = "auditor") -> Iterator[CursorWrapper]:
    """A cursor of the auditor on one unchanging view of the database."""
    with transaction.atomic(using=alias, durable=True), connections[alias].cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SET LOCAL statement_timeout = '10min'")
        yield cursor


def audit_all(
    codes: Iterable[str] | None = None, on_check: Callable[[Invariant, int], None] | None = None
) -> list[Violation]:
    """Evaluate the named invariants, or all; `on_check` hears of each with its number of violations."""
    wanted = set(codes) if codes is not None else None
    found: list[Violation] = []
    with snapshot() as cursor:
        for rule in invariants():
            if wanted is not None and rule.code not in wanted:
                continue
            rows = [Violation(rule.code, str(t or ""), str(s), str(d)) for t, s, d in rule.check(cursor)]
            found += rows
            if on_check:
                on_check(rule, len(rows))
    return found
