"""The semantic branch of a recall: exact search, and the checks that nothing stale, foreign or inactive passes.

A vector is trusted only if the node is ACTIVE in the namespace view of this very recall, and the text that was
embedded is its current revision's. What fails is dropped and counted, and the next candidates take its place.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.recall_result import DegradationReason, SemanticSearched, VectorState
from durable_memory.app.semantic.health import SemanticHealth
from durable_memory.app.semantic.partition_state import IndexState, judge
from durable_memory.app.semantic.unindexed import count_unindexed
from durable_memory.app.semantic.vector_cache import VectorCache
from durable_memory.app.semantic.vector_view import Neighbour, VectorKey, VectorView
from durable_memory.app.views.revisions import RevisionCache
from durable_memory.app.views.view import View, ViewKey
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.lexical.query import LexicalFilter
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRef
from durable_memory.domain.semantic.embedded_text import embedded_text, text_digest
from durable_memory.domain.semantic.fusion import Found
from durable_memory.domain.semantic.generation import Generation, Partition
from durable_memory.domain.semantic.manifest import INDEX_HISTORY_START, Manifest
from durable_memory.ports.embedder import Embedder, EmbeddingError
from durable_memory.ports.observing import UNOBSERVED, Observer
from durable_memory.ports.semantic_records import SemanticRecords
from durable_memory.ports.store import Store
from durable_memory.ports.vector_index import VectorIndex

_QUERY_VECTORS: Final = 4_096
_STEP: Final = 128
_INLINE_FLOATS: Final = 8_000_000
_MANIFEST_ATTEMPTS: Final = 3
_PARTITIONS_REMEMBERED: Final = 100_000


class SemanticUnavailableError(Exception):
    """Why the branch cannot answer now; AUTO goes on without it and says so."""

    def __init__(self, reason: DegradationReason) -> None:
        super().__init__(reason.name)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticFound:
    """Checked hits, best first, cut at `candidate_limit`, and what it took to find them. `score` is the cosine."""

    found: tuple[Found, ...]
    candidate_limit: int
    searched: SemanticSearched


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticBounds:
    """Of the binding: where the branch is cut, and the least cosine that counts."""

    candidate_limit: int
    min_similarity: float


class SemanticSearch:
    """Searches partitions of the server's generation."""

    def __init__(
        self,
        store: Store,
        index: VectorIndex,
        records: SemanticRecords,
        vectors: VectorCache,
        revisions: RevisionCache,
        embedder: Embedder,
        health: SemanticHealth,
        observer: Observer = UNOBSERVED,
    ) -> None:
        self._store = store
        self._index = index
        self._records = records
        self._vectors = vectors
        self._revisions = revisions
        self._embedder = embedder
        self._health = health
        self._observer = observer
        self._verified: dict[str, tuple[int, int, VectorKey]] = {}
        self._unindexed_counts: dict[str, tuple[ViewKey, VectorKey, int]] = {}
        self._queries: OrderedDict[tuple[str, str], NDArray[np.float32]] = OrderedDict()

    async def manifest(self, partition: Partition) -> Manifest | None:
        """What is published now; read beside the namespace's head, before anything else.

        Raises: SemanticUnavailableError if the index cannot be reached.
        """
        try:
            return await self._index.manifest(partition)
        except DomainError as error:
            raise SemanticUnavailableError(_cause(error)) from error

    async def search(
        self,
        partition: Partition,
        generation: Generation,
        manifest: Manifest | None,
        view: View,
        query: str,
        filter: LexicalFilter,
        bounds: SemanticBounds,
    ) -> SemanticFound:
        """The best of the partition that pass filter, floor and checks, at most `candidate_limit`.

        Raises: SemanticUnavailableError.
        """
        try:
            vectors, vector = await asyncio.gather(
                self._view(partition, manifest, view), self._query_vector(generation, query)
            )
            if vectors is None:
                return _nothing(manifest, bounds)
            return await self._checked(partition, vectors, view, vector, filter, bounds)
        except DomainError as error:
            raise SemanticUnavailableError(_cause(error)) from error

    async def vector_state(self, partition: Partition, view: View, node_id: str) -> VectorState:
        """What the published index holds of a node. Raises: SemanticUnavailableError."""
        vectors = await self._view(partition, await self.manifest(partition), view)
        found = None if vectors is None else vectors.find(node_id)
        revision = view.index.revision_of(node_id)
        if found is None or revision is None:
            return VectorState.MISSING
        current, _ = await self._current(partition.namespace, view, [Neighbour(found[1], 0.0)])
        return VectorState.CURRENT if current else VectorState.OUTDATED

    async def _view(self, partition: Partition, manifest: Manifest | None, view: View) -> VectorView | None:
        """The vectors of the published state; None where there is nothing to index.

        Raises: SemanticUnavailableError if nothing was published, or what is there is not what was published last.
        """
        for _ in range(_MANIFEST_ATTEMPTS):
            trusted = await self._trusted(partition, manifest, view)
            if trusted is None:
                return None
            try:
                return await self._vectors.load(partition, trusted)
            except DomainError as error:
                if error.reason is Reason.DATA_CORRUPTED:
                    raise SemanticUnavailableError(DegradationReason.INDEX_CORRUPTED) from error
                if error.reason is not Reason.INDEX_REVISION_CONFLICT:
                    raise
                manifest = await self._index.manifest(partition)
        raise SemanticUnavailableError(DegradationReason.INDEX_UNAVAILABLE)

    async def _trusted(self, partition: Partition, manifest: Manifest | None, view: View) -> Manifest | None:
        """The manifest, once it was found to be what the repository says was published.

        It is compared with the repository when it is not the one that was verified last, and when the index may have
        gone back to that one since, so that a recall costs one read of the index.
        """
        connections = self._index.connections
        if manifest is not None:
            verified = self._verified.get(partition.name)
            if verified == (connections, manifest.fence, VectorKey.of(manifest)):
                return manifest
        state = await judge(self._index, self._records, partition)
        self._health.judged(partition, state)
        if state.state is IndexState.REGRESSED:
            self._vectors.drop(partition)
            self._verified.pop(partition.name, None)
            raise SemanticUnavailableError(DegradationReason.INDEX_REGRESSED)
        if state.manifest is None:
            if len(view.index):
                raise SemanticUnavailableError(DegradationReason.INDEX_NOT_BUILT)
            return None  # nothing ACTIVE: an index of nothing is complete
        self._verified[partition.name] = (connections, state.manifest.fence, VectorKey.of(state.manifest))
        while len(self._verified) > _PARTITIONS_REMEMBERED:
            del self._verified[next(iter(self._verified))]
        return state.manifest

    async def _query_vector(self, generation: Generation, query: str) -> NDArray[np.float32]:
        key = (generation.model_digest, text_digest(query))
        known = self._queries.get(key)
        if known is not None:
            self._queries.move_to_end(key)
            return known
        try:
            encoded = await self._embedder.embed_query(query)
        except EmbeddingError as error:
            raise SemanticUnavailableError(DegradationReason.PROVIDER_FAILED) from error
        vector = np.frombuffer(encoded, dtype="<f4").astype(np.float32)
        if len(vector) != generation.dimension:
            raise SemanticUnavailableError(DegradationReason.PROVIDER_FAILED)
        self._queries[key] = vector
        if len(self._queries) > _QUERY_VECTORS:
            self._queries.popitem(last=False)
        return vector

    async def _checked(
        self,
        partition: Partition,
        vectors: VectorView,
        view: View,
        query: NDArray[np.float32],
        filter: LexicalFilter,
        bounds: SemanticBounds,
    ) -> SemanticFound:
        if len(vectors) * len(query) <= _INLINE_FLOATS:
            scores = vectors.scores(query[np.newaxis, :])
        else:
            scores = await asyncio.to_thread(vectors.scores, query[np.newaxis, :])
        admitted = view.index.admission(filter)
        found: list[Found] = []
        dropped = start = 0
        more = True
        while more and len(found) < bounds.candidate_limit:
            step = max(_STEP, bounds.candidate_limit)
            candidates = vectors.neighbours(query, scores, 0, start, step)
            start += step
            more = len(candidates) == step
            passing: list[Neighbour] = []
            for item in candidates:
                if item.similarity < bounds.min_similarity:
                    more = False
                    break
                passing.append(item)
            current, failed = await self._current(partition.namespace, view, passing)
            dropped += failed
            found += [Found(item.record.node_id, item.similarity) for item in current if admitted(item.record.node_id)]
        kept = tuple(found[: bounds.candidate_limit])
        self._observer.vectors_searched(searched=len(vectors), dropped=dropped, refilled=min(dropped, len(kept)))
        return SemanticFound(
            found=kept,
            candidate_limit=bounds.candidate_limit,
            searched=SemanticSearched(
                index_revision=vectors.key.index_revision,
                index_history_digest=vectors.key.history_digest,
                vectors_searched=len(vectors),
                dropped=dropped,
                refilled=min(dropped, len(kept)),
                unindexed_active=await self._unindexed(partition, view, vectors),
            ),
        )

    async def _unindexed(self, partition: Partition, view: View, vectors: VectorView) -> int:
        """Counted once for each pair of views: what changed since the index was made is read for it."""
        known = self._unindexed_counts.get(partition.name)
        if known is None or known[:2] != (view.key, vectors.key):
            count = await count_unindexed(self._store, partition.namespace, view.key.token, len(view.index), vectors)
            known = self._unindexed_counts[partition.name] = (view.key, vectors.key, count)
            self._health.unembedded(partition, count)
            while len(self._unindexed_counts) > _PARTITIONS_REMEMBERED:
                del self._unindexed_counts[next(iter(self._unindexed_counts))]
        return known[2]

    async def _current(
        self, namespace: Namespace, view: View, candidates: Sequence[Neighbour]
    ) -> tuple[list[Neighbour], int]:
        """Those whose vector is of the text that is ACTIVE now, and how many are not.

        A record of the current revision is, for revisions never change. One of an earlier revision still is where only
        labels, relations or evidence moved: the digest of the text decides.
        """
        kept: list[Neighbour] = []
        moved: list[tuple[int, Neighbour, NodeRef]] = []
        for item in candidates:
            revision = view.index.revision_of(item.record.node_id)
            if revision is None:
                continue
            if revision == item.record.revision:
                kept.append(item)
            else:
                moved.append((len(kept), item, NodeRef(item.record.node_id, revision)))
        if moved:
            nodes = await self._revisions.get(namespace, view.key.history_id, [ref for _, _, ref in moved])
            same = [
                (place, item)
                for (place, item, _), node in zip(moved, nodes, strict=True)
                if text_digest(embedded_text(node)) == item.record.text_digest
            ]
            for shift, (place, item) in enumerate(same):
                kept.insert(place + shift, item)
        return kept, len(candidates) - len(kept)


def _nothing(manifest: Manifest | None, bounds: SemanticBounds) -> SemanticFound:
    return SemanticFound(
        found=(),
        candidate_limit=bounds.candidate_limit,
        searched=SemanticSearched(
            index_revision=0 if manifest is None else manifest.index_revision,
            index_history_digest=INDEX_HISTORY_START if manifest is None else manifest.history_digest,
            vectors_searched=0,
            dropped=0,
            refilled=0,
            unindexed_active=0,
        ),
    )


def _cause(error: DomainError) -> DegradationReason:
    if error.reason is Reason.DATA_CORRUPTED:
        return DegradationReason.INDEX_CORRUPTED
    return DegradationReason.INDEX_UNAVAILABLE
