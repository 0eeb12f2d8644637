"""The auditor: invariants that hold in every snapshot of the database, whatever happened.

Each app declares its own in its `invariants` room. `manage.py verify` evaluates all of them in one
read-only REPEATABLE READ transaction as the auditor's role, which sees every tenant and can change
nothing. Under READ COMMITTED two queries of one check would see two worlds and raise false alarms.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


Rows = Iterable[tuple[Any, Any, Any]]
"""Tenant, subject and detail of what violates one rule."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """A rule with its code and its sentence. Rules that one reading checks have one `check` in common."""

    code: str
    title: str
    check: Callable[[CursorWrapper], Iterable[Violation]]
    module: str


_invariants: dict[str, Invariant] = {}


def check(code: str, title: str) -> Callable[[Callable[[CursorWrapper], Rows]], Invariant]:
    """Declare an invariant that needs code besides SQL."""

    def declare(function: Callable[[CursorWrapper], Rows]) -> Invariant:
        def run(cursor: CursorWrapper) -> Iterator[Violation]:
            yield from (_violation(code, *row) for row in function(cursor))

        return Invariant(code, title, run, function.__module__)

    return declare


def checks(
    titles: Mapping[str, str],
) -> Callable[[Callable[[CursorWrapper], Iterable[Violation]]], tuple[Invariant, ...]]:
    """Declare several invariants that one reading checks: it yields the violations of all of them."""

    def declare(function: Callable[[CursorWrapper], Iterable[Violation]]) -> tuple[Invariant, ...]:
        module = function.__module__
        return tuple(Invariant(code, title, function, module) for code, title in titles.items())

    return declare


def invariant(code: str, title: str) -> Callable[[Callable[[], str]], Invariant]:
    """Declare an invariant whose violations are the rows (tenant_id, subject, detail) of one query."""

    def declare(sql: Callable[[], str]) -> Invariant:
        def run(cursor: CursorWrapper) -> Iterator[Violation]:
            cursor.execute(sql())
            yield from (_violation(code, *row) for row in cursor.fetchall())

        return Invariant(code, title, run, sql.__module__)

    return declare


def _violation(code: str, tenant: Any, subject: Any, detail: Any) -> Violation:
    return Violation(code, str(tenant or ""), str(subject), str(detail))


def register_invariant(rule: Invariant) -> None:
    """Have the auditor check this rule."""
    if _invariants.setdefault(rule.code, rule) is not rule:
        raise ValueError(f"There is already an invariant {rule.code}.")


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
    """Hold what one verification found; `unchecked` rules could not be evaluated, which is no good news
    either."""

    violations: list[Violation] = field(default_factory=list)
    unchecked: list[tuple[str, str]] = field(default_factory=list)
    rules: int = 0

    @property
    def ok(self) -> bool:
        return not self.violations and not self.unchecked


_reactions: list[Callable[[VerificationReport], object]] = []


def register_reaction(react: Callable[[VerificationReport], object]) -> None:
    """Register what an app does about what a verification of everything has found."""
    _reactions.append(react)


def reactions() -> tuple[Callable[[VerificationReport], object], ...]:
    """Every declared reaction."""
    return tuple(_reactions)


CheckListener = Callable[[Invariant, int | None], None]


def verify(codes: Iterable[str] | None = None, on_check: CheckListener | None = None) -> VerificationReport:
    """Evaluate the named invariants, or all. One that fails is reported as unchecked, and the rest goes on.

    `on_check` hears of each with its number of violations, or None if it could not be evaluated.
    """
    report = VerificationReport()
    wanted = None if codes is None else set(codes)
    by_check: dict[Any, list[Invariant]] = {}
    for rule in invariants():
        if wanted is None or rule.code in wanted:
            by_check.setdefault(rule.check, []).append(rule)
    with snapshot() as cursor:
        for rules in by_check.values():
            _evaluate(rules, cursor, report, on_check)
    return report


def _evaluate(
    rules: list[Invariant], cursor: CursorWrapper, report: VerificationReport, on_check: CheckListener | None
) -> None:
    """Evaluate the rules that have one check in common."""
    violations: list[Violation] | None = None
    try:
        with transaction.atomic(using="auditor"):
            violations = list(rules[0].check(cursor))
    except TimeIsUp:
        raise
    except Exception as fault:  # a check that breaks must not hide what the others see
        log.exception("invariant_unchecked", codes=[rule.code for rule in rules])
        reason = storable(f"{type(fault).__name__}: {fault}", 500)
        report.unchecked += [(rule.code, reason) for rule in rules]
    for rule in rules:
        ours = None if violations is None else [v for v in violations if v.code == rule.code]
        report.rules += 1
        report.violations += ours or ()
        if on_check:
            on_check(rule, None if ours is None else len(ours))


class CouldNotCheck(RuntimeError):
    """An invariant could not be evaluated: nobody knows whether it holds."""


def audit_all(codes: Iterable[str] | None = None) -> list[Violation]:
    """The violations of the named invariants, or of all. Raises `CouldNotCheck` if one breaks."""
    report = verify(codes)
    if report.unchecked:
        raise CouldNotCheck("; ".join(f"{code}: {fault}" for code, fault in report.unchecked))
    return report.violations
