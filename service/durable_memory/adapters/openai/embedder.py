"""`Embedder` over an endpoint: batches, turns, pauses and repetitions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Final

from durable_memory.adapters.embedding.breaker import CircuitBreaker
from durable_memory.adapters.embedding.inputs import batches
from durable_memory.adapters.embedding.meter import Meter
from durable_memory.adapters.embedding.turns import Turns
from durable_memory.adapters.embedding.vectors import unit_vectors
from durable_memory.adapters.openai.answer import read_answer
from durable_memory.adapters.openai.endpoint import Endpoint, address_of
from durable_memory.adapters.openai.settings import OpenAISettings
from durable_memory.domain.semantic.generation import Generation, configuration_digest
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure, EmbeddingUsage, Vector
from durable_memory.ports.runtime import Clock, Ids

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PROVIDER: Final = "openai"

_PROBE: Final = "dimension"
_KNOCK: Final = "health"
_PASSING: Final = frozenset({EmbeddingFailure.RATE_LIMITED, EmbeddingFailure.UNREACHABLE})
_INLINE_BYTES: Final = 65_536
"""Longer answers are read by another thread: a megabyte of numbers holds the event loop for tens of milliseconds."""


class OpenAIEmbedder:
    """Belongs to one event loop. A failed `open` leaves nothing behind and may be repeated."""

    def __init__(
        self,
        settings: OpenAISettings,
        *,
        clock: Clock,
        ids: Ids,
        breaker: CircuitBreaker | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._sleep = sleep
        self._breaker = breaker or CircuitBreaker(clock)
        self._meter = Meter()
        self._turns = Turns(settings.max_concurrent)
        self._left_alone_until = -inf
        self._left_alone_after: tuple[EmbeddingFailure, int | None] = (EmbeddingFailure.RATE_LIMITED, None)
        self._endpoint: Endpoint | None = None
        self._generation: Generation | None = None
        self._served_model = ""
        self._opening = asyncio.Lock()

    @property
    def configuration_digest(self) -> str:
        settings = self._settings
        return configuration_digest(
            PROVIDER,
            {
                "base_url": settings.base_url,
                "model": settings.model,
                "dimensions": settings.dimensions,
                "revision": settings.revision,
                "form": settings.form.label,
                "similarity_floor": settings.similarity_floor,
            },
        )

    @property
    def usage(self) -> EmbeddingUsage:
        return replace(self._meter.usage, circuit_open=self._breaker.is_open)

    async def open(self) -> Generation:
        async with self._opening:
            if self._generation is None:
                self._generation = await self._probe()
            return self._generation

    async def close(self) -> None:
        endpoint, self._endpoint = self._endpoint, None
        self._generation = None
        if endpoint is not None:
            await endpoint.close()

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        generation = self._opened()
        if self._breaker.is_open:
            await self._knock()
        inputs = [self._settings.form.passage(text) for text in texts]
        runs = enumerate(
            batches(inputs, max_texts=self._settings.batch_max_texts, max_bytes=self._settings.batch_max_bytes)
        )
        done: dict[int, list[Vector]] = {}

        async def work() -> None:
            for number, run in runs:  # shared: every worker takes the next one
                done[number] = await self._send(run, generation.dimension, query=False)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._settings.max_concurrent):
                    group.create_task(work())
        except* EmbeddingError as failures:
            failure = failures.exceptions[0]
        else:
            return [vector for number in sorted(done) for vector in done[number]]
        raise failure

    async def embed_query(self, text: str) -> Vector:
        generation = self._opened()
        (vector,) = await self._send([self._settings.form.query(text)], generation.dimension, query=True)
        return vector

    async def _knock(self) -> None:
        """Find out whether the provider is back. A batch may take a minute for it, in which no question could try."""
        try:
            await self.embed_query(_KNOCK)
        except EmbeddingError:
            if self._breaker.is_open:
                raise

    def _opened(self) -> Generation:
        if self._generation is None:
            raise RuntimeError("the embedder is not open")
        return self._generation

    async def _probe(self) -> Generation:
        settings = self._settings
        self._endpoint = Endpoint(settings, self._clock)
        self._served_model = ""
        try:
            (vector,) = await self._send([settings.form.passage(_PROBE)], settings.dimensions, query=False)
        except BaseException:
            await self.close()
            raise
        behind = settings.revision or self._served_model or "unnamed"
        return Generation(
            provider=PROVIDER,
            model=settings.model,
            revision=f"{behind};{settings.form.label}",
            dimension=len(vector) // 4,
            similarity_floor=settings.similarity_floor,
        )

    async def _send(self, texts: Sequence[str], dimension: int | None, *, query: bool) -> list[Vector]:
        """One batch, with repetitions. A question gives up when its time is over, however that time went by."""
        settings = self._settings
        ends = self._clock.monotonic() + settings.query_timeout_seconds if query else inf
        last: EmbeddingError | None = None
        for attempt in range(settings.attempts):
            if last is not None:
                pause = self._pause(attempt)
                if self._clock.monotonic() + pause >= ends:
                    break
                await self._sleep(pause)
            try:
                await self._wait_if_told_to(ends)
                async with self._turn(ends, query=query):
                    return await self._attempt(texts, dimension, ends, query=query)
            except EmbeddingError as error:
                self._meter.failed(error.failure)
                circuit_opened = error.failure is EmbeddingFailure.CIRCUIT_OPEN and last is not None
                last = last if circuit_opened else error
                if circuit_opened or error.failure not in _PASSING or self._is_left_alone_too_long(ends):
                    break
        assert last is not None
        last.endpoint = address_of(settings.base_url)
        raise last

    async def _attempt(self, texts: Sequence[str], dimension: int | None, ends: float, *, query: bool) -> list[Vector]:
        endpoint = self._endpoint
        if endpoint is None:  # closed meanwhile
            raise EmbeddingError(EmbeddingFailure.UNREACHABLE, retryable=False)
        timeout = min(self._settings.call_timeout_seconds, ends - self._clock.monotonic())
        with self._breaker.call(telling=self._is_telling(timeout, query=query)):
            self._meter.called(texts)
            try:
                body = await endpoint.embeddings(texts, timeout_seconds=timeout)
            except EmbeddingError as error:
                self._heed(error)
                raise
            if len(body) > _INLINE_BYTES:
                vectors, tokens = await asyncio.to_thread(self._read, body, len(texts), dimension)
            else:
                vectors, tokens = self._read(body, len(texts), dimension)
            self._meter.billed(tokens)
            return vectors

    def _is_telling(self, timeout: float, *, query: bool) -> bool:
        """Whether a provider that is well would answer this call in time.

        It would answer the opening text, and a question that has half of its time left after waiting for its turn.
        Passages may be more than it can do in time, and a question would be answered all the same.
        """
        if not query:
            return self._generation is None
        settings = self._settings
        return timeout >= min(settings.call_timeout_seconds, settings.query_timeout_seconds) / 2

    def _read(self, body: bytes, count: int, dimension: int | None) -> tuple[list[Vector], int]:
        """The vectors, and how many tokens they cost."""
        answer = read_answer(body, count=count)
        if self._served_model and answer.model and answer.model != self._served_model:
            raise EmbeddingError(EmbeddingFailure.WRONG_MODEL, retryable=False)
        vectors = unit_vectors(answer.rows, count=count, dimension=dimension)
        self._served_model = self._served_model or answer.model
        return vectors, answer.tokens

    def _heed(self, error: EmbeddingError) -> None:
        """A provider that asks for time gets it from every caller, not from this one alone."""
        if error.retry_after_seconds is None:
            return
        until = self._clock.monotonic() + error.retry_after_seconds
        if until > self._left_alone_until:
            self._left_alone_until = until
            passing = error.failure in _PASSING  # another one is about the call that met it
            self._left_alone_after = (error.failure, error.status) if passing else (EmbeddingFailure.RATE_LIMITED, None)

    def _is_left_alone_too_long(self, ends: float) -> bool:
        longest = self._clock.monotonic() + self._settings.longest_pause_seconds
        return self._left_alone_until > longest or self._left_alone_until >= ends

    async def _wait_if_told_to(self, ends: float) -> None:
        """Raises: EmbeddingError with what the provider asked for time with, where that is too long."""
        left = self._left_alone_until - self._clock.monotonic()
        if left <= 0:
            return
        if self._is_left_alone_too_long(ends):
            failure, status = self._left_alone_after
            raise EmbeddingError(failure, retryable=True, status=status, retry_after_seconds=left)
        await self._sleep(left)

    def _pause(self, attempt: int) -> float:
        """Doubling, with half of it left to chance, so that callers who failed together do not come back together."""
        longest = min(self._settings.first_pause_seconds * 2.0 ** (attempt - 1), self._settings.longest_pause_seconds)
        chance = int(self._ids.random_hex(2), 16) / 0xFFFF
        return longest * (1 + chance) / 2

    @asynccontextmanager
    async def _turn(self, ends: float, *, query: bool) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(None if ends == inf else max(0.0, ends - self._clock.monotonic())):
                await self._turns.acquire(query=query)
        except TimeoutError:
            raise EmbeddingError(EmbeddingFailure.TIMEOUT, retryable=True) from None
        try:
            yield
        finally:
            self._turns.release(query=query)
