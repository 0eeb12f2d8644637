"""The meters' names, units and dimensions are a promise."""

import threading
import time
from contextlib import suppress

import httpx
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from factory.kernel.errors import Conflict
from factory.kernel.telemetry import hooks, meters, setup
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import HOST, Streams
from factory.messaging.relay.loop import Relay
from runs.reconcilers import LeaseExpiryReconciler
from runs.selectors.active import active_runs
from tests.support.running import House
from tests.support.web import free_port
from tests.support.world import world


@pytest.mark.requirement("OBS-01", "OBS-02", "OBS-03", "OBS-04", "OBS-05", "OBS-06")
def test_the_meters_have_their_promised_names_units_and_dimensions():
    reader = InMemoryMetricReader()
    shown = CollectorRegistry()
    catalogue = meters.Meters(MeterProvider([reader]).get_meter("test"), shown)
    catalogue.run_accepted("t", "p", "w")
    catalogue.attempt_settled(1.5, tenant="t", agent="a", outcome="Succeeded")
    catalogue.lease_expired("t")
    catalogue.item_failed("relay.handle", "t")
    catalogue.approval_closed(3.0, tenant="t", action_class="shared-write")
    catalogue.outbox_published(0.01, host="h")
    catalogue.count_active(lambda: {("t", "Running"): 2})
    data = reader.get_metrics_data()
    assert data is not None
    found = {
        metric.name: (metric.unit, set(metric.data.data_points[0].attributes or {}))
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
    }
    assert found == {
        "connectsoft.factory.runs.accepted": ("{run}", {"tenant", "project", "workflow"}),
        "connectsoft.factory.runs.active": ("{run}", {"tenant", "state"}),
        "connectsoft.factory.attempts.duration": ("s", {"tenant", "agent", "outcome"}),
        "connectsoft.factory.leases.expired": ("{lease}", {"tenant"}),
        "connectsoft.factory.items.failed": ("{item}", {"tenant", "job"}),
        "connectsoft.factory.approvals.pending_age": ("s", {"tenant", "actionClass"}),
        "connectsoft.factory.outbox.lag": ("s", {"host"}),
    }
    shown.register(catalogue)
    told = {
        family.name: (family.unit, family.samples[0].labels.keys() - {"le"}) for family in shown.collect()
    }
    units = {"s": ("_seconds", "seconds"), "{run}": ("", ""), "{lease}": ("", ""), "{item}": ("", "")}
    assert told == {
        name.replace(".", "_") + units[unit][0]: (units[unit][1], dimensions)
        for name, (unit, dimensions) in found.items()
    }


@pytest.mark.requirement("OBS-07")
def test_a_command_has_a_span_with_ids_and_no_content(tenant_id, monkeypatch):
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(hooks, "_tracer", provider.get_tracer("test"))
    home = world(tenant_id)
    with pytest.raises(Conflict), hooks.command_span("TestSpan", home.requester):
        raise Conflict("hunter2")
    found = {span.name: span for span in spans.get_finished_spans()}
    assert (found["OnboardProject"].attributes or {})["tenant.id"] == tenant_id
    refused = found["TestSpan"]
    assert refused.status.description == "conflict"
    assert "hunter2" not in refused.to_json()


def counted(name: str, **labels: str) -> float | None:
    return meters.counted.get_sample_value(f"connectsoft_factory_{name}", labels)


@pytest.mark.requirement("OBS-01", "OBS-03", "OBS-04", "OBS-05", "OBS-06")
def test_what_happens_is_counted_and_timed_when_it_commits(tenant_id):
    house = House(tenant_id)
    house.run("gated")
    worker = house.hand()
    lost = worker.take()
    house.let_lapse(lost.lease_id)
    LeaseExpiryReconciler().run_once(tenant_id)
    house.make_due(lost.run_id)
    work = worker.take()
    asked = worker.ask(work).approval_id
    house.decide(asked)
    worker.fail(work, "permanent")
    assert (
        counted("runs_accepted_total", tenant=tenant_id, project=str(house.world.project), workflow="gated")
        == 1
    )
    assert counted("leases_expired_total", tenant=tenant_id) == 1
    assert counted("approvals_pending_age_seconds_count", tenant=tenant_id, actionClass="shared-write") == 1
    for outcome in ("TimedOut", "Failed"):
        by = {"tenant": tenant_id, "agent": "analyst", "outcome": outcome}
        assert counted("attempts_duration_seconds_count", **by) == 1
    published = counted("outbox_lag_seconds_count", host=HOST) or 0
    events = drain(Streams(), tenant_id)
    assert events > 5
    assert counted("outbox_lag_seconds_count", host=HOST) == published + events


@pytest.mark.requirement("OBS-02")
def test_active_runs_are_counted_where_they_are_kept_and_end_at_zero(tenant_id):
    reader = InMemoryMetricReader()
    catalogue = meters.Meters(MeterProvider([reader]).get_meter("test"), CollectorRegistry())
    catalogue.count_active(active_runs)

    def told() -> dict[str, int]:
        data = reader.get_metrics_data()
        assert data is not None
        [found] = data.resource_metrics[0].scope_metrics[0].metrics
        points = found.data.data_points
        return {p.attributes["state"]: p.value for p in points if p.attributes["tenant"] == tenant_id}

    house = House(tenant_id)
    house.run("single")
    assert told() == {"Accepted": 1}
    worker = house.hand()
    work = worker.take()
    assert told() == {"Accepted": 0, "Running": 1}
    worker.report(work, output=1)
    assert told() == {"Accepted": 0, "Running": 0}


def backends() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


@pytest.mark.slow
@pytest.mark.requirement("OBS-06")
def test_the_relay_shows_what_it_measures_on_a_port_of_its_own(own_database, settings):
    settings.FACTORY_METRICS_PORT = free_port()
    relay = Relay()
    thread = threading.Thread(target=relay.run, daemon=True)
    thread.start()
    try:
        url, told, ends = (
            f"http://127.0.0.1:{settings.FACTORY_METRICS_PORT}/metrics",
            "",
            time.monotonic() + 60,
        )
        world("t-measured")
        while "connectsoft_factory_outbox_lag_seconds_count" not in told and time.monotonic() < ends:
            with suppress(httpx.TransportError):
                told = httpx.get(url).text
            time.sleep(0.1)
        assert "connectsoft_factory_outbox_lag_seconds_count" in told
        before = backends()
        assert [httpx.get(url).status_code for _ in range(12)] == [200] * 12
        assert backends() < before + 6, (
            "each scrape counts runs in a thread of its own, and leaves its connection"
        )
        with pytest.raises(ImproperlyConfigured, match="FACTORY_METRICS_PORT"):
            setup.serve("relay")
    finally:  # or it would go on relaying what later tests make
        relay.stop()
        thread.join(20)
    assert not thread.is_alive()
