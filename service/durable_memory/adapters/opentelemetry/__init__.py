"""Spans and measurements, by the OpenTelemetry API: an observer for the use cases, and wrappers around ports.

Attributes of measurements are out of closed lists. Spans also carry digests, revisions and fences; neither ever carries
a name, an id of a memory, a text or the words of an error.
"""

from durable_memory.adapters.opentelemetry.embedder import ObservedEmbedder
from durable_memory.adapters.opentelemetry.leases import ObservedLeaseStore
from durable_memory.adapters.opentelemetry.observer import OpenTelemetryObserver
from durable_memory.adapters.opentelemetry.process_gauges import ProcessGauges
from durable_memory.adapters.opentelemetry.vector_index import ObservedVectorIndex

__all__ = [
    "ObservedEmbedder",
    "ObservedLeaseStore",
    "ObservedVectorIndex",
    "OpenTelemetryObserver",
    "ProcessGauges",
]
