"""Reconcilers: one class for each kind of drift between what is and what should be.

`find` looks across tenants at ids and due times only; `repair` calls one command in the item's own
tenant. Two of them at once, one killed half-way or one run twice end in the same state, because
the command judges again under its locks.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

import structlog
from django.db import connections

from factory.absence import in_a_line, is_away
from factory.commanding import AlreadyDone
from factory.context import Context, system
from factory.errors import DomainError
from factory.tenancy import scanning
from factory.timelimits import TimeIsUp

log = structlog.get_logger("factory.reconciling")


@dataclass(frozen=True, slots=True, order=True)
class Due:
    """An item whose time has come; the order of dues is the order of repair."""

    due_at: datetime
    id: UUID
    tenant_id: str
    key: str = ""


@dataclass(slots=True)
class Counts:
    """What one round did. `refused` items had moved on by the time that they were locked."""

    found: int = 0
    repaired: int = 0
    refused: int = 0
    failed: int = 0


_reconcilers: dict[str, "Reconciler"] = {}


class Reconciler(ABC):
    """One drift. Subclasses are registered by name when they are declared."""

    name: ClassVar[str]
    every: ClassVar[str]
    """The schedule, as a cron line."""
    batch: ClassVar[int] = 200
    seconds: ClassVar[float] = 40.0
    """No item is begun later than that in a round, which is within a job's time; the rest is for the next."""

    def __init_subclass__(cls) -> None:
        _reconcilers[cls.name] = cls()

    @abstractmethod
    def find_sql(self) -> str:
        """SQL for the columns due_at, id, tenant_id, key of all items that are due, as the scan role."""

    @abstractmethod
    def repair(self, ctx: Context, due: Due) -> None:
        """Call the one command that puts this item right."""

    def find(self, after: Due | None, tenant_id: str | None) -> list[Due]:
        """The next batch after `after`, oldest first."""
        where = ["true"]
        params: list[Any] = []
        if after is not None:
            where.append("(due_at, id) > (%s, %s)")
            params += [after.due_at, after.id]
        if tenant_id is not None:
            where.append("tenant_id = %s")
            params.append(tenant_id)
        sql = (
            f"SELECT due_at, id, tenant_id, key FROM ({self.find_sql()}) AS due "
            f"WHERE {' AND '.join(where)} ORDER BY due_at, id LIMIT {self.batch}"
        )
        with scanning() as cursor:
            cursor.execute(sql, params)
            return [Due(*row) for row in cursor.fetchall()]

    def run_once(self, tenant_id: str | None = None, *, seconds: float | None = None) -> Counts:
        """One round over all that is due now; one tenant's faulty row does not stop another's.

        `seconds` is for a handler that gives a first push: the schedule does the rest.
        """
        counts, missed = Counts(), 0
        for due in self._all_due(tenant_id, self.seconds if seconds is None else seconds):
            counts.found += 1
            away = self._repair_one(due, counts)
            missed = missed + 1 if away else 0
            if away and missed > 1:  # twice in a row: it is so for every item
                raise away
        if counts.found:
            log.info("reconciled", reconciler=self.name, **{n: getattr(counts, n) for n in Counts.__slots__})
        return counts

    def _all_due(self, tenant_id: str | None, seconds: float) -> Iterator[Due]:
        end, last = time.monotonic() + seconds, None
        while time.monotonic() < end:
            batch = self.find(last, tenant_id)
            for due in batch:
                if time.monotonic() >= end:
                    return
                yield due
            if len(batch) < self.batch:
                return
            last = batch[-1]

    def _repair_one(self, due: Due, counts: Counts) -> Exception | None:
        """What says that the database is away, if it is; one item alone may have broken its connection."""
        try:
            self.repair(system(due.tenant_id, self.name), due)
            counts.repaired += 1
        except AlreadyDone:
            counts.repaired += 1
        except DomainError as refusal:
            counts.refused += 1
            log.info("reconcile_refused", reconciler=self.name, id=str(due.id), code=refusal.code)
        except TimeIsUp:  # the job's own end: the rest is for the next round
            raise
        except Exception as fault:
            counts.failed += 1
            if is_away(fault):
                log.warning("reconcile_failed", reconciler=self.name, id=str(due.id), fault=in_a_line(fault))
                connections.close_all()
                return fault
            log.exception("reconcile_failed", reconciler=self.name, id=str(due.id), tenant=due.tenant_id)
        return None


def reconcilers() -> dict[str, Reconciler]:
    """Every reconciler by its name."""
    return dict(_reconcilers)
