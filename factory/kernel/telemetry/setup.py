"""Exporters, once per process: OTLP where an endpoint is set, and OpenMetrics for whoever asks."""

import os
import threading
from collections.abc import Iterator

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from factory.kernel.telemetry.meters import SECONDS, counted, meters

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"

_lock = threading.Lock()
_started = False


def start(service: str) -> None:
    """Install the providers, if there is an endpoint to send to; the second call does nothing."""
    global _started
    with _lock:
        if _started or not os.environ.get(ENDPOINT):
            return
        _started = True
        resource = Resource.create({"service.name": f"factory-{service}"})
        views = [View(instrument_unit="s", aggregation=ExplicitBucketHistogramAggregation(SECONDS))]
        metrics.set_meter_provider(MeterProvider([_otlp_metrics()], resource=resource, views=views))
        trace.set_tracer_provider(_tracer_provider(resource))


def _registry() -> CollectorRegistry:
    """Return what is shown: this process's counts, or those of all that share `FACTORY_METRICS_DIR`."""
    registry = CollectorRegistry()
    registry.register(meters)
    if settings.FACTORY_METRICS_SHARED:
        MultiProcessCollector(registry, settings.FACTORY_METRICS_DIR)  # type: ignore[no-untyped-call]
    else:
        registry.register(counted)
    return registry


class _Ending(Collector):
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
    try:
        start_http_server(port, address, registry=_Ending(_registry()))
    except OSError as fault:
        raise ImproperlyConfigured(f"FACTORY_METRICS_PORT {port} on {address}: {fault.strerror}.") from fault


def exposition() -> tuple[bytes, str]:
    """Return what was measured, as OpenMetrics, and its content type."""
    body: bytes = generate_latest(_registry())  # type: ignore[no-untyped-call]
    return body, CONTENT_TYPE_LATEST


def _otlp_metrics() -> MetricReader:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return PeriodicExportingMetricReader(OTLPMetricExporter())


def _tracer_provider(resource: Resource) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
