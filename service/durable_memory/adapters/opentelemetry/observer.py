"""`Observer` by OpenTelemetry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry.metrics import Meter
from opentelemetry.trace import SpanKind, Tracer

from durable_memory.adapters.opentelemetry.timed_calls import SECONDS, outcome_of, quiet_span
from durable_memory.ports.observing import RefreshNotes
from durable_memory.ports.runtime import Clock
from durable_memory.ports.semantic_records import Receipt

_FOUND_UNSERVED: Final = ("REGRESSED", "CORRUPTED")


class OpenTelemetryObserver:
    """Counters of events, and a span for each refresh."""

    def __init__(self, tracer: Tracer, meter: Meter, clock: Clock) -> None:
        self._tracer = tracer
        self._clock = clock
        self._hits = meter.create_counter(
            "durable_memory.recall.hits", unit="{hit}", description="Hits of recalls, by the channel that found them"
        )
        self._degraded = meter.create_counter(
            "durable_memory.recall.degraded",
            unit="{recall}",
            description="Recalls whose semantic branch could not answer, by the mode asked for and the reason",
        )
        self._vectors = meter.create_counter(
            "durable_memory.recall.vectors",
            unit="{vector}",
            description="Vectors that recalls have searched, dropped as outdated, and refilled from the next ones",
        )
        self._cache = meter.create_counter(
            "durable_memory.embedding.cache",
            unit="{vector}",
            description="Vectors that refreshes looked for in the repository, by whether they were there",
        )
        self._found = {
            state: meter.create_counter(
                f"durable_memory.index.{state.lower()}",
                unit="{partition}",
                description=f"Partitions found {state}: not served until they are rebuilt",
            )
            for state in _FOUND_UNSERVED
        }
        self._leases_lost = meter.create_counter(
            "durable_memory.lease.lost", unit="{lease}", description="Leases lost while work was done under them"
        )
        self._refreshes = meter.create_histogram(
            "durable_memory.refresh.duration",
            unit="s",
            description="Duration of refreshes, by outcome: PUBLISHED, UNCHANGED or the reason of the failure",
            explicit_bucket_boundaries_advisory=SECONDS,
        )

    def recall_answered(self, channels: Iterable[str]) -> None:
        for channel, count in Counter(channels).items():
            self._hits.add(count, {"channel": channel})

    def recall_degraded(self, *, mode: str, reason: str) -> None:
        self._degraded.add(1, {"mode": mode, "reason": reason})

    def vectors_searched(self, *, searched: int, dropped: int, refilled: int) -> None:
        for outcome, count in (("searched", searched), ("dropped", dropped), ("refilled", refilled)):
            self._vectors.add(count, {"outcome": outcome})

    def embeddings_cached(self, *, hits: int, misses: int) -> None:
        for result, count in (("hit", hits), ("miss", misses)):
            self._cache.add(count, {"result": result})

    def index_unserved(self, state: str) -> None:
        self._found[state].add(1)

    def lease_lost(self) -> None:
        self._leases_lost.add(1)

    @contextmanager
    def refreshing(self, partition: str, authority_digest: str) -> Iterator[RefreshNotes]:
        notes = RefreshNotes()
        started = self._clock.monotonic()
        outcome = ""
        attributes = {"durable_memory.partition": partition, "durable_memory.authority_digest": authority_digest}
        try:
            with quiet_span(self._tracer, "semantic refresh", SpanKind.INTERNAL, attributes) as span:
                try:
                    yield notes
                finally:
                    if notes.receipt is not None:
                        span.set_attributes(_attributes(notes.receipt))
        except BaseException as error:
            outcome = outcome_of(error)
            raise
        finally:
            if notes.receipt is not None:
                outcome = "PUBLISHED" if _published(notes.receipt) else "UNCHANGED"
            self._refreshes.record(self._clock.monotonic() - started, {"outcome": outcome or "INTERNAL"})


def _published(receipt: Receipt) -> bool:
    work = receipt.work
    return work.added + work.replaced + work.removed > 0


def _attributes(receipt: Receipt) -> dict[str, str | int]:
    work = receipt.work
    return {
        "durable_memory.lease.fence": receipt.fence,
        "durable_memory.index.revision": receipt.index_revision,
        "durable_memory.index.history_digest": receipt.history_digest,
        "durable_memory.namespace_revision": receipt.source_revision,
        "durable_memory.refresh.added": work.added,
        "durable_memory.refresh.replaced": work.replaced,
        "durable_memory.refresh.removed": work.removed,
        "durable_memory.refresh.cache_hits": work.cache_hits,
        "durable_memory.refresh.provider_calls": work.provider_calls,
        "durable_memory.refresh.staged_bytes": work.staged_bytes,
    }
