"""Whether semantic recall works, as far as this process can tell: the index, the provider, and what is published.

What fails while a call is served is noticed there; here it is looked at again until it is mended, by whichever server,
so that health comes back without a call and without a restart. A provider is tried only while it is in doubt, and by a
text of no meaning.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

import structlog

from durable_memory.app.semantic.current import CurrentGeneration
from durable_memory.app.semantic.partition_state import IndexState, PartitionState, judge
from durable_memory.app.semantic.vector_view import VectorKey
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import Manifest
from durable_memory.ports.embedder import Embedder, EmbeddingError, EmbeddingFailure
from durable_memory.ports.observing import Observer
from durable_memory.ports.runtime import Clock
from durable_memory.ports.semantic_records import SemanticRecords
from durable_memory.ports.vector_index import VectorIndex

REMEMBERED_SECONDS: Final = 600.0
"""For how long a partition that nobody asks for any more counts. One tenant that never mends its index must not keep a
server's health down for all."""

_PARTITIONS: Final = 10_000
_LOOKED_AT_AGAIN: Final = 32
_PROBE: Final = "health"
_UNREADABLE: Final = VectorKey(0, "")
"""No manifest has it, so that any that can be read is another."""

_WELL: Final = frozenset({EmbeddingFailure.RATE_LIMITED})
"""Failures of a provider that works."""

_log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class _Unserved:
    partition: Partition
    state: IndexState
    key: VectorKey | None
    asked_at: float


class SemanticHealth:
    """Told by the use cases what they meet, and asked by `check`, again and again, what is still so."""

    def __init__(
        self,
        index: VectorIndex,
        records: SemanticRecords,
        embedder: Embedder,
        current: CurrentGeneration,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._index = index
        self._records = records
        self._embedder = embedder
        self._current = current
        self._clock = clock
        self._observer = observer
        self._unserved: OrderedDict[str, _Unserved] = OrderedDict()
        self._unembedded: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._failures_seen = 0
        self._failed: EmbeddingError | None = None
        self._changed = asyncio.Event()
        self._index_problem: str | None = None
        self.index_available = True
        self.embedder_available = True

    # What the use cases meet

    def judged(self, partition: Partition, state: PartitionState) -> None:
        """A partition was compared with what the repository says was published."""
        if state.state is IndexState.REGRESSED:
            self._mark(partition, IndexState.REGRESSED, None)
        else:
            self._mended(partition, state)

    def damaged(self, partition: Partition, manifest: Manifest) -> None:
        """A segment of what is published is missing, or not what it was."""
        self._mark(partition, IndexState.CORRUPTED, VectorKey.of(manifest))

    def unreadable(self, partition: Partition) -> None:
        """The manifest of what is published cannot be read."""
        self._mark(partition, IndexState.CORRUPTED, _UNREADABLE)

    def unembedded(self, partition: Partition, count: int) -> None:
        """So many ACTIVE memories have no vector of their present text."""
        self._unembedded.pop(partition.name, None)
        if count:
            self._unembedded[partition.name] = (count, self._clock.monotonic())
            if len(self._unembedded) > _PARTITIONS:
                self._unembedded.popitem(last=False)

    def rebuilt(self, partition: Partition) -> None:
        """A refresh has come through: what is published now was made of what is ACTIVE."""
        if self._unserved.pop(partition.name, None) is not None:
            self._changed.set()

    # How it stands

    def unserved(self) -> list[Partition]:
        """Those that were asked for, and found lost or damaged; what is asked for most comes last."""
        return [item.partition for item in self._unserved.values()]

    async def is_unserved(self, partition: Partition) -> bool:
        """Look again: another server may have rebuilt it. Raises: DEPENDENCY_UNAVAILABLE."""
        try:
            self._mended(partition, await judge(self._index, self._records, partition))
        except DomainError as error:
            if error.reason is not Reason.DATA_CORRUPTED:
                raise
        return partition.name in self._unserved

    @property
    def serving(self) -> bool:
        """Whether every namespace that is in use can be searched by meaning."""
        return (
            self._current.value is not None
            and self.index_available
            and self.embedder_available
            and not self.unserved_partitions
        )

    @property
    def unserved_partitions(self) -> Mapping[str, int]:
        return Counter(item.state.name for item in self._unserved.values())

    @property
    def unembedded_nodes(self) -> int:
        oldest = self._clock.monotonic() - REMEMBERED_SECONDS
        return sum(count for count, at in self._unembedded.values() if at >= oldest)

    async def check(self, *, timeout_seconds: float) -> None:
        """Look at the index, at a provider in doubt, and at what was found unfit. Never raises."""
        self._changed.clear()
        before = (self.index_available, self.embedder_available, self._index_problem)
        self.index_available = await self._index_answers(timeout_seconds)
        if self._current.value is not None:
            self.embedder_available = await self._embedder_answers()
        self._forget()
        if self.index_available:
            await self._look_again(timeout_seconds)
        if before != (self.index_available, self.embedder_available, self._index_problem):
            told = {} if self.embedder_available or self._failed is None else dict(self._failed.for_log)
            if self._index_problem is not None:
                told["index_problem"] = self._index_problem
            _log.info("semantic_dependencies", index=self.index_available, embedder=self.embedder_available, **told)

    async def wait(self, seconds: float) -> None:
        """Return after that time, or at once when something is found that was not known."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _index_answers(self, timeout_seconds: float) -> bool:
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._index.check()
        except DomainError as error:
            self._index_problem = error.message
        except TimeoutError:
            self._index_problem = "the look at the index took too long"
        else:
            self._index_problem = None
        return self._index_problem is None

    async def _embedder_answers(self) -> bool:
        usage = self._embedder.usage
        failures = sum(count for failure, count in usage.failures.items() if failure not in _WELL)
        if self.embedder_available and failures == self._failures_seen and not usage.circuit_open:
            return True
        try:
            await self._embedder.embed_query(_PROBE)
        except EmbeddingError as error:
            self._failed = error
            answers = error.failure in _WELL
        else:
            answers = True
        usage = self._embedder.usage
        self._failures_seen = sum(count for failure, count in usage.failures.items() if failure not in _WELL)
        return answers

    def _mark(self, partition: Partition, state: IndexState, key: VectorKey | None) -> None:
        known = self._unserved.pop(partition.name, None)
        self._unserved[partition.name] = _Unserved(partition, state, key, self._clock.monotonic())
        if known is None or (known.state, known.key) != (state, key):
            self._observer.index_unserved(state.name)
            self._changed.set()
            _log.warning("semantic_index_unserved", state=state.name, partition=partition.name)
        if len(self._unserved) > _PARTITIONS:
            self._unserved.popitem(last=False)

    def _mended(self, partition: Partition, state: PartitionState) -> None:
        known = self._unserved.get(partition.name)
        if known is None or state.state is IndexState.REGRESSED:
            return
        key = None if state.manifest is None else VectorKey.of(state.manifest)
        if known.state is IndexState.CORRUPTED and known.key == key:
            return  # the same segments are listed: only whoever reads them knows
        del self._unserved[partition.name]
        self._changed.set()

    def _forget(self) -> None:
        oldest = self._clock.monotonic() - REMEMBERED_SECONDS
        while self._unserved and next(iter(self._unserved.values())).asked_at < oldest:
            self._unserved.popitem(last=False)

    async def _look_again(self, timeout_seconds: float) -> None:
        """At the ones that were asked for last: another server may have rebuilt them."""
        for item in list(islice(reversed(self._unserved.values()), _LOOKED_AT_AGAIN)):
            try:
                async with asyncio.timeout(timeout_seconds):
                    self._mended(item.partition, await judge(self._index, self._records, item.partition))
            except TimeoutError:
                return
            except DomainError as error:
                if error.reason is not Reason.DATA_CORRUPTED:
                    return
