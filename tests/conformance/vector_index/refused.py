"""Refusals that must leave everything as it was."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Partition
from durable_memory.ports.vector_index import VectorIndex


@asynccontextmanager
async def refused(index: VectorIndex, partition: Partition, reason: Reason, **metadata: object) -> AsyncIterator[None]:
    """The block is refused for that reason, with that metadata among others, and changes no published state."""
    before = await index.manifest(partition)
    ids = [] if before is None else [entry.segment_id for entry in before.segments]
    segments = await index.segments(partition, ids)
    with pytest.raises(DomainError) as refusal:
        yield
    assert refusal.value.reason is reason
    assert {name: refusal.value.metadata.get(name) for name in metadata} == {
        name: str(value) for name, value in metadata.items()
    }
    assert await index.manifest(partition) == before
    assert await index.segments(partition, ids) == segments
