"""A manifest is read anew by every recall, and decoded only where it has changed."""

from dataclasses import replace

import pytest

from durable_memory.adapters.redis.keys import manifest_key
from durable_memory.domain.errors import DomainError, Reason
from tests.conformance.index_samples import grant, publish
from tests.integration.redis.conftest import OpenIndex


async def test_a_manifest_that_did_not_change_is_decoded_once(redis_server, open_index: OpenIndex, partition):
    opened = await open_index(redis_server.url)
    lease = await grant(opened.leases, partition)
    published = await publish(opened.index, partition, lease)
    first = await opened.index.manifest(partition)
    assert first == published
    assert await opened.index.manifest(partition) is first


async def test_one_byte_that_changed_is_seen_by_the_next_read(redis_server, open_index: OpenIndex, partition):
    opened = await open_index(redis_server.url)
    lease = await grant(opened.leases, partition)
    first = await publish(opened.index, partition, lease)
    assert await opened.index.manifest(partition) == first
    with redis_server.client() as client:
        client.hset(manifest_key(partition.name), "source_revision", first.source_revision + 1)
        later = replace(first, source_revision=first.source_revision + 1)
        assert await opened.index.manifest(partition) == later
        client.hset(manifest_key(partition.name), "segments", "[")
        with pytest.raises(DomainError) as unreadable:
            await opened.index.manifest(partition)
        assert unreadable.value.reason is Reason.DATA_CORRUPTED
        client.delete(manifest_key(partition.name))
    assert await opened.index.manifest(partition) is None
