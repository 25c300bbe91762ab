"""A process with semantic recall over memory adapters, and a provider whose vectors a test gives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from durable_memory.adapters.memory.leases import MemoryLeaseStore
from durable_memory.adapters.memory.semantic_records import MemorySemanticRecords
from durable_memory.adapters.memory.vector_index import MemoryVectorIndex
from durable_memory.adapters.runtime import ManualClock
from durable_memory.app.recall_result import RecallAnswer
from durable_memory.app.semantic.maintenance import Maintenance
from durable_memory.app.semantic.partition_state import IndexState
from durable_memory.app.semantic.refresh_limits import RefreshLimits
from durable_memory.app.semantic.refresh_progress import RefreshProgress
from durable_memory.app.semantic.runtime import SemanticParts, SemanticRuntime
from durable_memory.app.semantic.service import IndexStatus, SemanticService
from durable_memory.app.services import build_services
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Partition
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure
from durable_memory.ports.semantic_records import Receipt
from durable_memory.ports.vector_index import Consistency
from tests.fixture_embedder import DIMENSION, FixtureEmbedder
from tests.unit.app.stores import HookedStore
from tests.unit.app.world import PLENTY, START, CountingIds, World, opened_store

TEA, RAIN, MONEY = "Kettles boil water.", "Umbrellas stop drizzle.", "Invoices fall due monthly."
ABOUT_TEA, ABOUT_RAIN, ABOUT_MONEY = "warm beverage", "bad weather", "owed sums"
"""Queries that have no word in common with what they are about."""

TTL_SECONDS = 30.0


def axis(place: int) -> list[float]:
    return [float(place == other) for other in range(DIMENSION)]


VECTORS: Mapping[str, Sequence[float]] = {
    text: axis(place)
    for place, texts in enumerate(((TEA, ABOUT_TEA), (RAIN, ABOUT_RAIN), (MONEY, ABOUT_MONEY)))
    for text in texts
}


class GatedEmbedder(FixtureEmbedder):
    """Waits at `gate`, and for questions at `query_gate`; both are open at first, and `waiting` and `asked` tell that a
    call has come there.
    """

    def __init__(self, vectors: Mapping[str, Sequence[float]] = VECTORS, **more: Any) -> None:
        super().__init__(vectors, **more)
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = asyncio.Event()
        self.query_gate = asyncio.Event()
        self.query_gate.set()
        self.asked = asyncio.Event()

    async def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        self.waiting.set()
        await self.gate.wait()
        return await super().embed_passages(texts)

    async def embed_query(self, text: str) -> bytes:
        self.asked.set()
        await self.query_gate.wait()
        return await super().embed_query(text)

    def fail_next(self) -> None:
        self.failures.append(EmbeddingError(EmbeddingFailure.UNREACHABLE, retryable=True))


@dataclass
class Backing:
    """What replicas share."""

    store: HookedStore
    clock: ManualClock
    leases: MemoryLeaseStore
    index: HookedStore
    records: HookedStore

    @classmethod
    async def make(cls) -> Backing:
        store, clock = await opened_store(CountingIds("store")), ManualClock(START)
        leases = MemoryLeaseStore(clock)
        index = HookedStore(MemoryVectorIndex(leases, clock))
        return cls(HookedStore(store), clock, leases, index, HookedStore(MemorySemanticRecords(store)))

    def lose_index(self) -> None:
        """All that the index held is gone, as after a restart without its data."""
        self.index._store._indexes.clear()

    def keep_index(self) -> Any:
        """What `lay_back` takes the index back to."""
        return {name: (held.manifest, dict(held.segments)) for name, held in self.index._store._indexes.items()}

    def lay_back(self, kept: Any) -> None:
        for name, (manifest, segments) in kept.items():
            held = self.index._store._indexes[name]
            held.manifest, held.segments = manifest, segments

    def drop_segments(self, but: Collection[str]) -> None:
        """All segments vanish, but those: of them staged ones alone, where `but` are the published ones."""
        for held in self.index._store._indexes.values():
            for segment_id in held.segments.keys() - but:
                del held.segments[segment_id]

    def damage_segments(self) -> None:
        for held in self.index._store._indexes.values():
            for stored in held.segments.values():
                stored.encoded = stored.encoded[:-1] + bytes([stored.encoded[-1] ^ 1])


@dataclass
class SemanticWorld(World):
    """One process of it."""

    backing: Backing = field(kw_only=True)
    embedder: GatedEmbedder = field(kw_only=True)
    reported: list[RefreshProgress] = field(default_factory=list)

    @property
    def semantic(self) -> SemanticService:
        assert self.app.semantic is not None
        return self.app.semantic

    @property
    def runtime(self) -> SemanticRuntime:
        assert self.app.runtime is not None
        return self.app.runtime

    @property
    def partition(self) -> Partition:
        return self.partition_of(self.namespace)

    def partition_of(self, namespace: Namespace) -> Partition:
        return Partition(namespace, self.embedder.generation.authority_digest)

    async def report(self, progress: RefreshProgress) -> None:
        self.reported.append(progress)

    async def refresh(self, session_id: str = "assistant", **more: Any) -> Receipt:
        return await self.semantic.refresh(self.call, session_id, Consistency.INDEX_REVISION_CAS, self.report, **more)

    async def publish_behind(self) -> Receipt:
        """As maintenance refreshes."""
        return await self.runtime.refresh.refresh(
            self.namespace,
            self.embedder.generation,
            requirement=Consistency.INDEX_REVISION_CAS,
            report=self.report,
            publish_behind=True,
        )

    async def status(self) -> IndexStatus:
        return await self.semantic.status(self.call)

    async def state(self) -> IndexState:
        return (await self.status()).state

    async def open(self, session_id: str = "assistant", **policy: Any) -> None:
        """With a floor under which nothing unrelated passes."""
        await super().open(session_id, **{"min_similarity": 0.9, **policy})

    async def indexed(self, *contents: str, **policy: Any) -> None:
        """An open session, and an index of these memories; their ids are "a", "b", "c"."""
        await self.open(**policy)
        for node_id, content in zip("abc", contents, strict=False):
            await self.remember(content, node_id)
        await self.refresh()

    def provider_calls(self) -> int:
        return self.embedder.usage.calls

    def pass_seconds(self, seconds: float) -> None:
        self.clock.advance(timedelta(seconds=seconds))


@asynccontextmanager
async def semantic_process(
    backing: Backing,
    name: str,
    embedder: GatedEmbedder | None = None,
    *,
    ttl_seconds: float = TTL_SECONDS,
    limits: RefreshLimits | None = None,
    search_budget_seconds: float = 60.0,
) -> AsyncIterator[SemanticWorld]:
    """A process over what `backing` holds; it refreshes nothing by itself."""
    embedder, ids = embedder or GatedEmbedder(), CountingIds(name)
    store: Any = backing.store
    index: Any = backing.index
    records: Any = backing.records
    app = build_services(
        store,
        backing.clock,
        ids,
        view_budget_bytes=PLENTY,
        view_max_bytes=PLENTY,
        revision_cache_bytes=PLENTY,
        semantic_parts=SemanticParts(
            embedder=embedder,
            index=index,
            leases=backing.leases,
            records=records,
            vector_budget_bytes=PLENTY,
            lease_ttl_seconds=ttl_seconds,
            workers=1,
            default_delay_seconds=2.0,
            poll_seconds=3_600.0,
            limits=limits or RefreshLimits(),
            search_budget_seconds=search_budget_seconds,
        ),
    )
    await app.start()
    try:
        yield SemanticWorld(store=store, clock=backing.clock, ids=ids, app=app, backing=backing, embedder=embedder)
    finally:
        await app.close()


@asynccontextmanager
async def maintained(
    world: SemanticWorld, *, workers: int = 1, delay_seconds: float = 0.0
) -> AsyncIterator[Maintenance]:
    """The maintenance of a process, that looks for work all the time."""
    maintenance = Maintenance(
        world.runtime.refresh,
        world.runtime.records,
        world.app.defaults.current,
        world.clock,
        world.runtime.health,
        workers=workers,
        default_delay_seconds=delay_seconds,
        poll_seconds=0.001,
    )
    maintenance.start()
    try:
        yield maintenance
    finally:
        await maintenance.stop()


def looked(world: SemanticWorld, times: int = 3) -> Callable[[], bool]:
    """Whether maintenance has looked for work so many times more."""
    calls = world.backing.records.calls
    before = calls["due"]
    return lambda: calls["due"] >= before + times


def found_ids(answer: RecallAnswer) -> Sequence[str]:
    return [hit.node.node_id for hit in answer.hits]


def phases(reported: Iterable[RefreshProgress]) -> list[str]:
    return [progress.phase.value for progress in reported]
