"""`Embedder` over a packaged model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.adapters.embedding.inputs import batches, windows
from durable_memory.adapters.embedding.meter import Meter
from durable_memory.adapters.embedding.vectors import mean_vector, unit_vectors
from durable_memory.adapters.local.model import LocalModel
from durable_memory.adapters.local.model_thread import ModelThread
from durable_memory.domain.semantic.generation import Generation, configuration_digest
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure, EmbeddingUsage, Vector

_PROBE: Final = "dimension"
_NORM_TOLERANCE: Final = 1e-3


class LocalEmbedder:
    """Belongs to one event loop, which it never blocks; all work is done by a thread of its own, questions first.

    A batch that takes longer than `call_timeout_seconds`, or a question longer than `query_timeout_seconds` with its
    waiting, fails with TIMEOUT. The thread finishes what it began.
    """

    def __init__(
        self, model: LocalModel, *, call_timeout_seconds: float = 60.0, query_timeout_seconds: float = 5.0
    ) -> None:
        self._model = model
        self._call_timeout_seconds = call_timeout_seconds
        self._query_timeout_seconds = query_timeout_seconds
        self._meter = Meter()
        self._thread: ModelThread | None = None
        self._generation: Generation | None = None
        self._opening = asyncio.Lock()

    @property
    def configuration_digest(self) -> str:
        model = self._model
        return configuration_digest(
            model.provider,
            {
                "model": model.name,
                "form": model.form.label,
                "window": model.window_bytes,
                "similarity_floor": model.similarity_floor,
            },
        )

    @property
    def usage(self) -> EmbeddingUsage:
        return self._meter.usage

    async def open(self) -> Generation:
        async with self._opening:
            if self._generation is None:
                self._thread = ModelThread()
                try:
                    self._generation = await self._load(self._thread)
                except BaseException:
                    await self.close()
                    raise
            return self._generation

    async def close(self) -> None:
        thread, self._thread, self._generation = self._thread, None, None
        if thread is not None:
            await thread.close(self._model.unload)

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        thread, generation = self._opened()
        model = self._model
        pieces = [windows(model.form.passage(text), model.window_bytes) for text in texts]
        flat = [piece for of_text in pieces for piece in of_text]
        made: list[Vector] = []
        for run in batches(flat, max_texts=model.batch_texts, max_bytes=model.batch_bytes):
            made += await self._call(thread, model.passages, run, generation.dimension)
        vectors = iter(made)
        return [
            mean_vector([next(vectors) for _ in of_text], [len(piece.encode()) for piece in of_text])
            for of_text in pieces
        ]

    async def embed_query(self, text: str) -> Vector:
        thread, generation = self._opened()
        model = self._model
        (vector,) = await self._call(
            thread,
            lambda texts: model.query(texts[0]),
            [model.form.query(text)],
            generation.dimension,
            query=True,
        )
        return vector

    def _opened(self) -> tuple[ModelThread, Generation]:
        if self._thread is None or self._generation is None:
            raise RuntimeError("the embedder is not open")
        return self._thread, self._generation

    async def _load(self, thread: ModelThread) -> Generation:
        model = self._model
        try:
            revision = await thread.run(model.load, timeout_seconds=self._call_timeout_seconds)
        except (ImportError, OSError, RuntimeError) as error:
            # Files of the package are missing or were built for another machine: nothing that passes by itself.
            raise EmbeddingError(EmbeddingFailure.UNREACHABLE, retryable=False) from error
        (vector,) = await self._call(thread, model.passages, [model.form.passage(_PROBE)], None)
        return Generation(
            provider=model.provider,
            model=model.name,
            revision=f"{revision};{model.form.label};window={model.window_bytes}",
            dimension=len(vector) // 4,
            similarity_floor=model.similarity_floor,
        )

    async def _call(
        self,
        thread: ModelThread,
        encode: Callable[[Sequence[str]], NDArray[Any]],
        texts: Sequence[str],
        dimension: int | None,
        *,
        query: bool = False,
    ) -> list[Vector]:
        def work() -> list[Vector]:
            self._meter.called(texts)
            try:
                rows = encode(texts)
            except Exception:  # noqa: BLE001 - engines raise what they like, in words that may quote the text
                raise EmbeddingError(EmbeddingFailure.UNREADABLE, retryable=True) from None
            vectors = unit_vectors(rows, count=len(texts), dimension=dimension)
            # Both models make unit vectors; another one is memory that the engine never wrote.
            if np.abs(np.linalg.norm(rows, axis=1) - 1).max() > _NORM_TOLERANCE:
                raise EmbeddingError(EmbeddingFailure.UNREADABLE, retryable=True)
            return vectors

        timeout = self._query_timeout_seconds if query else self._call_timeout_seconds
        try:
            return await thread.run(work, timeout_seconds=timeout, query=query)
        except EmbeddingError as error:
            self._meter.failed(error.failure)
            raise
