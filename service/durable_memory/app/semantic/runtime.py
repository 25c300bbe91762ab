"""Everything of semantic recall that lives as long as the process, and comes up when its parts can be reached.

A server whose provider or index is down or slow at the start serves all the same: recall is lexical and says so, and
this keeps trying. What it makes is known once the provider has answered, and is then on record for every start to come:
sessions are bound to it although the provider is away. Only where a provider of the configuration has never answered
anybody, sessions that open are bound to no generation; so the start waits a little for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from copy import deepcopy
from dataclasses import dataclass
from typing import Final

import structlog

from durable_memory.app.defects import exception_types, frames
from durable_memory.app.semantic.current import CurrentGeneration
from durable_memory.app.semantic.health import SemanticHealth
from durable_memory.app.semantic.lease_holder import LeaseHolder
from durable_memory.app.semantic.maintenance import Maintenance
from durable_memory.app.semantic.refresh import RefreshService
from durable_memory.app.semantic.refresh_limits import RefreshLimits
from durable_memory.app.semantic.search import SemanticSearch
from durable_memory.app.semantic.vector_cache import VectorCache
from durable_memory.app.views.revisions import RevisionCache
from durable_memory.domain.errors import DomainError
from durable_memory.domain.semantic.generation import Generation
from durable_memory.ports.embedder import Embedder, EmbeddingError
from durable_memory.ports.leases import LeaseStore
from durable_memory.ports.observing import UNOBSERVED, Observer, SemanticState
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.ports.semantic_records import SemanticRecords
from durable_memory.ports.store import Store
from durable_memory.ports.vector_index import VectorIndex
from durable_memory.tasks import end

_START_SECONDS: Final = 5.0
"""How long the start of the server waits for provider and index: a packaged model takes a tenth of one, or a few from a
slow disk."""

_FIRST_RETRY_SECONDS: Final = 0.5
_MOST_RETRY_SECONDS: Final = 30.0

_log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticParts:
    """The adapters, and what bounds their use."""

    embedder: Embedder
    index: VectorIndex
    leases: LeaseStore
    records: SemanticRecords
    vector_budget_bytes: int
    lease_ttl_seconds: float
    workers: int
    default_delay_seconds: float
    poll_seconds: float
    limits: RefreshLimits
    search_budget_seconds: float = 2.0
    """How long AUTO waits for the semantic branch of a recall."""


class SemanticRuntime:
    """Owns the embedder and the index, and starts maintenance when both are there."""

    def __init__(
        self,
        parts: SemanticParts,
        store: Store,
        revisions: RevisionCache,
        clock: Clock,
        ids: Ids,
        current: CurrentGeneration,
        observer: Observer = UNOBSERVED,
    ) -> None:
        self._parts = parts
        self._clock = clock
        self._current = current
        current.has_provider = True
        self.health: Final = SemanticHealth(parts.index, parts.records, parts.embedder, current, clock, observer)
        self.vectors: Final = VectorCache(parts.index, self.health, budget_bytes=parts.vector_budget_bytes)
        self.search: Final = SemanticSearch(
            store, parts.index, parts.records, self.vectors, revisions, parts.embedder, self.health, observer
        )
        self.holder: Final = LeaseHolder(
            parts.leases,
            parts.records,
            clock,
            ids,
            owner=ids.random_hex(16),
            ttl_seconds=parts.lease_ttl_seconds,
            observer=observer,
        )
        self.refresh: Final = RefreshService(
            store,
            parts.records,
            parts.index,
            self.holder,
            self.vectors,
            parts.embedder,
            clock,
            ids,
            self.health,
            observer,
            limits=parts.limits,
        )
        self.maintenance: Final = Maintenance(
            self.refresh,
            parts.records,
            current,
            clock,
            self.health,
            workers=parts.workers,
            default_delay_seconds=parts.default_delay_seconds,
            poll_seconds=parts.poll_seconds,
        )
        self._starting: list[asyncio.Task[None] | asyncio.Task[bool]] = []

    @property
    def index(self) -> VectorIndex:
        return self._parts.index

    @property
    def records(self) -> SemanticRecords:
        return self._parts.records

    @property
    def generation(self) -> Generation | None:
        """What the provider has answered that it makes."""
        return self._current.value

    def state(self) -> SemanticState:
        """How semantic recall stands in this process."""
        health, maintenance = self.health, self.maintenance.health()
        views = list(self.vectors.views)
        return SemanticState(
            serving=health.serving,
            index_available=health.index_available,
            embedder_available=health.embedder_available,
            unserved_partitions=health.unserved_partitions,
            unembedded_nodes=health.unembedded_nodes,
            vector_views=len(views),
            vectors=sum(map(len, views)),
            vector_bytes=sum(view.nbytes for view in views),
            maintenance_running=maintenance.running,
            maintenance_runs=maintenance.runs,
            maintenance_failures=maintenance.failures,
            usage=deepcopy(self._parts.embedder.usage),
        )

    async def start(self) -> None:
        """Come up now if that works in a moment, otherwise keep trying. The store is open."""
        first = asyncio.create_task(self._come_up(), name="semantic recall comes up")
        self._starting = [first]
        try:
            await asyncio.wait({first}, timeout=_START_SECONDS)
        except asyncio.CancelledError:
            first.cancel()
            raise
        if not first.done() or not first.result():
            trying = asyncio.create_task(self._keep_trying(first), name="semantic recall keeps trying")
            self._starting.append(trying)

    async def close(self) -> None:
        """Stop everything and let go of embedder and index. Idempotent."""
        starting, self._starting = self._starting, []
        await end(starting)
        await self.maintenance.stop()
        await self.search.close()
        await self.vectors.close()
        await self._parts.embedder.close()
        await self._parts.index.close()

    async def _come_up(self) -> bool:
        """Each part that can be reached; all of it may be repeated. The provider and the index come side by side: what
        can be told, or read, without the one is there while it is away."""
        if self._current.known is None:
            self._current.recorded = await self._recorded()
        try:
            async with asyncio.TaskGroup() as group:
                answering = group.create_task(self._open_embedder(), name="open the embedder")
                reaching = group.create_task(self._open_index(), name="open the index")
        except* Exception as defects:  # noqa: BLE001 - raised again, as what it is: it ends the start
            defect = defects.exceptions[0]
        else:
            return self._begin(answering.result(), reached=reaching.result())
        raise defect

    def _begin(self, generation: Generation | None, *, reached: bool) -> bool:
        if generation is None or not reached:
            return False
        self.maintenance.start()
        _log.info(
            "semantic_ready",
            provider=generation.provider,
            model=generation.model,
            dimension=generation.dimension,
            authority_digest=generation.authority_digest,
        )
        return True

    async def _recorded(self) -> Generation | None:
        try:
            return await self._parts.records.served_generation(self._parts.embedder.configuration_digest)
        except DomainError as error:
            _log.warning("semantic_generation_not_read", reason=error.reason.value, problem=error.message)
            return None

    async def _open_embedder(self) -> Generation | None:
        """What the provider makes, on record from now on; `None` if that is not known, or not on record."""
        try:
            generation = self._current.value = await self._parts.embedder.open()
            if generation != self._current.recorded:
                digest = self._parts.embedder.configuration_digest
                await self._parts.records.record_generation(digest, generation, self._clock.now())
                self._current.recorded = generation
        except EmbeddingError as error:
            self._current.trouble = error
            _log.warning("semantic_not_ready", cause="PROVIDER_FAILED", **error.for_log)
            return None
        except DomainError as error:
            _log.warning("semantic_not_ready", cause=error.reason.value, problem=error.message)
            return None
        return generation

    async def _open_index(self) -> bool:
        try:
            await self._parts.index.open()
        except DomainError as error:
            _log.warning("semantic_not_ready", cause=error.reason.value, problem=error.message)
            return False
        return True

    async def _keep_trying(self, attempt: Awaitable[bool]) -> None:
        pause = _FIRST_RETRY_SECONDS
        while not await _succeeds(attempt):
            await asyncio.sleep(pause)
            pause = min(pause * 2, _MOST_RETRY_SECONDS)
            attempt = self._come_up()


async def _succeeds(attempt: Awaitable[bool]) -> bool:
    try:
        return await attempt
    except Exception as error:  # noqa: BLE001 - on record: the server serves already, and nobody else would try again
        _log.error("semantic_defect", exceptions=exception_types(error), frames=frames(error))
        return False
