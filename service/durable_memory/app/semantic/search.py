"""The semantic branch of a recall: exact search, and the checks that nothing stale, foreign or inactive passes.

A vector is trusted only if the node is ACTIVE in the namespace view of this very recall, and the text that was
embedded is its current revision's. What fails is dropped and counted, and the next candidates take its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.recall_result import (
    BranchScore,
    DegradationReason,
    SemanticCut,
    SemanticSearched,
    SemanticStanding,
    VectorState,
)
from durable_memory.app.semantic.binding import Binding, Bindings, RecordState
from durable_memory.app.semantic.health import SemanticHealth
from durable_memory.app.semantic.manifest_reads import ManifestReads
from durable_memory.app.semantic.nearest import Nearest, exact_similarities, nearest_of_any
from durable_memory.app.semantic.partition_state import IndexState, judge
from durable_memory.app.semantic.products import ProductQueue, rounding_error
from durable_memory.app.semantic.query_vectors import QueryVector, QueryVectors
from durable_memory.app.semantic.unindexed_counts import UnindexedCounts
from durable_memory.app.semantic.vector_cache import VectorCache
from durable_memory.app.semantic.vector_view import VectorKey, VectorView
from durable_memory.app.views.index import LexicalIndex
from durable_memory.app.views.revisions import RevisionCache
from durable_memory.app.views.view import View
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.lexical.query import LexicalFilter
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRef
from durable_memory.domain.semantic.embedded_text import embedded_text, text_digest
from durable_memory.domain.semantic.generation import Generation, Partition
from durable_memory.domain.semantic.manifest import INDEX_HISTORY_START, Manifest
from durable_memory.ports.embedder import Embedder, EmbeddingError
from durable_memory.ports.observing import UNOBSERVED, Observer
from durable_memory.ports.semantic_records import SemanticRecords
from durable_memory.ports.store import Store
from durable_memory.ports.vector_index import VectorIndex

_SPARE: Final = 12
"""Candidates beyond the limit that are looked at in the first go, so that a few stale ones cost no second."""

_INLINE_RANKED: Final = 2_000
"""Candidates up to which an order is made within three milliseconds: more are there where very many are as near."""

_MANIFEST_ATTEMPTS: Final = 3
_PARTITIONS_REMEMBERED: Final = 100_000
_MOST_RESOLVED: Final = 1_000
"""Texts that are read at once to see whether a vector is still of them."""


class SemanticUnavailableError(Exception):
    """Why the branch cannot answer now; AUTO goes on without it and says so.

    `cause` is one phrase for people, where more is known than the reason tells.
    """

    def __init__(self, reason: DegradationReason, cause: str = "") -> None:
        super().__init__(reason.name)
        self.reason = reason
        self.cause = cause


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticFound:
    """Checked hits, best first, cut at `candidate_limit`, and what it took to find them.

    `numbers` are the documents in the index of the view that was searched for, `similarities` their cosines.
    """

    numbers: Sequence[int]
    similarities: Sequence[float]
    candidate_limit: int
    searched: SemanticSearched


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticBounds:
    """Of the binding: where the branch is cut, and the least cosine that counts."""

    candidate_limit: int
    min_similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticQuestion:
    """One question to one partition, with what was begun for it while the namespace view was brought up to date."""

    partition: Partition
    bounds: SemanticBounds
    filter: LexicalFilter
    manifest: asyncio.Future[Manifest | None]
    vector: asyncio.Future[QueryVector]


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
        self._index = index
        self._records = records
        self._vectors = vectors
        self._revisions = revisions
        self._health = health
        self._observer = observer
        self._manifests = ManifestReads(index)
        self._queries = QueryVectors(embedder)
        self._products = ProductQueue()
        self._bindings = Bindings()
        self._unindexed = UnindexedCounts(store)
        self._verified: dict[str, tuple[int, int, VectorKey]] = {}

    def read_manifest(self, partition: Partition) -> asyncio.Future[Manifest | None]:
        """Begin to read what is published now, beside the namespace's head, before anything else."""
        return self._manifests.begin(partition)

    def embed(self, namespace: Namespace, generation: Generation, query: str) -> asyncio.Future[QueryVector]:
        """Begin to embed a question, unless its principal has asked it before or it is under way."""
        return self._queries.begin(namespace, generation, query)

    async def search(self, question: SemanticQuestion, view: View) -> SemanticFound:
        """The best of the partition that pass filter, floor and checks, at most `candidate_limit`.

        Raises: SemanticUnavailableError.
        """
        try:
            vectors = await self._view(question, view)
            vector = await _vector(question)
            if vectors is None:
                return _nothing(await asyncio.shield(question.manifest), question.bounds)
            return await self._found(question, vectors, view, vector)
        except DomainError as error:
            raise self._unavailable(question.partition, error) from error

    async def standing(self, question: SemanticQuestion, view: View, node_id: str) -> SemanticStanding:
        """How one node stands in the branch, before its floor and its cut.

        Raises: SemanticUnavailableError.
        """
        try:
            vectors = await self._view(question, view)
            vector = await _vector(question)
            if vectors is None:
                return SemanticStanding(state=VectorState.MISSING)
            binding = await self._bindings.of(view.index, vectors)
            number = binding.find(vectors, node_id)
            if number is None or binding.states[number] == RecordState.GONE:
                return SemanticStanding(state=VectorState.MISSING)
            await self._resolve(question.partition.namespace, view, vectors, binding, np.array([number], dtype=np.intp))
            if binding.states[number] != RecordState.CURRENT:
                return SemanticStanding(state=VectorState.OUTDATED)
            scores = await self._products.scores(vectors, vector)
            return await self._placed(question, view, vectors, binding, vector, scores, number)
        except DomainError as error:
            raise self._unavailable(question.partition, error) from error

    async def close(self) -> None:
        """Stop what belongs to no recall."""
        await self._manifests.close()
        await self._queries.close()
        await self._unindexed.close()
        await self._products.close()

    # What is published, and whether it is to be trusted

    async def _view(self, question: SemanticQuestion, view: View) -> VectorView | None:
        """The vectors of the published state; None where there is nothing to index.

        Raises: SemanticUnavailableError if nothing was published, or what is there is not what was published last.
        """
        partition = question.partition
        manifest = await asyncio.shield(question.manifest)
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

    def _unavailable(self, partition: Partition, error: DomainError) -> SemanticUnavailableError:
        if error.reason is not Reason.DATA_CORRUPTED:
            of_store = error.metadata.get("dependency") == "store"
            cause = f"what is published could not be checked: {error.message}" if of_store else ""
            return SemanticUnavailableError(DegradationReason.INDEX_UNAVAILABLE, cause)
        if error.metadata.get("what") == "manifest":
            self._health.unreadable(partition)
        return SemanticUnavailableError(DegradationReason.INDEX_CORRUPTED)

    # Candidates, and those that stand

    async def _found(
        self, question: SemanticQuestion, vectors: VectorView, view: View, vector: QueryVector
    ) -> SemanticFound:
        binding = await self._bindings.of(view.index, vectors)
        scores = await self._products.scores(vectors, vector)
        admitted = binding.admitted(vectors, view.index, question.filter)
        limit = question.bounds.candidate_limit
        count = limit + _SPARE
        while True:
            candidates = await nearest_of_any(vectors, vector, scores, admitted, count, question.bounds.min_similarity)
            await self._resolve(question.partition.namespace, view, vectors, binding, candidates.numbers)
            standing = binding.states[candidates.numbers] == RecordState.CURRENT
            if np.count_nonzero(standing) >= limit or len(candidates.numbers) < count:
                break
            count *= 2
        if len(standing) <= _INLINE_RANKED:
            found, dropped, refilled = _cut(candidates, standing, limit, view.index, binding)
        else:
            found, dropped, refilled = await asyncio.to_thread(_cut, candidates, standing, limit, view.index, binding)
        searched = SemanticSearched(
            index_revision=vectors.key.index_revision,
            index_history_digest=vectors.key.history_digest,
            vectors_searched=len(vectors),
            dropped=dropped,
            refilled=refilled,
            unindexed_active=await self._count_unindexed(question.partition, view, vectors),
        )
        self._observer.vectors_searched(searched=len(vectors), dropped=dropped, refilled=refilled)
        return SemanticFound(
            numbers=found.numbers.tolist(),
            similarities=found.similarities.tolist(),
            candidate_limit=limit,
            searched=searched,
        )

    async def _placed(
        self,
        question: SemanticQuestion,
        view: View,
        vectors: VectorView,
        binding: Binding,
        vector: QueryVector,
        scores: NDArray[np.float32],
        number: int,
    ) -> SemanticStanding:
        """The rank of a current record among those that pass the filter, and what keeps it from the branch's hits."""
        admitted = binding.admitted(vectors, view.index, question.filter).copy()
        admitted[number] = True
        above = np.flatnonzero(admitted & (scores >= scores[number] - 2 * rounding_error(len(vector))))
        await self._resolve(question.partition.namespace, view, vectors, binding, above)
        above = above[binding.states[above] == RecordState.CURRENT]

        def rank() -> Nearest:
            return _ranked(Nearest(above, exact_similarities(vectors, vector, above)), view.index, binding)

        ranked = await asyncio.to_thread(rank)
        place = int(np.flatnonzero(ranked.numbers == binding.numbers[number])[0])
        similarity = ranked.similarities.item(place)
        cut = None
        if similarity < question.bounds.min_similarity:
            cut = SemanticCut.MIN_SIMILARITY
        elif place >= question.bounds.candidate_limit:
            cut = SemanticCut.CANDIDATE_LIMIT
        return SemanticStanding(state=VectorState.CURRENT, score=BranchScore(place + 1, similarity), cut=cut)

    async def _resolve(
        self,
        namespace: Namespace,
        view: View,
        vectors: VectorView,
        binding: Binding,
        numbers: NDArray[np.intp],
    ) -> None:
        """Look at the digests of the records that are of an earlier revision than the present one."""
        moved = numbers[binding.states[numbers] == RecordState.MOVED].tolist()
        for start in range(0, len(moved), _MOST_RESOLVED):
            some = moved[start : start + _MOST_RESOLVED]
            records = [binding.record(vectors, number) for number in some]
            revisions = binding.revisions[binding.numbers[some]].tolist()
            refs = [NodeRef(item.node_id, revision) for item, revision in zip(records, revisions, strict=True)]
            nodes = await self._revisions.get(namespace, view.key.history_id, refs)
            for number, record, node in zip(some, records, nodes, strict=True):
                same = text_digest(embedded_text(node)) == record.text_digest
                binding.states[number] = RecordState.CURRENT if same else RecordState.OUTDATED

    async def _count_unindexed(self, partition: Partition, view: View, vectors: VectorView) -> int:
        count = await self._unindexed.of(partition, view, vectors)
        self._health.unembedded(partition, count)
        return count


def _cut(
    candidates: Nearest, standing: NDArray[np.bool_], limit: int, index: LexicalIndex, binding: Binding
) -> tuple[Nearest, int, int]:
    """The hits, how many candidates were dropped on the way to the last of them, and how many took their places."""
    kept = np.flatnonzero(standing)
    end = len(standing)
    if len(kept) >= limit:
        # With all that equal the last one: which of them are newer is seen only then.
        last = candidates.similarities[kept[limit - 1]]
        end = int(np.searchsorted(-candidates.similarities, -last, side="right"))
        kept = kept[kept < end]
    ranked = _ranked(Nearest(candidates.numbers[kept], candidates.similarities[kept]), index, binding)
    refilled = min(len(kept), limit) - int(np.count_nonzero(standing[:limit]))
    hits = Nearest(ranked.numbers[:limit], ranked.similarities[:limit])
    return hits, end - int(np.count_nonzero(standing[:end])), refilled


def _ranked(records: Nearest, index: LexicalIndex, binding: Binding) -> Nearest:
    """Current records as documents of the index: the most similar first; of equals the newer, then by id."""
    documents = binding.numbers[records.numbers]
    order = index.ordered(documents, records.similarities)
    return Nearest(documents[order], records.similarities[order])


async def _vector(question: SemanticQuestion) -> QueryVector:
    try:
        return await asyncio.shield(question.vector)
    except EmbeddingError as error:
        cause = f"the query could not be embedded: {error.words}"
        raise SemanticUnavailableError(DegradationReason.PROVIDER_FAILED, cause) from error


def _nothing(manifest: Manifest | None, bounds: SemanticBounds) -> SemanticFound:
    return SemanticFound(
        numbers=(),
        similarities=(),
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
