"""Which memories answer a query, and in which order: the branches of recall and their fusion."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from durable_memory.app.degradation import (
    bound_to_another,
    bound_to_none,
    degradation,
    no_provider,
    provider_awaited,
    semantic_unavailable,
)
from durable_memory.app.recall_result import (
    NOT_USED,
    BranchScore,
    Degradation,
    DegradationReason,
    RecallChannel,
    SemanticSearched,
    SemanticStanding,
)
from durable_memory.app.semantic.current import CurrentGeneration
from durable_memory.app.semantic.search import (
    SemanticBounds,
    SemanticFound,
    SemanticQuestion,
    SemanticSearch,
    SemanticUnavailableError,
)
from durable_memory.app.views.index import LexicalRanking, Search
from durable_memory.app.views.search_queue import SearchQueue
from durable_memory.app.views.selection import largest
from durable_memory.app.views.view import View
from durable_memory.domain.lexical.query import LexicalFilter
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.fusion import BRANCH_CUT, FUSION_PROFILES, LexicalBranch, SemanticBranch
from durable_memory.domain.semantic.generation import Generation, Partition
from durable_memory.domain.semantic.manifest import Manifest
from durable_memory.domain.session import RecallMode, RecallPolicy, SemanticGeneration
from durable_memory.ports.observing import UNOBSERVED, Observer

DEFAULT_BUDGET_SECONDS: Final = 2.0
_SHARE_OF_DEADLINE: Final = 0.5
"""Of the time that the caller of AUTO has left: the other half is for the answer without the semantic branch."""

_LAST_OF_DEADLINE: Final = 0.9
"""Explicit modes have nothing else to do, but to say in time why there is no answer."""

_T = TypeVar("_T")

_INLINE_WORK: Final = 10_000_000
"""Characters of a query times documents: up to this, a search takes some milliseconds at the very worst, and a tenth of
that most often, so a thread would cost more than the event loop can lose."""

_READING: Final = 10_000
"""What it takes to read a character of a query and to look its words up, in documents: so much is it at any rate."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One recall. `ends_at` is when its caller stops waiting, by the event loop's clock; `None` if it is not known."""

    namespace: Namespace
    query: str
    filter: LexicalFilter
    policy: RecallPolicy
    ends_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A question, and the part of its semantic branch that needs no view; `without` is why AUTO has none."""

    question: Question
    generation: Generation | None = None
    semantic: SemanticQuestion | None = None
    without: Degradation | None = None


class Ranker:
    """Ranks in a view under a policy. Without `search` there is no semantic branch on this server.

    Args:
        budget_seconds: how long AUTO waits for the semantic branch at most, from when the view is there.
    """

    def __init__(
        self,
        current: CurrentGeneration,
        search: SemanticSearch | None,
        observer: Observer = UNOBSERVED,
        *,
        budget_seconds: float = DEFAULT_BUDGET_SECONDS,
    ) -> None:
        self._current = current
        self._observer = observer
        self._search = search
        self._budget = budget_seconds
        self._queue = SearchQueue()
        self._served: tuple[Generation, str] | None = None

    def read_ahead(self, namespace: Namespace) -> asyncio.Future[Manifest | None] | None:
        """Begin to read what is published, so that it is read while the namespace's head is."""
        if self._search is None or self._current.value is None:
            return None
        return self._search.read_manifest(Partition(namespace, self._authority(self._current.value)))

    def begin(self, question: Question, manifest: asyncio.Future[Manifest | None] | None = None) -> Begun:
        """Begin what can be done before the view is there: the question is embedded, and the manifest read.

        Raises: SEMANTIC_UNAVAILABLE for an explicit mode that this server cannot serve, whatever the index holds.
        """
        policy = question.policy
        if policy.mode is RecallMode.LEXICAL:
            return Begun(question=question)
        try:
            generation, bound, search = self._generation(policy.semantic)
        except SemanticUnavailableError as error:
            if policy.mode is not RecallMode.AUTO:
                self._observer.recall_degraded(mode=policy.mode.name, reason=error.reason.name)
                raise semantic_unavailable(error, policy.mode) from error
            return Begun(question=question, without=degradation(error.reason, error.cause))
        partition = Partition(question.namespace, bound.authority_digest)
        return Begun(
            question=question,
            generation=generation,
            semantic=SemanticQuestion(
                partition=partition,
                bounds=SemanticBounds(candidate_limit=bound.candidate_limit, min_similarity=bound.min_similarity),
                filter=question.filter,
                manifest=manifest or search.read_manifest(partition),
                vector=search.embed(question.namespace, generation, question.query),
            ),
        )

    async def rank(self, begun: Begun, view: View, *, uncut: bool = False) -> Ranking:
        """The ranking. An explicit mode never turns into another.

        The branches run side by side, so that an answer without the semantic one costs no more than the wait for it.

        Args:
            uncut: whether to rank all that the semantic branch, or both, have found, beyond the policy's bound.

        Raises: SEMANTIC_UNAVAILABLE (cause) for an explicit mode that is not possible now.
        """
        question = begun.question
        policy = question.policy
        if begun.semantic is None or begun.generation is None or self._search is None:
            found = await self._words(question, view, policy.max_results)
            return self._lexical(view, found, policy, begun.without)
        ends_at = self._wait_ends_at(question)
        branch = asyncio.create_task(self._search.search(begun.semantic, view), name="semantic branch")
        branch.add_done_callback(_retrieve)
        words: LexicalRanking | None = None
        try:
            if policy.mode is not RecallMode.SEMANTIC:
                words = await self._words(question, view, BRANCH_CUT)
            semantic = await _result(branch, ends_at)
        except SemanticUnavailableError as error:
            if policy.mode is not RecallMode.AUTO or words is None:
                self._observer.recall_degraded(mode=policy.mode.name, reason=error.reason.name)
                raise semantic_unavailable(error, policy.mode) from error
            return self._lexical(view, words, policy, degradation(error.reason, error.cause))
        finally:
            branch.cancel()  # what others share goes on
        limit = None if uncut else policy.max_results
        if words is None:
            return _alone(view, semantic, limit)
        return _fused(view, words, semantic, policy.fusion_profile, begun.generation.similarity_floor, limit)

    async def standing(self, begun: Begun, view: View, node_id: str) -> tuple[SemanticStanding, Degradation | None]:
        """How a memory stands in the semantic branch, or why AUTO cannot tell now.

        Raises: SEMANTIC_UNAVAILABLE (cause) for an explicit mode.
        """
        if begun.semantic is None or self._search is None:
            return NOT_USED, begun.without
        branch = asyncio.create_task(self._search.standing(begun.semantic, view, node_id), name="semantic standing")
        branch.add_done_callback(_retrieve)
        try:
            return await _result(branch, self._wait_ends_at(begun.question)), None
        except SemanticUnavailableError as error:
            mode = begun.question.policy.mode
            if mode is not RecallMode.AUTO:
                raise semantic_unavailable(error, mode) from error
            return NOT_USED, degradation(error.reason, error.cause)
        finally:
            branch.cancel()

    def _generation(self, bound: SemanticGeneration | None) -> tuple[Generation, SemanticGeneration, SemanticSearch]:
        generation = self._current.value
        if self._search is None:
            raise no_provider(bound, self._current.problem)
        if generation is None:
            raise provider_awaited()
        if bound is None:
            raise bound_to_none(generation)
        if bound.authority_digest != self._authority(generation):
            raise bound_to_another(bound, generation)
        return generation, bound, self._search

    def _authority(self, generation: Generation) -> str:
        """The digest of the generation that is served, which never changes while it is."""
        if self._served is None or self._served[0] is not generation:
            self._served = (generation, generation.authority_digest)
        return self._served[1]

    def _wait_ends_at(self, question: Question) -> float | None:
        """When the semantic branch is given up, by the event loop's clock."""
        now = asyncio.get_running_loop().time()
        left = None if question.ends_at is None else question.ends_at - now
        if question.policy.mode is RecallMode.AUTO:
            return now + (self._budget if left is None else min(self._budget, left * _SHARE_OF_DEADLINE))
        return None if left is None else now + left * _LAST_OF_DEADLINE

    def _lexical(self, view: View, words: LexicalRanking, policy: RecallPolicy, without: Degradation | None) -> Ranking:
        if without is not None:
            self._observer.recall_degraded(mode=policy.mode.name, reason=without.reason.name)
        hits = tuple(
            Ranked(hit.node_id, hit.revision, hit.score, RecallChannel.LEXICAL, BranchScore(hit.rank, hit.score), None)
            for hit in view.index.hits(words, policy.max_results)
        )
        return Ranking(hits=hits, mode=RecallMode.LEXICAL, degradation=without)

    async def _words(self, question: Question, view: View, limit: int) -> LexicalRanking:
        """The lexical branch, on the event loop where that is the cheaper place."""
        policy = question.policy
        search = Search(
            query=question.query,
            profile=policy.lexical_profile,
            limit=limit,
            filter=question.filter,
            min_score=policy.min_score,
            min_relative_score=policy.min_relative_score,
            # The fusion asks how much of the query the best hit matched.
            with_terms=int(policy.mode is not RecallMode.LEXICAL),
        )
        if len(question.query) * (len(view.index) + _READING) <= _INLINE_WORK:
            return await self._queue.search(view.index, search)
        (ranking,) = await asyncio.to_thread(view.index.rank_all, [search])
        return ranking


async def _result(branch: asyncio.Task[_T], ends_at: float | None) -> _T:
    """What the branch returns or raises. Raises: SemanticUnavailableError (DEADLINE) if it is not done by then."""
    if not branch.done():
        timeout = None if ends_at is None else max(0.0, ends_at - asyncio.get_running_loop().time())
        await asyncio.wait({branch}, timeout=timeout)
    if not branch.done():
        raise SemanticUnavailableError(DegradationReason.DEADLINE)
    return branch.result()


def _retrieve(branch: asyncio.Task[Any]) -> None:
    """A branch that was given up may fail all the same, and nobody asks it why."""
    if not branch.cancelled():
        branch.exception()


def _alone(view: View, semantic: SemanticFound, limit: int | None) -> Ranking:
    names = view.index.named(semantic.numbers[:limit])
    hits = tuple(
        Ranked(node_id, revision, score, RecallChannel.SEMANTIC, None, BranchScore(rank, score))
        for rank, ((node_id, revision), score) in enumerate(zip(names, semantic.similarities, strict=False), start=1)
    )
    return Ranking(hits=hits, mode=RecallMode.SEMANTIC, degradation=None, semantic=semantic.searched)


def _fused(
    view: View,
    words: LexicalRanking,
    semantic: SemanticFound,
    profile: str,
    similarity_floor: float,
    limit: int | None,
) -> Ranking:
    """Of the documents of the view, which are named only where they are among the best."""
    lexical = LexicalBranch(
        nodes=words.numbers.tolist(),
        scores=words.scores.tolist(),
        matched_share=words.matched[0][1] if words.matched else 1.0,
    )
    branch = SemanticBranch(
        nodes=semantic.numbers,
        cosines=semantic.similarities,
        candidate_limit=semantic.candidate_limit,
        similarity_floor=similarity_floor,
    )
    scores = FUSION_PROFILES[profile](lexical, branch)
    best = _best(view, scores, limit)
    by_words, by_vectors = _places(lexical.nodes), _places(branch.nodes)
    hits = []
    for number, (node_id, revision) in zip(best, view.index.named(best), strict=True):
        word = _branch_score(by_words.get(number), lexical.scores)
        vector = _branch_score(by_vectors.get(number), branch.cosines)
        channel = _channel(word is not None, vector is not None)
        hits.append(Ranked(node_id, revision, scores[number], channel, word, vector))
    return Ranking(hits=tuple(hits), mode=RecallMode.HYBRID, degradation=None, semantic=semantic.searched)


def _best(view: View, scores: Mapping[int, float], limit: int | None) -> list[int]:
    """The documents of the best `limit`; ties newer first, then by id."""
    numbers = np.fromiter(scores.keys(), dtype=np.intp, count=len(scores))
    values = np.fromiter(scores.values(), dtype=np.float64, count=len(scores))
    if limit is not None and len(values) > limit:
        kept = np.flatnonzero(values >= largest(values, limit))
        numbers, values = numbers[kept], values[kept]
    best: list[int] = numbers[view.index.ordered(numbers, values)[:limit]].tolist()
    return best


def _places(numbers: Sequence[int]) -> dict[int, int]:
    return dict(zip(numbers, range(len(numbers)), strict=True))


def _branch_score(place: int | None, scores: Sequence[float]) -> BranchScore | None:
    return None if place is None else BranchScore(place + 1, scores[place])


def _channel(by_words: bool, by_vectors: bool) -> RecallChannel:
    if by_words and by_vectors:
        return RecallChannel.HYBRID
    return RecallChannel.LEXICAL if by_words else RecallChannel.SEMANTIC
