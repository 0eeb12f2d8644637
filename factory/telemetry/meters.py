"""The meters of the house. Names, units and dimensions are a promise to whoever draws the dashboards.

They count through the OpenTelemetry API: without an exporter a call costs next to nothing.
"""

from collections.abc import Callable, Iterable, Mapping

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Meter, Observation

Counted = Callable[[], Mapping[tuple[str, str], int]]
"""How many, by tenant and state."""


class Meters:
    """One instrument for each thing that is counted where it happens."""

    def __init__(self, meter: Meter) -> None:
        prefix = "connectsoft.factory"
        self._runs_accepted = meter.create_counter(
            f"{prefix}.runs.accepted", unit="{run}", description="Runs that were accepted"
        )
        self._attempt_duration = meter.create_histogram(
            f"{prefix}.attempts.duration", unit="s", description="From an attempt's dispatch to its outcome"
        )
        self._leases_expired = meter.create_counter(
            f"{prefix}.leases.expired", unit="{lease}", description="Leases that lapsed without an outcome"
        )
        self._approval_age = meter.create_histogram(
            f"{prefix}.approvals.pending_age", unit="s", description="How long an approval was pending"
        )
        self._outbox_lag = meter.create_histogram(
            f"{prefix}.outbox.lag", unit="s", description="From an event's commit to its publication"
        )

        self._active: Counted = dict
        self._seen: set[tuple[str, str]] = set()
        meter.create_observable_up_down_counter(
            f"{prefix}.runs.active",
            callbacks=[self._observe_active],
            unit="{run}",
            description="Runs that are not over, counted in the database when it is asked",
        )

    def count_active(self, count: "Counted") -> None:
        """Whoever keeps runs says how to count them: by tenant and state."""
        self._active = count

    def _observe_active(self, options: CallbackOptions) -> Iterable[Observation]:
        """Counted anew each time, so that it is right after any restart; a series that was told ends at 0."""
        found = self._active()
        self._seen |= set(found)
        for tenant, state in sorted(self._seen):
            yield Observation(found.get((tenant, state), 0), {"tenant": tenant, "state": state})

    def run_accepted(self, tenant: str, project: str, workflow: str) -> None:
        self._runs_accepted.add(1, {"tenant": tenant, "project": project, "workflow": workflow})

    def attempt_settled(self, seconds: float, *, tenant: str, agent: str, outcome: str) -> None:
        self._attempt_duration.record(seconds, {"tenant": tenant, "agent": agent, "outcome": outcome})

    def lease_expired(self, tenant: str) -> None:
        self._leases_expired.add(1, {"tenant": tenant})

    def approval_closed(self, seconds: float, *, tenant: str, action_class: str) -> None:
        self._approval_age.record(seconds, {"tenant": tenant, "actionClass": action_class})

    def outbox_published(self, seconds: float, *, host: str) -> None:
        self._outbox_lag.record(seconds, {"host": host})


_house = Meters(metrics.get_meter("factory"))
count_active = _house.count_active
run_accepted = _house.run_accepted
attempt_settled = _house.attempt_settled
lease_expired = _house.lease_expired
approval_closed = _house.approval_closed
outbox_published = _house.outbox_published
