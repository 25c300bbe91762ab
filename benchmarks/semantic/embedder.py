"""An embedder without a model: texts that share words are near each other, and a vector takes microseconds."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.domain.semantic.generation import Generation, configuration_digest
from durable_memory.ports.embedder import EmbeddingUsage, Vector

_WORDS: Final = 8_192


class WordSumEmbedder:
    """`Embedder`: the normalised sum of one fixed random direction for each word.

    `seconds` is the time that it has taken so far, for whoever measures the rest.
    """

    def __init__(self, dimension: int) -> None:
        self.generation: Final = Generation(
            provider="benchmark", model="word-sum", revision="1", dimension=dimension, similarity_floor=0.0
        )
        self.configuration_digest: Final = configuration_digest("benchmark", {"dimension": dimension})
        self.usage: Final = EmbeddingUsage()
        self.seconds = 0.0
        self._directions = np.random.default_rng(7).standard_normal((_WORDS, dimension), dtype=np.float32)

    async def open(self) -> Generation:
        return self.generation

    async def close(self) -> None:
        """There is nothing to let go of."""

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        return self._embed(texts)

    async def embed_query(self, text: str) -> Vector:
        return self._embed([text])[0]

    def _embed(self, texts: Sequence[str]) -> list[Vector]:
        started = time.perf_counter()
        vectors = [self.direction(text).astype("<f4").tobytes() for text in texts]
        self.usage.calls += 1
        self.usage.inputs += len(texts)
        self.seconds += time.perf_counter() - started
        return vectors

    def direction(self, text: str) -> NDArray[np.float32]:
        """float32 [dimension], of length 1."""
        total: NDArray[np.float32] = self._directions[
            [zlib.crc32(word.encode()) % _WORDS for word in text.split()]
        ].sum(0)
        return total / np.linalg.norm(total)
