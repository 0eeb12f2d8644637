"""The auditor: invariants that hold in every snapshot of the database, whatever happened.

Each app declares its own in its `invariants` room. `manage.py verify` evaluates all of them in one
read-only REPEATABLE READ transaction as the auditor's role, which sees every tenant and can change
nothing. Under READ COMMITTED two queries of one check would see two worlds and raise false alarms.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.db import connections, transaction
from django.db.backends.utils import CursorWrapper

from factory.kernel.hashing import storable
from factory.kernel.time_limits import TimeIsUp

log = structlog.get_logger("factory.evidence.auditor")


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


def judged(tenant: Any, subject: str, judge: Callable[[], str | None]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the fault that `judge` finds with one row, if it finds any.

    A row that cannot be judged (it does not parse, it has no canonical form) is a violation about that row:
    the rule goes on with the others, of this tenant and of all.
    """
    try:
        fault = judge()
    except TimeIsUp:
        raise
    except Exception as error:
        fault = storable(f"it cannot be checked: {type(error).__name__}: {error}", 500)
    if fault:
        yield tenant, subject, fault


@contextmanager
def snapshot(alias: str = "auditor") -> Iterator[CursorWrapper]:
    """A cursor of the auditor on one unchanging view of the database."""
    with transaction.atomic(using=alias, durable=True), connections[alias].cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SET LOCAL statement_timeout = '10min'")
        yield cursor


def streamed(cursor: Any, query: str, params: Sequence[Any] = (), size: int = 2000) -> Iterator[list[Any]]:
    """The rows of a query in batches, by a cursor of the database: memory does not grow with them."""
    name = f"audit_{next(_names)}"
    cursor.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {query}", params or None)
    while True:
        cursor.execute(f"FETCH FORWARD {size} FROM {name}")
        batch = cursor.fetchall()
        if not batch:
            break
        yield batch
    cursor.execute(f"CLOSE {name}")


_names = itertools.count()


@dataclass(slots=True)
class VerificationReport:
    """What one verification found; `unchecked` rules could not be evaluated, which is no good news either."""

    violations: list[Violation] = field(default_factory=list)
    unchecked: list[tuple[str, str]] = field(default_factory=list)
    rules: int = 0

    @property
    def ok(self) -> bool:
        return not self.violations and not self.unchecked


_reactions: list[Callable[[VerificationReport], object]] = []


def reaction(react: Callable[[VerificationReport], object]) -> Callable[[VerificationReport], object]:
    """Declare what an app does about what a verification of everything has found."""
    _reactions.append(react)
    return react


def reactions() -> tuple[Callable[[VerificationReport], object], ...]:
    """Every declared reaction."""
    return tuple(_reactions)


Told = Callable[[Invariant, int | None], None]


def verify(codes: Iterable[str] | None = None, on_check: Told | None = None) -> VerificationReport:
    """Evaluate the named invariants, or all. One that fails is reported as unchecked, and the rest goes on.

    `on_check` hears of each with its number of violations, or None if it could not be evaluated.
    """
    report, wanted = VerificationReport(), set(codes) if codes is not None else None
    with snapshot() as cursor:
        for rule in invariants():
            if wanted is None or rule.code in wanted:
                _evaluate(rule, cursor, report, on_check)
    return report


def _evaluate(
    rule: Invariant, cursor: CursorWrapper, report: VerificationReport, on_check: Told | None
) -> None:
    report.rules += 1
    rows: list[Violation] | None = None
    try:
        with transaction.atomic(using="auditor"):
            rows = [Violation(rule.code, str(t or ""), str(s), str(d)) for t, s, d in rule.check(cursor)]
            report.violations += rows
    except TimeIsUp:
        raise
    except Exception as fault:  # a check that breaks must not hide what the others see
        log.exception("invariant_unchecked", code=rule.code)
        report.unchecked.append((rule.code, storable(f"{type(fault).__name__}: {fault}", 500)))
    if on_check:
        on_check(rule, None if rows is None else len(rows))


class CouldNotCheck(RuntimeError):
    """An invariant could not be evaluated: nobody knows whether it holds."""


def audit_all(codes: Iterable[str] | None = None) -> list[Violation]:
    """The violations of the named invariants, or of all. Raises `CouldNotCheck` if one breaks."""
    report = verify(codes)
    if report.unchecked:
        raise CouldNotCheck("; ".join(f"{code}: {fault}" for code, fault in report.unchecked))
    return report.violations
