"""The meters of the control plane. Names, units and dimensions are a promise to whoever draws the dashboards.

Each thing is counted twice: through the OpenTelemetry API, which sends it where an endpoint is set and costs
next to nothing otherwise, and by the Prometheus client, which can add up what several processes of one
server have counted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import structlog
from django.db import Error as DatabaseFault
from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Meter, Observation
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

log = structlog.get_logger("factory.kernel.telemetry")

Counted = Callable[[], Mapping[tuple[str, str], int]]
"""How many, by tenant and state."""

PREFIX = "connectsoft.factory"
ACTIVE = f"{PREFIX}.runs.active"
COUNTED_WHEN_ASKED = "Runs that are not over, counted in the database when it is asked"
SECONDS = (0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400, 259200)
"""One scale for all our durations: from an outbox's milliseconds to an approval's three days."""


class _Count:
    """A counter of the control plane, for whoever is sent it and for whoever asks."""

    def __init__(
        self, meter: Meter, registry: CollectorRegistry, name: str, unit: str, told: str, by: tuple[str, ...]
    ) -> None:
        self._sent = meter.create_counter(f"{PREFIX}.{name}", unit=unit, description=told)
        self._shown = Counter(_shown(name), told, by, registry=registry)

    def add(self, **by: str) -> None:
        self._sent.add(1, by)
        self._shown.labels(**by).inc()


class _Duration:
    """A histogram of seconds."""

    def __init__(
        self, meter: Meter, registry: CollectorRegistry, name: str, told: str, by: tuple[str, ...]
    ) -> None:
        self._sent = meter.create_histogram(f"{PREFIX}.{name}", unit="s", description=told)
        self._shown = Histogram(_shown(name), told, by, unit="seconds", registry=registry, buckets=SECONDS)

    def record(self, seconds: float, **by: str) -> None:
        self._sent.record(seconds, by)
        self._shown.labels(**by).observe(seconds)


def _shown(name: str) -> str:
    return f"{PREFIX}.{name}".replace(".", "_")


class Meters(Collector):
    """One instrument for each thing that is counted; as a collector, what is counted when it is asked."""

    def __init__(self, meter: Meter, registry: CollectorRegistry) -> None:
        at = (meter, registry)
        self._runs_accepted = _Count(
            *at, "runs.accepted", "{run}", "Runs that were accepted", ("tenant", "project", "workflow")
        )
        self._attempt_duration = _Duration(
            *at,
            "attempts.duration",
            "From an attempt's dispatch to its outcome",
            ("tenant", "agent", "outcome"),
        )
        self._leases_expired = _Count(
            *at, "leases.expired", "{lease}", "Leases that lapsed without an outcome", ("tenant",)
        )
        self._approval_age = _Duration(
            *at, "approvals.pending_age", "How long an approval was pending", ("tenant", "actionClass")
        )
        self._outbox_lag = _Duration(
            *at, "outbox.lag", "From an event's commit to its publication", ("host",)
        )
        self._items_failed = _Count(
            *at,
            "items.failed",
            "{item}",
            "Items among many that a fault of their own kept from being worked",
            ("tenant", "job"),
        )
        self._active: Counted = dict
        self._seen: set[tuple[str, str]] = set()
        meter.create_observable_up_down_counter(
            ACTIVE, callbacks=[self._observe_active], unit="{run}", description=COUNTED_WHEN_ASKED
        )

    def count_active(self, count: "Counted") -> None:
        """Whoever keeps runs says how to count them: by tenant and state."""
        self._active = count

    def _count(self) -> Iterator[tuple[str, str, int]]:
        """Counted anew each time, so that it is right after any restart; a series that was told ends at 0.

        While the database is away nothing is told of them, and all else is.
        """
        try:
            found = self._active()
        except DatabaseFault as fault:
            log.warning("gauge_not_read", gauge=ACTIVE, fault=type(fault).__name__)
            return
        self._seen |= set(found)
        for tenant, state in sorted(self._seen):
            yield tenant, state, found.get((tenant, state), 0)

    def _observe_active(self, options: CallbackOptions) -> Iterable[Observation]:
        for tenant, state, number in self._count():
            yield Observation(number, {"tenant": tenant, "state": state})

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Only what is counted when it is asked, once for however many processes."""
        family = GaugeMetricFamily(_shown("runs.active"), COUNTED_WHEN_ASKED, labels=("tenant", "state"))
        for tenant, state, number in self._count():
            family.add_metric((tenant, state), number)
        yield family

    def run_accepted(self, tenant: str, project: str, workflow: str) -> None:
        self._runs_accepted.add(tenant=tenant, project=project, workflow=workflow)

    def attempt_settled(self, seconds: float, *, tenant: str, agent: str, outcome: str) -> None:
        self._attempt_duration.record(seconds, tenant=tenant, agent=agent, outcome=outcome)

    def lease_expired(self, tenant: str) -> None:
        self._leases_expired.add(tenant=tenant)

    def item_failed(self, job: str, tenant: str) -> None:
        self._items_failed.add(tenant=tenant, job=job)

    def approval_closed(self, seconds: float, *, tenant: str, action_class: str) -> None:
        self._approval_age.record(seconds, tenant=tenant, actionClass=action_class)

    def outbox_published(self, seconds: float, *, host: str) -> None:
        self._outbox_lag.record(seconds, host=host)


counted = CollectorRegistry()
"""What this process has counted."""
meters = Meters(metrics.get_meter("factory"), counted)
count_active = meters.count_active
run_accepted = meters.run_accepted
attempt_settled = meters.attempt_settled
lease_expired = meters.lease_expired
item_failed = meters.item_failed
approval_closed = meters.approval_closed
outbox_published = meters.outbox_published
