"""Telemetry that a test reads back: what was measured, which spans ended, and every word of both."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from durable_memory.telemetry import recording_telemetry


class Measured:
    """`telemetry` records; `close` it at the end."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.telemetry = recording_telemetry("test", SimpleSpanProcessor(self._spans), self._reader)

    def close(self) -> None:
        self.telemetry.shutdown()

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._spans.get_finished_spans()

    def points(self, name: str) -> dict[tuple[Any, ...], float]:
        """The value of each series, by the values of its attributes in the order of their names.

        For a histogram the number of its measurements.
        """
        return {
            tuple(value for _, value in sorted(point.attributes.items())): (
                point.value if isinstance(point, NumberDataPoint) else point.count
            )
            for metric in self._metrics()
            if metric.name == f"durable_memory.{name}"
            for point in metric.data.data_points
        }

    def attributes(self) -> dict[str, set[str]]:
        """The values of each attribute, over all measurements."""
        found: dict[str, set[str]] = {}
        for metric in self._metrics():
            for point in metric.data.data_points:
                for name, value in (point.attributes or {}).items():
                    found.setdefault(name, set()).add(str(value))
        return found

    def value(self, name: str, *attributes: str) -> float | None:
        """Of one series; `None` if nothing was measured."""
        return self.points(name).get(attributes)

    def text(self) -> str:
        """All that would be sent."""
        data = self._reader.get_metrics_data()
        measurements = "" if data is None else data.to_json()
        return measurements + "".join(span.to_json() for span in self.spans)

    def _metrics(self) -> list[Any]:
        data = self._reader.get_metrics_data()
        if data is None:
            return []
        return [
            metric for resource in data.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics
        ]
