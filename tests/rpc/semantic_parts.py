"""Semantic recall for the servers of these tests: the real use cases over a store's own adapters, and a provider whose
vectors mean nothing and which fails when it is told to."""

from __future__ import annotations

import asyncio
import hashlib
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from durable_memory.adapters.memory import MemoryStore
from durable_memory.adapters.memory.leases import MemoryLeaseStore
from durable_memory.adapters.memory.semantic_records import MemorySemanticRecords
from durable_memory.adapters.memory.vector_index import MemoryVectorIndex
from durable_memory.adapters.sqlite import SqliteStore
from durable_memory.adapters.sqlite.leases import SqliteLeaseStore
from durable_memory.adapters.sqlite.semantic_records import SqliteSemanticRecords
from durable_memory.adapters.sqlite.vector_index import SqliteVectorIndex
from durable_memory.app.semantic.current import CurrentGeneration
from durable_memory.app.semantic.lease_holder import LeaseHolder
from durable_memory.app.semantic.maintenance import Maintenance
from durable_memory.app.semantic.refresh import RefreshLimits, RefreshService
from durable_memory.app.semantic.service import SemanticService
from durable_memory.app.semantic.vector_cache import VectorCache
from durable_memory.app.services import AppServices, build_services
from durable_memory.app.sessions import PolicyDefaults, PolicyRequest, SessionService
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Generation, Partition
from durable_memory.domain.session import (
    DEFAULT_CANDIDATE_LIMIT,
    DEFAULT_MIN_SIMILARITY,
    RecallMode,
    RecallPolicy,
    SemanticGeneration,
)
from durable_memory.ports.embedder import EmbeddingError, EmbeddingUsage
from durable_memory.ports.leases import LeaseStore
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.ports.semantic_records import SemanticRecords
from durable_memory.ports.store import Store
from durable_memory.ports.vector_index import VectorIndex

GENERATION = Generation(provider="test", model="hashed-text", revision="1", dimension=8)


class ScriptedEmbedder:
    """A vector for each text. `failure` is raised instead, `gate` is waited at; `cancelled` counts calls cut short."""

    def __init__(self) -> None:
        self.usage = EmbeddingUsage()
        self.failure: EmbeddingError | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = asyncio.Event()
        self.cancelled = 0

    async def open(self) -> Generation:
        return GENERATION

    async def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        self.usage.calls += 1
        self.usage.inputs += len(texts)
        self.waiting.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.failure is not None:
            raise self.failure
        return [_unit(text) for text in texts]

    async def embed_query(self, text: str) -> bytes:
        return _unit(text)

    async def close(self) -> None:
        """There is nothing to let go of."""


class SemanticParts:
    """Adds semantic recall to the use cases of an application, and lets a test reach what is behind it.

    Sessions are bound to `binds`, those in LEXICAL mode to nothing.
    """

    def __init__(self) -> None:
        self.embedder = ScriptedEmbedder()
        self.binds = GENERATION
        self.current: CurrentGeneration
        self.records: SemanticRecords
        self.index: Any
        self.leases: LeaseStore
        self.holder: LeaseHolder
        self.maintenance: Maintenance

    def build_services(self, store: Store, clock: Clock, ids: Ids, **bounds: Any) -> AppServices:
        """What `app.services.build_services` makes, with these parts."""
        services = build_services(store, clock, ids, **bounds)
        self.current = services.defaults.current
        self.current.value = GENERATION
        self.records, self.leases, self.index = _adapters(store, clock)
        vectors = VectorCache(self.index, budget_bytes=64 * 1024 * 1024)
        holder = self.holder = LeaseHolder(
            self.leases, self.records, clock, ids, owner=ids.random_hex(8), ttl_seconds=30.0
        )
        refresh = RefreshService(
            store,
            self.records,
            self.index,
            holder,
            vectors,
            self.embedder,
            clock,
            ids,
            limits=RefreshLimits(max_records=1_000),
        )
        self.maintenance = Maintenance(
            refresh,
            self.records,
            self.current,
            clock,
            workers=2,
            default_delay_seconds=2.0,
            poll_seconds=0.01,
        )
        sessions = SessionService(store, clock, ids, _Binding(self))
        return replace(
            services,
            sessions=sessions,
            semantic=SemanticService(
                store,
                self.records,
                self.index,
                holder,
                vectors,
                refresh,
                self.maintenance,
                sessions,
                clock,
                current=self.current,
            ),
        )

    def partition(self, tenant: str = "acme", principal: str = "user-1", scope: str = "default") -> Partition:
        return Partition(Namespace(tenant, principal, scope), GENERATION.authority_digest)


class _Binding(PolicyDefaults):
    """Defaults that bind a session to a generation."""

    def __init__(self, parts: SemanticParts) -> None:
        super().__init__()
        object.__setattr__(self, "_parts", parts)

    def settle(self, request: PolicyRequest) -> RecallPolicy:
        policy = super().settle(request)
        if policy.mode is RecallMode.LEXICAL:
            return policy
        parts: SemanticParts = object.__getattribute__(self, "_parts")
        return replace(policy, semantic=_bound(parts.binds))


def _bound(generation: Generation) -> SemanticGeneration:
    return SemanticGeneration(
        authority_digest=generation.authority_digest,
        provider=generation.provider,
        model=generation.model,
        model_revision=generation.revision,
        dimension=generation.dimension,
        normalization=generation.normalization.value,
        metric=generation.metric.value,
        candidate_limit=DEFAULT_CANDIDATE_LIMIT,
        min_similarity=DEFAULT_MIN_SIMILARITY,
    )


def _adapters(store: Store, clock: Clock) -> tuple[SemanticRecords, LeaseStore, VectorIndex]:
    if isinstance(store, SqliteStore):
        return SqliteSemanticRecords(store), SqliteLeaseStore(store, clock), SqliteVectorIndex(store, clock)
    assert isinstance(store, MemoryStore)
    leases = MemoryLeaseStore(clock)
    return MemorySemanticRecords(store), leases, MemoryVectorIndex(leases, clock)


def _unit(text: str) -> bytes:
    """Eight floats of length one."""
    raw = [byte + 1.0 for byte in hashlib.sha256(text.encode()).digest()[:8]]
    length = sum(value * value for value in raw) ** 0.5
    return struct.pack("<8f", *(value / length for value in raw))
