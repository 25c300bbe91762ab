"""Semantic recall for the servers of these tests: the real use cases over a store's own adapters, and a provider whose
vectors mean nothing, and which waits or fails when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from durable_memory.adapters.memory import MemoryStore
from durable_memory.adapters.memory.leases import MemoryLeaseStore
from durable_memory.adapters.memory.semantic_records import MemorySemanticRecords
from durable_memory.adapters.memory.vector_index import MemoryVectorIndex
from durable_memory.adapters.sqlite import SqliteStore
from durable_memory.adapters.sqlite.leases import SqliteLeaseStore
from durable_memory.adapters.sqlite.semantic_records import SqliteSemanticRecords
from durable_memory.adapters.sqlite.vector_index import SqliteVectorIndex
from durable_memory.app.semantic import runtime
from durable_memory.app.semantic.current import CurrentGeneration
from durable_memory.app.semantic.lease_holder import LeaseHolder
from durable_memory.app.semantic.refresh_limits import RefreshLimits
from durable_memory.app.services import AppServices, build_services
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Partition
from durable_memory.ports.leases import LeaseStore
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.ports.semantic_records import SemanticRecords
from durable_memory.ports.store import Store
from durable_memory.ports.vector_index import VectorIndex
from tests.fixture_embedder import FixtureEmbedder

GENERATION = FixtureEmbedder().generation


class GatedEmbedder(FixtureEmbedder):
    """Waits at `gate`, which is open at first. `waiting`: a call has come there. `cancelled` counts those cut short."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = asyncio.Event()
        self.cancelled = 0

    async def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        self.waiting.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return await super().embed_passages(texts)


class SemanticParts:
    """Adds semantic recall to the use cases of an application, and lets a test reach what is behind it.

    Maintenance looks for nothing by itself: a test says what is refreshed, and when.
    """

    def __init__(self) -> None:
        self.embedder = GatedEmbedder()
        self.current: CurrentGeneration
        self.records: SemanticRecords
        self.index: Any
        self.leases: LeaseStore
        self.holder: LeaseHolder

    def build_services(self, store: Store, clock: Clock, ids: Ids, **given: Any) -> AppServices:
        """What `app.services.build_services` makes, with these parts."""
        self.records, self.leases, self.index = _adapters(store, clock)
        given["semantic_parts"] = runtime.SemanticParts(
            embedder=self.embedder,
            index=self.index,
            leases=self.leases,
            records=self.records,
            vector_budget_bytes=64 * 1024 * 1024,
            lease_ttl_seconds=30.0,
            workers=2,
            default_delay_seconds=2.0,
            poll_seconds=3_600.0,
            limits=RefreshLimits(max_records=1_000),
        )
        services = build_services(store, clock, ids, **given)
        assert services.runtime is not None
        self.holder = services.runtime.holder
        self.current = services.defaults.current
        self.current.value = GENERATION
        return services

    def partition(self, tenant: str = "acme", principal: str = "user-1", scope: str = "default") -> Partition:
        return Partition(Namespace(tenant, principal, scope), GENERATION.authority_digest)


def _adapters(store: Store, clock: Clock) -> tuple[SemanticRecords, LeaseStore, VectorIndex]:
    if isinstance(store, SqliteStore):
        return SqliteSemanticRecords(store), SqliteLeaseStore(store, clock), SqliteVectorIndex(store, clock)
    assert isinstance(store, MemoryStore)
    leases = MemoryLeaseStore(clock)
    return MemorySemanticRecords(store), leases, MemoryVectorIndex(leases, clock)
