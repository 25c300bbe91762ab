"""An embedder whose vectors the test gives, or that follow from the text alone; and that fails when it is told to."""

import hashlib
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from durable_memory.adapters.embedding.meter import Meter
from durable_memory.adapters.embedding.vectors import unit_vectors
from durable_memory.domain.semantic.generation import Generation, configuration_digest
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure, EmbeddingUsage, Vector

DIMENSION = 8


def numbers_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """`dimension` numbers that depend on nothing but `text`; those of two texts point in unrelated directions."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return [float(number) for number in np.random.default_rng(seed).standard_normal(dimension)]


def floats(vector: Vector) -> np.ndarray:
    """A vector of the port as an array."""
    return np.frombuffer(vector, dtype="<f4")


class FixtureEmbedder:
    """`Embedder` without a model.

    `vectors` gives the numbers of the texts that it has; others get `numbers_of`, or with `only_given` are refused.
    Each error of `failures` takes the place of one call. `passages` and `queries` are the texts that were asked for.
    """

    def __init__(
        self,
        vectors: Mapping[str, Sequence[float]] | None = None,
        *,
        dimension: int = DIMENSION,
        model: str = "fixture",
        revision: str = "1",
        similarity_floor: float = 0.0,
        only_given: bool = False,
    ) -> None:
        self.generation = Generation(
            provider="fixture",
            model=model,
            revision=revision,
            dimension=dimension,
            similarity_floor=similarity_floor,
        )
        self.failures: deque[EmbeddingError] = deque()
        self.passages: list[str] = []
        self.queries: list[str] = []
        self.is_open = False
        self._vectors = dict(vectors or {})
        self._only_given = only_given
        self._meter = Meter()

    @property
    def configuration_digest(self) -> str:
        return configuration_digest("fixture", {"model": self.generation.model})

    @property
    def usage(self) -> EmbeddingUsage:
        return self._meter.usage

    async def open(self) -> Generation:
        self.is_open = True
        return self.generation

    async def close(self) -> None:
        self.is_open = False

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        if not texts:
            return []
        self.passages += texts
        return self._call(texts)

    async def embed_query(self, text: str) -> Vector:
        self.queries.append(text)
        return self._call([text])[0]

    def _call(self, texts: Sequence[str]) -> list[Vector]:
        self._meter.called(texts)
        try:
            if self.failures:
                raise self.failures.popleft()
            rows = [self._row(text) for text in texts]
            return unit_vectors(rows, count=len(texts), dimension=self.generation.dimension)
        except EmbeddingError as error:
            self._meter.failed(error.failure)
            raise

    def _row(self, text: str) -> Sequence[float]:
        if text in self._vectors:
            return self._vectors[text]
        if self._only_given:
            raise EmbeddingError(EmbeddingFailure.REFUSED, retryable=False)
        return numbers_of(text, self.generation.dimension)
