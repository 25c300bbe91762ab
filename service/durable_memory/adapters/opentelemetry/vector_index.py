"""`VectorIndex` with its calls timed, and its publications counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from opentelemetry.metrics import Meter
from opentelemetry.trace import Tracer

from durable_memory.adapters.opentelemetry.timed_calls import OK, TimedCalls, outcome_of
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import Manifest
from durable_memory.ports.leases import Lease
from durable_memory.ports.runtime import Clock
from durable_memory.ports.vector_index import Consistency, Publication, VectorIndex


class ObservedVectorIndex:
    """Spans name partitions by their digests."""

    def __init__(self, index: VectorIndex, tracer: Tracer, meter: Meter, clock: Clock) -> None:
        self._index = index
        self._calls = TimedCalls(tracer, meter, clock, "index", "Duration of calls of the vector index, by outcome")
        self._publications = meter.create_counter(
            "durable_memory.index.publications",
            unit="{publication}",
            description="Attempts to publish, by outcome; every outcome but OK and OUTCOME_UNKNOWN changed nothing",
        )
        self._staged = meter.create_counter(
            "durable_memory.index.staged", unit="By", description="Bytes of segments written for publications"
        )

    @property
    def consistency(self) -> Consistency:
        return self._index.consistency

    @property
    def connections(self) -> int:
        return self._index.connections

    async def open(self) -> None:
        with self._calls.call("open"):
            await self._index.open()

    async def close(self) -> None:
        await self._index.close()

    async def check(self) -> None:
        await self._index.check()

    async def manifest(self, partition: Partition) -> Manifest | None:
        with self._calls.call("manifest", _of(partition)):
            return await self._index.manifest(partition)

    async def segments(self, partition: Partition, segment_ids: Collection[str]) -> Mapping[str, bytes]:
        with self._calls.call("segments", _of(partition)) as span:
            found = await self._index.segments(partition, segment_ids)
            span.set_attribute("durable_memory.index.bytes", sum(map(len, found.values())))
            return found

    async def stage(self, partition: Partition, segment_id: str, encoded: bytes, *, ttl_seconds: float) -> None:
        with self._calls.call("stage", {**_of(partition), "durable_memory.index.bytes": len(encoded)}):
            await self._index.stage(partition, segment_id, encoded, ttl_seconds=ttl_seconds)
        self._staged.add(len(encoded))

    async def keep_staged(self, partition: Partition, segment_ids: Collection[str], *, ttl_seconds: float) -> None:
        with self._calls.call("keep_staged", _of(partition)):
            await self._index.keep_staged(partition, segment_ids, ttl_seconds=ttl_seconds)

    async def publish(self, publication: Publication) -> Manifest:
        attributes = {
            **_of(publication.partition),
            "durable_memory.lease.fence": publication.lease.fence,
            "durable_memory.index.expected_revision": publication.expected_index_revision,
        }
        outcome = OK
        try:
            with self._calls.call("publish", attributes):
                return await self._index.publish(publication)
        except BaseException as error:
            outcome = outcome_of(error)
            raise
        finally:
            self._publications.add(1, {"outcome": outcome})

    async def clear(self, partition: Partition, lease: Lease) -> None:
        with self._calls.call("clear", {**_of(partition), "durable_memory.lease.fence": lease.fence}):
            await self._index.clear(partition, lease)


def _of(partition: Partition) -> dict[str, str | int]:
    return {"durable_memory.partition": partition.name}
