"""One span and one duration for each call of a dependency."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from opentelemetry.metrics import Histogram, Meter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from durable_memory.domain.errors import DomainError
from durable_memory.ports.embedder import EmbeddingError
from durable_memory.ports.runtime import Clock

OK: Final = "OK"

SECONDS: Final = (
    *(0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
"""Bounds of the buckets of durations."""


def outcome_of(error: BaseException) -> str:
    """Why something failed, out of closed lists, without the words of the error: those may quote anything."""
    if isinstance(error, DomainError):
        return error.reason.value
    if isinstance(error, EmbeddingError):
        return error.failure.value
    if isinstance(error, asyncio.CancelledError):
        return "CANCELLED"
    return "INTERNAL"


@contextmanager
def quiet_span(
    tracer: Tracer, name: str, kind: SpanKind, attributes: Mapping[str, str | int] | None = None
) -> Iterator[Span]:
    """A span that tells of an exception why, and never in its words: those may quote content."""
    with tracer.start_as_current_span(
        name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:
            span.set_attribute("error.type", outcome_of(error))
            span.set_status(Status(StatusCode.ERROR))
            raise


class TimedCalls:
    """Calls of one dependency. The spans are named `<dependency> <operation>`."""

    def __init__(self, tracer: Tracer, meter: Meter, clock: Clock, dependency: str, description: str) -> None:
        self._tracer = tracer
        self._clock = clock
        self._dependency = dependency
        self._duration: Histogram = meter.create_histogram(
            f"durable_memory.{dependency}.duration",
            unit="s",
            description=description,
            explicit_bucket_boundaries_advisory=SECONDS,
        )

    @contextmanager
    def call(self, operation: str, attributes: Mapping[str, str | int] | None = None) -> Iterator[Span]:
        """Around one call; `attributes` are for its span alone."""
        started = self._clock.monotonic()
        outcome = OK
        try:
            with quiet_span(self._tracer, f"{self._dependency} {operation}", SpanKind.CLIENT, attributes) as span:
                yield span
        except BaseException as error:
            outcome = outcome_of(error)
            raise
        finally:
            self._duration.record(self._clock.monotonic() - started, {"operation": operation, "outcome": outcome})
