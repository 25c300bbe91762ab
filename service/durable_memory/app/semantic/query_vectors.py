"""Vectors of questions: made once for all who ask the same, and kept for those who ask it again."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.embedded_text import text_digest
from durable_memory.domain.semantic.generation import Generation
from durable_memory.ports.embedder import Embedder, EmbeddingError, EmbeddingFailure, Vector

QUERY_VECTORS_BYTES: Final = 16 * 1024 * 1024
_ENTRY_BYTES: Final = 512
"""What a vector takes beside its floats: key, array, and place in the cache."""

_MOST_UNDER_WAY: Final = 512
"""Where so many different questions wait for a provider, another would wait in vain."""

QueryVector = NDArray[np.float32]
_Key = tuple[str, str, str, str]


class QueryVectors:
    """A least-recently-used cache under a byte budget, keyed by tenant and principal, the model's identity, and the
    digest of the text.

    Nobody shares it with another principal: how long an answer takes would tell what others have asked. Only digests
    are kept, never texts. An embedding under way is a task of its own: it ends by the embedder's own
    deadline and not with the recall that began it, so that those who share it get it, and whoever asks again finds it.
    """

    def __init__(self, embedder: Embedder, *, budget_bytes: int = QUERY_VECTORS_BYTES) -> None:
        self._embedder = embedder
        self._budget = budget_bytes
        self._bytes = 0
        self._held: OrderedDict[_Key, QueryVector] = OrderedDict()
        self._under_way: dict[_Key, asyncio.Task[QueryVector]] = {}
        self._model: tuple[Generation, str] | None = None

    @property
    def nbytes(self) -> int:
        """Estimated bytes of memory."""
        return self._bytes

    @property
    def under_way(self) -> int:
        """How many questions are with the embedder."""
        return len(self._under_way)

    def begin(self, namespace: Namespace, generation: Generation, query: str) -> asyncio.Future[QueryVector]:
        """The vector, float32 [dimension], L2-normalised; await it shielded. Fails with EmbeddingError."""
        if self._model is None or self._model[0] is not generation:
            self._model = (generation, generation.model_digest)
        key = (namespace.tenant_id, namespace.principal_id, self._model[1], text_digest(query))
        held = self._held.get(key)
        if held is not None:
            self._held.move_to_end(key)
            return _done(held)
        task = self._under_way.get(key)
        if task is None:
            if len(self._under_way) >= _MOST_UNDER_WAY:
                return _failed(EmbeddingError(EmbeddingFailure.TIMEOUT, retryable=True))
            task = asyncio.create_task(self._embed(key, query, generation.dimension), name="embed query")
            task.add_done_callback(_retrieve)
            self._under_way[key] = task
        return task

    async def close(self) -> None:
        """Stop what is under way, and forget everything."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._held.clear()
        self._bytes = 0

    async def _embed(self, key: _Key, query: str, dimension: int) -> QueryVector:
        try:
            vector = _floats(await self._embedder.embed_query(query), dimension)
        finally:
            del self._under_way[key]
        self._held[key] = vector
        self._bytes += _size(vector)
        while self._bytes > self._budget:
            _, oldest = self._held.popitem(last=False)
            self._bytes -= _size(oldest)
        return vector


def _floats(encoded: Vector, dimension: int) -> QueryVector:
    vector = np.frombuffer(encoded, dtype="<f4").astype(np.float32)
    if len(vector) != dimension:
        raise EmbeddingError(EmbeddingFailure.WRONG_DIMENSION, retryable=False, dimensions=(dimension, len(vector)))
    return vector


def _size(vector: QueryVector) -> int:
    return vector.nbytes + _ENTRY_BYTES


def _done(vector: QueryVector) -> asyncio.Future[QueryVector]:
    future: asyncio.Future[QueryVector] = asyncio.get_running_loop().create_future()
    future.set_result(vector)
    return future


def _failed(error: EmbeddingError) -> asyncio.Future[QueryVector]:
    future: asyncio.Future[QueryVector] = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    _retrieve(future)
    return future


def _retrieve(future: asyncio.Future[QueryVector]) -> None:
    """Every waiter gets the failure itself; where all have left, it must not be reported as never retrieved."""
    if not future.cancelled():
        future.exception()
