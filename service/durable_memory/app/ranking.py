"""Which memories answer a query, and in which order: the branches of recall and their fusion."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, NamedTuple

from durable_memory.app.recall_result import (
    BranchScore,
    Degradation,
    DegradationReason,
    RecallChannel,
    SemanticSearched,
    VectorState,
)
from durable_memory.app.semantic.current import CurrentGeneration
from durable_memory.app.semantic.search import (
    SemanticBounds,
    SemanticFound,
    SemanticSearch,
    SemanticUnavailableError,
)
from durable_memory.app.views.index import Search
from durable_memory.app.views.search_queue import SearchQueue
from durable_memory.app.views.view import View
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.lexical.query import LexicalFilter, LexicalHit
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.fusion import BRANCH_CUT, FUSION_PROFILES, Found, SemanticBranch
from durable_memory.domain.semantic.generation import Generation, Partition
from durable_memory.domain.session import RecallMode, RecallPolicy, SemanticGeneration, semantic_not_configured
from durable_memory.ports.observing import UNOBSERVED, Observer

_INLINE_WORK: Final = 10_000_000
"""Characters of a query times documents: up to this, a search takes some milliseconds at the very worst, and a tenth of
that most often, so a thread would cost more than the event loop can lose."""


class Ranked(NamedTuple):
    """One memory of a ranking, at the revision that the view has of it."""

    node_id: str
    revision: int
    score: float
    channel: RecallChannel
    lexical: BranchScore | None
    semantic: BranchScore | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The best, best first; the mode that made them, what it went without, and what the semantic branch did."""

    hits: tuple[Ranked, ...]
    mode: RecallMode
    degradation: Degradation | None
    semantic: SemanticSearched | None = None


class Ranker:
    """Ranks in a view under a policy. Without `search` there is no semantic branch on this server."""

    def __init__(
        self, current: CurrentGeneration, search: SemanticSearch | None, observer: Observer = UNOBSERVED
    ) -> None:
        self._current = current
        self._observer = observer
        self._search = search
        self._queue = SearchQueue()

    async def rank(
        self, namespace: Namespace, view: View, query: str, filter: LexicalFilter, policy: RecallPolicy
    ) -> Ranking:
        """The ranking. An explicit mode never turns into another.

        Raises: SEMANTIC_UNAVAILABLE (cause) for an explicit mode that is not possible now.
        """
        if policy.mode is RecallMode.LEXICAL:
            return await self._lexical(view, query, filter, policy, None)
        try:
            semantic = await self._semantic(namespace, view, query, filter, policy)
        except SemanticUnavailableError as error:
            self._observer.recall_degraded(mode=policy.mode.name, reason=error.reason.name)
            if policy.mode is not RecallMode.AUTO:
                raise semantic_unavailable(error.reason, policy.mode) from error
            return await self._lexical(view, query, filter, policy, degradation(error.reason))
        if policy.mode is RecallMode.SEMANTIC:
            return self._alone(view, semantic, policy)
        return await self._fused(view, query, filter, policy, semantic)

    def refuse_impossible(self, policy: RecallPolicy) -> Degradation | None:
        """What AUTO goes without under this policy, whatever the index holds.

        Raises: SEMANTIC_UNAVAILABLE for an explicit mode that this server cannot serve.
        """
        if policy.mode is RecallMode.LEXICAL:
            return None
        try:
            self._generation(policy.semantic)
        except SemanticUnavailableError as error:
            if policy.mode is not RecallMode.AUTO:
                self._observer.recall_degraded(mode=policy.mode.name, reason=error.reason.name)
                raise semantic_unavailable(error.reason, policy.mode) from error
            return degradation(error.reason)
        return None

    async def vector_state(self, namespace: Namespace, view: View, node_id: str, policy: RecallPolicy) -> VectorState:
        """What the index holds of a node, as far as it can be told."""
        try:
            generation, search = self._generation(policy.semantic)
            return await search.vector_state(Partition(namespace, generation.authority_digest), view, node_id)
        except SemanticUnavailableError:
            return VectorState.NOT_USED

    async def _semantic(
        self, namespace: Namespace, view: View, query: str, filter: LexicalFilter, policy: RecallPolicy
    ) -> SemanticFound:
        generation, search = self._generation(policy.semantic)
        bound = policy.semantic
        if bound is None:
            raise AssertionError("a policy without a generation was refused")
        partition = Partition(namespace, generation.authority_digest)
        return await search.search(
            partition,
            generation,
            await search.manifest(partition),
            view,
            query,
            filter,
            SemanticBounds(candidate_limit=bound.candidate_limit, min_similarity=bound.min_similarity),
        )

    def _generation(self, bound: SemanticGeneration | None) -> tuple[Generation, SemanticSearch]:
        if bound is None or self._search is None or self._current.value is None:
            raise SemanticUnavailableError(DegradationReason.SEMANTIC_NOT_CONFIGURED)
        if bound.authority_digest != self._current.value.authority_digest:
            raise SemanticUnavailableError(DegradationReason.GENERATION_NOT_SERVED)
        return self._current.value, self._search

    async def _lexical(
        self, view: View, query: str, filter: LexicalFilter, policy: RecallPolicy, without: Degradation | None
    ) -> Ranking:
        found = await self._words(view, query, filter, policy, policy.max_results)
        hits = tuple(
            Ranked(hit.node_id, hit.revision, hit.score, RecallChannel.LEXICAL, BranchScore(hit.rank, hit.score), None)
            for hit in found
        )
        return Ranking(hits=hits, mode=RecallMode.LEXICAL, degradation=without)

    async def _words(
        self, view: View, query: str, filter: LexicalFilter, policy: RecallPolicy, limit: int
    ) -> list[LexicalHit]:
        """The lexical branch, on the event loop where that is the cheaper place."""
        search = Search(
            query=query,
            profile=policy.lexical_profile,
            limit=limit,
            filter=filter,
            min_score=policy.min_score,
            min_relative_score=policy.min_relative_score,
            # The fusion asks how much of the query the best hit matched.
            with_terms=int(policy.mode is not RecallMode.LEXICAL),
        )
        if len(query) * len(view.index) <= _INLINE_WORK:
            return await self._queue.search(view.index, search)
        (hits,) = await asyncio.to_thread(view.index.search_all, [search])
        return hits

    def _alone(self, view: View, semantic: SemanticFound, policy: RecallPolicy) -> Ranking:
        hits = tuple(
            Ranked(
                hit.node_id,
                _revision(view, hit.node_id),
                hit.score,
                RecallChannel.SEMANTIC,
                None,
                BranchScore(rank, hit.score),
            )
            for rank, hit in enumerate(semantic.found[: policy.max_results], start=1)
        )
        return Ranking(hits=hits, mode=RecallMode.SEMANTIC, degradation=None, semantic=semantic.searched)

    async def _fused(
        self, view: View, query: str, filter: LexicalFilter, policy: RecallPolicy, semantic: SemanticFound
    ) -> Ranking:
        words = await self._words(view, query, filter, policy, max(BRANCH_CUT, policy.max_results))
        generation, _ = self._generation(policy.semantic)
        branch = SemanticBranch(
            found=semantic.found,
            candidate_limit=semantic.candidate_limit,
            similarity_floor=generation.similarity_floor,
        )
        lexical = {hit.node_id: BranchScore(hit.rank, hit.score) for hit in words}
        vectors = {hit.node_id: BranchScore(rank, hit.score) for rank, hit in enumerate(semantic.found, start=1)}
        found = [Found(hit.node_id, hit.score, hit.matched_share) for hit in words]
        scores = FUSION_PROFILES[policy.fusion_profile](found, branch)
        standings = {node_id: view.index.standing_of(node_id) for node_id in scores}
        ranked = sorted(
            ((-scores[node_id], -standing.updated, node_id) for node_id, standing in standings.items() if standing),
        )
        hits = []
        for negated, _, node_id in ranked[: policy.max_results]:
            standing = standings[node_id]
            if standing is None:
                raise AssertionError("only what stands in the view is ranked")
            channel = _channel(node_id in lexical, node_id in vectors)
            hits.append(
                Ranked(node_id, standing.revision, -negated, channel, lexical.get(node_id), vectors.get(node_id))
            )
        return Ranking(hits=tuple(hits), mode=RecallMode.HYBRID, degradation=None, semantic=semantic.searched)


def degradation(reason: DegradationReason) -> Degradation:
    return Degradation(reason=reason, message=_MESSAGES[reason])


def semantic_unavailable(reason: DegradationReason, mode: RecallMode) -> DomainError:
    """SEMANTIC_UNAVAILABLE for an explicit mode, with the cause."""
    if reason is DegradationReason.SEMANTIC_NOT_CONFIGURED:
        return semantic_not_configured()
    return DomainError(
        Reason.SEMANTIC_UNAVAILABLE, f"mode {mode.name} is not possible: {_MESSAGES[reason]}", cause=reason.name
    )


_MESSAGES: Final = {
    DegradationReason.SEMANTIC_NOT_CONFIGURED: "no semantic generation is bound; lexical recall only",
    DegradationReason.GENERATION_NOT_SERVED: "this server does not make the session's generation; lexical recall only",
    DegradationReason.INDEX_UNAVAILABLE: "the vector index cannot be read; lexical recall only",
    DegradationReason.INDEX_NOT_BUILT: "nothing was indexed yet; lexical recall only",
    DegradationReason.INDEX_REGRESSED: "the vector index lost what was published, and is rebuilt; lexical recall only",
    DegradationReason.INDEX_CORRUPTED: "the vector index is damaged, and is rebuilt; lexical recall only",
    DegradationReason.PROVIDER_FAILED: "the query could not be embedded; lexical recall only",
    DegradationReason.DEADLINE: "the semantic branch took too long; lexical recall only",
}


def _channel(by_words: bool, by_vectors: bool) -> RecallChannel:
    if by_words and by_vectors:
        return RecallChannel.HYBRID
    return RecallChannel.LEXICAL if by_words else RecallChannel.SEMANTIC


def _revision(view: View, node_id: str) -> int:
    revision = view.index.revision_of(node_id)
    if revision is None:
        raise AssertionError("a checked hit is ACTIVE in the view")
    return revision
