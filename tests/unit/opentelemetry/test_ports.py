"""Ports with their calls timed: the answers are those of what is behind, and failures are counted by their reason."""

from datetime import UTC, datetime

import pytest
from opentelemetry.trace import StatusCode

from durable_memory.adapters.memory.leases import MemoryLeaseStore
from durable_memory.adapters.memory.vector_index import MemoryVectorIndex
from durable_memory.adapters.opentelemetry import ObservedEmbedder, ObservedLeaseStore, ObservedVectorIndex
from durable_memory.adapters.runtime import ManualClock
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure
from durable_memory.ports.vector_index import Consistency
from tests.conformance.index_samples import encoded_segment, entry_of, partition_of, publication
from tests.fixture_embedder import FixtureEmbedder
from tests.measured import Measured

_SECRET = "the content of a memory"


@pytest.fixture
def measured():
    measured = Measured()
    yield measured
    measured.close()


@pytest.fixture
def clock():
    return ManualClock(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def observed(measured, clock):
    """Wraps an adapter."""
    return lambda kind, adapter: kind(adapter, measured.telemetry.tracer, measured.telemetry.meter, clock)


async def test_an_embedders_answers_pass_and_its_failures_are_counted_by_reason(measured, observed):
    inner = FixtureEmbedder()
    embedder = observed(ObservedEmbedder, inner)
    assert await embedder.open() == inner.generation
    assert await embedder.embed_passages([_SECRET, "more"]) == await inner.embed_passages([_SECRET, "more"])
    assert await embedder.embed_query(_SECRET) == await inner.embed_query(_SECRET)
    assert embedder.usage is inner.usage
    inner.failures.append(EmbeddingError(EmbeddingFailure.TIMEOUT, retryable=True))
    with pytest.raises(EmbeddingError):
        await embedder.embed_query(_SECRET)
    await embedder.close()

    assert not inner.is_open
    assert measured.points("embedding.duration") == {
        ("open", "OK"): 1,
        ("passages", "OK"): 1,
        ("query", "OK"): 1,
        ("query", "TIMEOUT"): 1,
    }
    passages, failed = measured.spans[1], measured.spans[-1]
    assert dict(passages.attributes) == {
        "durable_memory.embedding.inputs": 2,
        "durable_memory.embedding.characters": len(_SECRET) + 4,
    }
    assert failed.attributes["error.type"] == "TIMEOUT"
    assert failed.status.status_code is StatusCode.ERROR
    assert _SECRET not in measured.text()


async def test_leases_are_counted_by_what_became_of_them(measured, observed, clock):
    leases = observed(ObservedLeaseStore, MemoryLeaseStore(clock))
    lease = await leases.acquire("p", "one", ttl_seconds=600, floor=0, nonce="1")
    with pytest.raises(DomainError):
        await leases.acquire("p", "two", ttl_seconds=600, floor=0, nonce="2")
    await leases.renew(lease)
    assert (await leases.inspect("p")).owner == "one"
    await leases.release(lease)
    with pytest.raises(DomainError):
        await leases.renew(lease)

    assert measured.points("lease.duration") == {
        ("acquire", "OK"): 1,
        ("acquire", "LEASE_HELD"): 1,
        ("renew", "OK"): 1,
        ("inspect", "OK"): 1,
        ("release", "OK"): 1,
        ("renew", "LEASE_FENCED"): 1,
    }
    assert measured.spans[0].attributes["durable_memory.lease.fence"] == lease.fence


async def test_publications_are_counted_by_outcome_and_staged_bytes_are_added_up(measured, observed, clock):
    leases = MemoryLeaseStore(clock)
    index = observed(ObservedVectorIndex, MemoryVectorIndex(leases, clock))
    partition = partition_of("scope")
    assert index.consistency is Consistency.INDEX_REVISION_CAS
    await index.open()
    await index.check()
    lease = await leases.acquire(partition.name, "one", ttl_seconds=600, floor=0, nonce="1")
    encoded = encoded_segment(["node-of-somebody"])
    await index.stage(partition, "s1", encoded, ttl_seconds=600)
    await index.keep_staged(partition, {"s1"}, ttl_seconds=600)
    published = publication(partition, lease, entry_of(encoded, "s1", 1))
    manifest = await index.publish(published)
    with pytest.raises(DomainError) as refused:
        await index.publish(publication(partition, lease, entry_of(encoded, "s1", 1)))
    assert refused.value.reason is Reason.INDEX_REVISION_CONFLICT
    assert await index.manifest(partition) == manifest
    assert await index.segments(partition, {"s1"}) == {"s1": encoded}
    await index.clear(partition, lease)
    await index.close()

    assert measured.points("index.publications") == {("OK",): 1, ("INDEX_REVISION_CONFLICT",): 1}
    assert measured.value("index.staged") == len(encoded)
    assert measured.value("index.duration", "publish", "INDEX_REVISION_CONFLICT") == 1
    assert measured.value("index.duration", "segments", "OK") == 1
    assert "node-of-somebody" not in measured.text()
    assert all(not span.attributes or "acme" not in str(dict(span.attributes)) for span in measured.spans)
