"""Vectors for the texts of one refresh: from the namespace's cache, and from the provider for the rest.

A provider that refuses a call because of one of its texts is asked again without it, so that one text which it does not
take never keeps the others from having vectors. Only such refusals divide a call: what may pass by itself fails it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Generation
from durable_memory.ports.embedder import CallCount, Embedder, EmbeddingError, counting_calls
from durable_memory.ports.observing import Observer
from durable_memory.ports.semantic_records import SemanticRecords

TEXTS_PER_CALL: Final = 64
"""Texts that are embedded, and cached, together."""

_CALLS_TO_DIVIDE: Final = 128
_TEXTS_PER_CALL_TO_DIVIDE: Final = 8
"""A refresh divides calls at most so often, and once more for each so many texts: about ten refused texts in the first
64, and a tenth of the texts of a large one."""

_REFUSALS_KEPT: Final = 10_000
_CONTROL: Final = "control"
"""A text that no provider has a reason to refuse."""

Progress = Callable[[int, int], Awaitable[None]]
"""Told how many of how many texts have vectors."""


class Refusals:
    """The texts that the provider has refused since the process started, by digest; the oldest are forgotten first.

    They are not sent again by every refresh that looks at them: a namespace with more of them than one refresh may find
    out gets through in several.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[bytes, str, str], None] = OrderedDict()

    def add(self, namespace: Namespace, model_digest: str, text_digest: str) -> None:
        self._known[namespace.key, model_digest, text_digest] = None
        while len(self._known) > _REFUSALS_KEPT:
            self._known.popitem(last=False)

    def known(self, namespace: Namespace, model_digest: str, text_digests: Collection[str]) -> set[str]:
        return {digest for digest in text_digests if (namespace.key, model_digest, digest) in self._known}

    def forget(self, namespace: Namespace, model_digest: str, text_digest: str) -> None:
        self._known.pop((namespace.key, model_digest, text_digest), None)


class Passages:
    """The vectors of one refresh, by text digest, and what it took to get them.

    `found` are float32. `refused` are the digests of texts that the provider does not take. `calls` counts calls of the
    provider, repetitions included and those of others excluded; `inputs` and `input_bytes` what it embedded.
    """

    def __init__(
        self,
        records: SemanticRecords,
        embedder: Embedder,
        refusals: Refusals,
        observer: Observer,
        namespace: Namespace,
        generation: Generation,
        *,
        ask_again: bool,
    ) -> None:
        """`ask_again`: also for texts that were refused before."""
        self._records = records
        self._embedder = embedder
        self._refusals = refusals
        self._observer = observer
        self._namespace = namespace
        self._model = generation.model_digest
        self._size = generation.dimension * 4
        self._ask_again = ask_again
        self._calls = CallCount()
        self._divisions_left = _CALLS_TO_DIVIDE
        self._takes_texts = False
        self.found: Final[dict[str, bytes]] = {}
        self.refused: Final[set[str]] = set()
        self.cache_hits = 0
        self.inputs = 0
        self.input_bytes = 0

    @property
    def calls(self) -> int:
        return self._calls.calls

    async def get(self, texts: Mapping[str, str], progress: Progress) -> None:
        """Find the vectors of `texts`, which are by digest. Each part is cached as it comes.

        Raises: SEMANTIC_UNAVAILABLE (PROVIDER_FAILED, failure) if the provider fails, or refuses more texts than can be
        told apart.
        """
        missing = await self.cached(texts)
        self._observer.embeddings_cached(hits=0, misses=len(missing))
        if not self._ask_again:
            self.refused.update(self._refusals.known(self._namespace, self._model, missing))
        rest = [digest for digest in missing if digest not in self.refused]
        self._divisions_left += len(rest) // _TEXTS_PER_CALL_TO_DIVIDE
        for start in range(0, len(rest), TEXTS_PER_CALL):
            await progress(len(self.found), len(self.found) + len(rest) - start)
            await self._embed(rest[start : start + TEXTS_PER_CALL], texts)

    async def cached(self, text_digests: Iterable[str]) -> list[str]:
        """Find the vectors that are kept already. Returns the digests of those that are not."""
        wanted = [digest for digest in text_digests if digest not in self.found and digest not in self.refused]
        if not wanted:
            return []
        cached = await self._records.cached_vectors(self._namespace, self._model, wanted)
        usable = {digest: vector for digest, vector in cached.items() if len(vector) == self._size}
        self.found.update(usable)
        self.cache_hits += len(usable)
        self._observer.embeddings_cached(hits=len(usable), misses=0)
        return [digest for digest in wanted if digest not in usable]

    async def _embed(self, digests: Sequence[str], texts: Mapping[str, str]) -> None:
        try:
            vectors = await self._provided([texts[digest] for digest in digests])
        except EmbeddingError as error:
            if not error.about_input:
                raise _provider_failed(error) from error
            await self._require_well(error)
            if len(digests) == 1:
                self.refused.add(digests[0])
                self._refusals.add(self._namespace, self._model, digests[0])
                return
            if self._divisions_left < 2:
                raise _provider_failed(error) from error
            self._divisions_left -= 2
        else:
            self._takes_texts = True
            fresh = dict(zip(digests, vectors, strict=True))
            await self._records.cache_vectors(self._namespace, self._model, fresh)
            self.found.update(fresh)
            for digest in digests:
                self._refusals.forget(self._namespace, self._model, digest)
            self.inputs += len(digests)
            self.input_bytes += sum(len(texts[digest].encode()) for digest in digests)
            return
        middle = len(digests) // 2
        await self._embed(digests[:middle], texts)
        await self._embed(digests[middle:], texts)

    async def _require_well(self, refusal: EmbeddingError) -> None:
        """A provider that takes no text at all refuses us, and not what is in them.

        Raises: SEMANTIC_UNAVAILABLE.
        """
        if self._takes_texts:
            return
        try:
            await self._provided([_CONTROL])
        except EmbeddingError as error:
            raise _provider_failed(refusal if error.about_input else error) from error
        self._takes_texts = True

    async def _provided(self, texts: Sequence[str]) -> list[bytes]:
        token = counting_calls.set(self._calls)
        try:
            return await self._embedder.embed_passages(texts)
        finally:
            counting_calls.reset(token)


def _provider_failed(error: EmbeddingError) -> DomainError:
    return DomainError(
        Reason.SEMANTIC_UNAVAILABLE,
        f"the embedding provider failed: {error.words}",
        cause="PROVIDER_FAILED",
        **error.facts,
    )
