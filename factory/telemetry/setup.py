"""Exporters, once per process: Prometheus always, OTLP where an endpoint is set."""

import os
import threading
from collections.abc import Iterator

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from opentelemetry import metrics, trace
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SECONDS = (0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400, 259200)
"""One scale for all our durations: from an outbox's milliseconds to an approval's three days."""

_lock = threading.Lock()
_registry: CollectorRegistry | None = None


def start(service: str) -> None:
    """Install the providers; the second call does nothing."""
    global _registry
    with _lock:
        if _registry is not None:
            return
        _registry = CollectorRegistry()
        resource = Resource.create({"service.name": f"factory-{service}"})
        readers: list[MetricReader] = [PrometheusMetricReader(registry=_registry)]
        if os.environ.get(ENDPOINT):
            readers.append(_otlp_metrics())
            trace.set_tracer_provider(_tracer_provider(resource))
        views = [View(instrument_unit="s", aggregation=ExplicitBucketHistogramAggregation(SECONDS))]
        metrics.set_meter_provider(MeterProvider(readers, resource=resource, views=views))


class _Ending:
    """A registry as a thread of one request reads it: what it opened to count is closed after it."""

    def __init__(self, registry: Collector) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        try:
            yield from self._registry.collect()
        finally:
            connections.close_all()


def serve(service: str) -> None:
    """`start()`, and show what this process measures on `FACTORY_METRICS_PORT`, if there is one.

    For processes that answer no requests themselves. Raises `ImproperlyConfigured` when the port is taken.
    """
    start(service)
    port, address = settings.FACTORY_METRICS_PORT, settings.FACTORY_METRICS_ADDRESS
    if not port:
        return
    assert _registry is not None
    try:
        start_http_server(port, address, registry=_Ending(_registry))
    except OSError as fault:
        raise ImproperlyConfigured(f"FACTORY_METRICS_PORT {port} on {address}: {fault.strerror}.") from fault


def exposition() -> tuple[bytes, str]:
    """What this process measured, as OpenMetrics, and its content type."""
    start("web")
    assert _registry is not None
    body: bytes = generate_latest(_registry)  # type: ignore[no-untyped-call]
    return body, CONTENT_TYPE_LATEST


def _otlp_metrics() -> MetricReader:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return PeriodicExportingMetricReader(OTLPMetricExporter())


def _tracer_provider(resource: Resource) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
