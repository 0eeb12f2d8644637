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

from factory.kernel.bulkhead import Bulkhead, Counts
from factory.kernel.context import Context, system
from factory.kernel.tenancy import scanning

log = structlog.get_logger("factory.kernel.reconciling")


@dataclass(frozen=True, slots=True, order=True)
class DueItem:
    """An item whose time has come; the order of dues is the order of repair."""

    due_at: datetime
    id: UUID
    tenant_id: str
    key: str = ""


_reconcilers: dict[str, "Reconciler"] = {}


class Reconciler(ABC):
    """One drift."""

    name: ClassVar[str]
    every: ClassVar[str]
    """The schedule, as a cron line."""
    batch: ClassVar[int] = 200
    seconds: ClassVar[float] = 40.0
    """No item is begun later than that in a round, which is within a job's time; the rest is for the next."""

    @abstractmethod
    def find_sql(self) -> str:
        """SQL for the columns due_at, id, tenant_id, key of all items that are due, as the scan role."""

    @abstractmethod
    def repair(self, ctx: Context, due: DueItem) -> None:
        """Call the one command that puts this item right."""

    def find(self, after: DueItem | None, tenant_id: str | None) -> list[DueItem]:
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
            return [DueItem(*row) for row in cursor.fetchall()]

    def run_once(self, tenant_id: str | None = None, *, seconds: float | None = None) -> Counts:
        """One round over all that is due now; one tenant's faulty row does not stop another's.

        `seconds` is for a handler that gives a first push: the schedule does the rest.
        """
        alone = Bulkhead(self.name)
        for due in self._all_due(tenant_id, self.seconds if seconds is None else seconds):
            with alone.item(due.id, due.tenant_id):
                self.repair(system(due.tenant_id, self.name), due)
        counts = alone.counts
        if counts.found:
            log.info("reconciled", reconciler=self.name, **{n: getattr(counts, n) for n in Counts.__slots__})
        return counts

    def _all_due(self, tenant_id: str | None, seconds: float) -> Iterator[DueItem]:
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


def register_reconciler(cls: type[Reconciler]) -> None:
    """Have drift of this kind repaired by its schedule."""
    if type(_reconcilers.setdefault(cls.name, cls())) is not cls:
        raise ValueError(f"There is already a reconciler {cls.name}.")


def reconcilers() -> dict[str, Reconciler]:
    """Every reconciler by its name."""
    return dict(_reconcilers)


__all__ = ["Counts", "DueItem", "Reconciler", "reconcilers"]
