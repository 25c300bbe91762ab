"""Who counts what the use cases and the ports do: nobody, unless measurements go somewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

from durable_memory.adapters.opentelemetry import (
    ObservedEmbedder,
    ObservedLeaseStore,
    ObservedVectorIndex,
    OpenTelemetryObserver,
    ProcessGauges,
)
from durable_memory.app.semantic.runtime import SemanticParts
from durable_memory.ports.observing import UNOBSERVED, Observer
from durable_memory.ports.runtime import Clock
from durable_memory.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """`gauges` is `None` where nobody would look at them."""

    observer: Observer
    semantic_parts: SemanticParts | None
    """The parts that were given, with their calls timed."""

    gauges: ProcessGauges | None


def observe(semantic_parts: SemanticParts | None, telemetry: Telemetry, clock: Clock) -> Observation:
    """Instruments of their own for each process; the parts stay as they are where nothing is recorded."""
    if not telemetry.is_recording:
        return Observation(observer=UNOBSERVED, semantic_parts=semantic_parts, gauges=None)
    tracer, meter = telemetry.tracer, telemetry.meter
    if semantic_parts is not None:
        semantic_parts = replace(
            semantic_parts,
            embedder=ObservedEmbedder(semantic_parts.embedder, tracer, meter, clock),
            index=ObservedVectorIndex(semantic_parts.index, tracer, meter, clock),
            leases=ObservedLeaseStore(semantic_parts.leases, tracer, meter, clock),
        )
    return Observation(
        observer=OpenTelemetryObserver(tracer, meter, clock), semantic_parts=semantic_parts, gauges=ProcessGauges(meter)
    )
