"""The meters of the house. Names, units and dimensions are a promise to whoever draws the dashboards.

They count through the OpenTelemetry API: without an exporter a call costs next to nothing.
"""

from opentelemetry import metrics

_meter = metrics.get_meter("factory")
_runs_accepted = _meter.create_counter(
    "connectsoft.factory.runs.accepted", unit="{run}", description="Runs that were accepted"
)
_attempt_duration = _meter.create_histogram(
    "connectsoft.factory.attempts.duration", unit="s", description="From an attempt's dispatch to its outcome"
)
_leases_expired = _meter.create_counter(
    "connectsoft.factory.leases.expired", unit="{lease}", description="Leases that lapsed without an outcome"
)
_approval_age = _meter.create_histogram(
    "connectsoft.factory.approvals.pending_age", unit="s", description="How long an approval was pending"
)
_outbox_lag = _meter.create_histogram(
    "connectsoft.factory.outbox.lag", unit="s", description="From an event's commit to its publication"
)


def run_accepted(tenant: str, project: str, workflow: str) -> None:
    _runs_accepted.add(1, {"tenant": tenant, "project": project, "workflow": workflow})


def attempt_settled(seconds: float, *, tenant: str, agent: str, outcome: str) -> None:
    _attempt_duration.record(seconds, {"tenant": tenant, "agent": agent, "outcome": outcome})


def lease_expired(tenant: str) -> None:
    _leases_expired.add(1, {"tenant": tenant})


def approval_closed(seconds: float, *, tenant: str, action_class: str) -> None:
    _approval_age.record(seconds, {"tenant": tenant, "actionClass": action_class})


def outbox_published(seconds: float, *, host: str) -> None:
    _outbox_lag.record(seconds, {"host": host})
