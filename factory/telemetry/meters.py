"""The meters of the house. Names, units and dimensions are a promise to whoever draws the dashboards.

They count through the OpenTelemetry API: without an exporter a call costs next to nothing.
"""

from opentelemetry import metrics
from opentelemetry.metrics import Meter


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
run_accepted = _house.run_accepted
attempt_settled = _house.attempt_settled
lease_expired = _house.lease_expired
approval_closed = _house.approval_closed
outbox_published = _house.outbox_published
