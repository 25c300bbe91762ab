"""OpenTelemetry and logging: the only module that touches the SDK, and the only one that configures structlog."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, TextIO

import structlog
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter, NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NoOpTracerProvider, Tracer

from durable_memory import __version__
from durable_memory.app.defects import exception_types, frames
from durable_memory.config import TelemetrySettings

_log = structlog.stdlib.get_logger(__name__)

_SCOPE = "durable_memory"
_FLUSH_MILLIS = 2_000


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Where spans and measurements go; nothing is global, so servers in one process do not mix theirs."""

    tracers: trace.TracerProvider
    meters: metrics.MeterProvider

    @property
    def tracer(self) -> Tracer:
        return self.tracers.get_tracer(_SCOPE, __version__)

    @property
    def meter(self) -> Meter:
        return self.meters.get_meter(_SCOPE, __version__)

    @property
    def is_recording(self) -> bool:
        """Whether anything comes of a span or a measurement."""
        return not (isinstance(self.tracers, NoOpTracerProvider) and isinstance(self.meters, NoOpMeterProvider))

    def shutdown(self) -> None:
        """Send what is left, for at most a few seconds, and end the exporters' threads. Blocks."""
        if isinstance(self.tracers, TracerProvider):
            self.tracers.force_flush(_FLUSH_MILLIS)
            self.tracers.shutdown()
        if isinstance(self.meters, MeterProvider):
            self.meters.shutdown(_FLUSH_MILLIS)


def build_telemetry(settings: TelemetrySettings) -> Telemetry:
    """Exporters to the OTLP endpoint; without one nothing is recorded and nothing is sent."""
    endpoint = settings.otlp_endpoint
    if endpoint is None:
        return Telemetry(NoOpTracerProvider(), NoOpMeterProvider())
    insecure = not endpoint.startswith("https://")
    return recording_telemetry(
        settings.service_name,
        BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, insecure=insecure)),
        PeriodicExportingMetricReader(
            OTLPMetricExporter(endpoint=endpoint, insecure=insecure),
            export_interval_millis=settings.metrics_interval_seconds * 1000,
        ),
    )


def recording_telemetry(service_name: str, spans: SpanProcessor, measurements: MetricReader) -> Telemetry:
    """Telemetry that hands spans and measurements to the given receivers."""
    resource = Resource.create({"service.name": service_name, "service.version": __version__})
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    tracers.add_span_processor(spans)
    meters = MeterProvider(metric_readers=[measurements], resource=resource, shutdown_on_exit=False)
    return Telemetry(tracers, meters)


def configure_logging(level: str, output: TextIO | None = None) -> None:
    """One JSON object per line on stderr, for this service's events and for what its libraries log."""
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_trace,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(output or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _exception_place,
                structlog.processors.JSONRenderer(ensure_ascii=False),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())


def log_unhandled_by_place(loop: asyncio.AbstractEventLoop) -> None:
    """What nobody handled is logged by its type and place: what the event loop writes by itself quotes the text."""
    loop.set_exception_handler(_log_unhandled)


def _log_unhandled(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    task = context.get("task") or context.get("future")
    _log.error(
        "unhandled",
        task=task.get_name() if isinstance(task, asyncio.Task) else None,
        exceptions=exception_types(error),
        frames=[] if error is None else frames(error),
        # The event loop's own words: of an exception they quote what it says, and without one they are fixed.
        **({"problem": context["message"]} if error is None else {}),
    )


def _add_trace(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = trace.format_trace_id(context.trace_id)
        event["span_id"] = trace.format_span_id(context.span_id)
    return event


def _exception_place(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    # Libraries log exceptions with their text and locals at hand; the type is what may be shown.
    information = event.pop("exc_info", None)
    if isinstance(information, tuple) and information[0] is not None:
        event["exception"] = f"{information[0].__module__}.{information[0].__qualname__}"
    return event
