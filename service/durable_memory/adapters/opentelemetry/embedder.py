"""`Embedder` with its calls timed."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.metrics import Meter
from opentelemetry.trace import Tracer

from durable_memory.adapters.opentelemetry.timed_calls import TimedCalls
from durable_memory.domain.semantic.generation import Generation
from durable_memory.ports.embedder import Embedder, EmbeddingUsage, Vector
from durable_memory.ports.runtime import Clock


class ObservedEmbedder:
    """Spans say how many texts of how many bytes, and never which."""

    def __init__(self, embedder: Embedder, tracer: Tracer, meter: Meter, clock: Clock) -> None:
        self._embedder = embedder
        self._calls = TimedCalls(
            tracer, meter, clock, "embedding", "Duration of embedding, with waiting and repetitions, by outcome"
        )

    @property
    def configuration_digest(self) -> str:
        return self._embedder.configuration_digest

    @property
    def usage(self) -> EmbeddingUsage:
        return self._embedder.usage

    async def open(self) -> Generation:
        with self._calls.call("open"):
            return await self._embedder.open()

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        with self._calls.call("passages", _size(texts)):
            return await self._embedder.embed_passages(texts)

    async def embed_query(self, text: str) -> Vector:
        with self._calls.call("query", _size([text])):
            return await self._embedder.embed_query(text)

    async def close(self) -> None:
        await self._embedder.close()


def _size(texts: Sequence[str]) -> dict[str, int]:
    return {
        "durable_memory.embedding.inputs": len(texts),
        "durable_memory.embedding.characters": sum(map(len, texts)),
    }
