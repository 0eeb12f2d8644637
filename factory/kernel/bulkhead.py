"""Many items, one after the other: the fault of one costs that one, and never those behind it.

Everything that works through many runs, leases, events or tenants goes through here, so that what happens to
a faulty item is decided once: it is logged with its id, counted (`items.failed`), and passed over. A database
that is away is no item's fault: it ends the round. A broker that is away puts off the item that needs it.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import connection, connections

from factory.kernel.absence import broker_away, database_away, in_a_line
from factory.kernel.commanding import IdempotentReplay
from factory.kernel.errors import DomainError
from factory.kernel.telemetry import meters
from factory.kernel.time_limits import TimeIsUp

log = structlog.get_logger("factory.kernel.bulkhead")

Tell = Callable[[Exception], object]


@dataclass(slots=True)
class Counts:
    """Hold what became of the items. `refused` ones had moved on by the time that they were locked."""

    found: int = 0
    repaired: int = 0
    refused: int = 0
    failed: int = 0


class Resting:
    """Items that failed or were refused lately. Each rests twice as long each further time, up to a minute.

    For rounds that come every second: without a rest each would meet the same fault again.
    """

    FIRST, LONGEST, MOST = 1.0, 60.0, 10_000

    def __init__(self) -> None:
        self._until: dict[UUID, tuple[float, float]] = {}

    def note(self, item: UUID) -> None:
        """Let an item rest, because it failed or was refused."""
        _, last = self._until.get(item, (0.0, self.FIRST / 2))
        seconds = min(last * 2, self.LONGEST)
        if len(self._until) >= self.MOST:
            self._until.clear()
        self._until[item] = (time.monotonic() + seconds, seconds)

    def forget(self, item: UUID) -> None:
        """Let an item be taken at once again, because it went well."""
        self._until.pop(item, None)

    def items(self) -> list[UUID]:
        """Return those that rest now."""
        at = time.monotonic()
        return [item for item, (until, _) in list(self._until.items()) if until > at]


class Bulkhead:
    """One round over many items. `through` are faults that are about the round, and are raised.

    `away` says that the database went away under the last item; under two in a row it is raised, because
    one item alone may have broken its connection.
    """

    def __init__(
        self, job: str, *, through: tuple[type[Exception], ...] = (), resting: Resting | None = None
    ) -> None:
        self.job, self.counts, self.away = job, Counts(), False
        self._through = through
        self._resting = resting

    @contextmanager
    def item(self, item: object, tenant_id: str = "", *, tell: Tell | None = None) -> Iterator[None]:
        """Around the work on one item; `tell` hears how it was refused or failed.

        Never inside a transaction: after a fault that would be aborted, and its commit a silent rollback.
        """
        if connection.in_atomic_block:
            raise RuntimeError(f"{self.job}: each item has a transaction of its own, and none is around it.")
        self.counts.found += 1
        try:
            yield
        except TimeIsUp:  # the end of a job's time: the rest is for the next round
            raise
        except self._through:
            raise
        except IdempotentReplay:
            self._went_well(item)
        except DomainError as refusal:
            self.counts.refused += 1
            self.away = False
            log.info("item_refused", job=self.job, id=str(item), code=refusal.code)
            self._let_rest(item)
            if tell is not None:
                tell(refusal)
        except Exception as fault:
            self._failed(item, tenant_id, fault)
            if tell is not None:
                tell(fault)
        else:
            self._went_well(item)

    def _went_well(self, item: object) -> None:
        self.counts.repaired += 1
        self.away = False
        if self._resting is not None and isinstance(item, UUID):
            self._resting.forget(item)

    def _failed(self, item: object, tenant_id: str, fault: Exception) -> None:
        self.counts.failed += 1
        if database_away(fault):
            log.warning("database_away", job=self.job, id=str(item), fault=in_a_line(fault))
            connections.close_all()
            if self.away:
                raise fault
            self.away = True
            return
        self.away = False
        if broker_away(fault):
            log.warning("item_put_off", job=self.job, id=str(item), fault=in_a_line(fault))
        else:
            log.error("item_failed", job=self.job, id=str(item), tenant=tenant_id, exc_info=fault)
            meters.item_failed(self.job, tenant_id)
        self._let_rest(item)

    def _let_rest(self, item: object) -> None:
        if self._resting is not None and isinstance(item, UUID):
            self._resting.note(item)
