"""An endpoint on loopback, and embedders for it on a clock that is moved by hand."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from durable_memory.adapters.openai import OpenAIEmbedder, OpenAISettings
from durable_memory.adapters.runtime import ManualClock, SystemIds
from tests.processes.embedding_provider import EmbeddingProvider


class Pauses:
    """Takes the place of sleeping: notes how long, and moves the clock."""

    def __init__(self, clock: ManualClock) -> None:
        self.seconds: list[float] = []
        self._clock = clock

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self._clock.advance(timedelta(seconds=seconds))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def pauses(clock) -> Pauses:
    return Pauses(clock)


@pytest.fixture
async def provider() -> AsyncIterator[EmbeddingProvider]:
    async with EmbeddingProvider() as endpoint:
        yield endpoint


@pytest.fixture
async def make(provider, clock, pauses):
    """Embedders for the provider, by what their settings have that is not usual; closed with the test."""
    made: list[OpenAIEmbedder] = []

    def make(**settings) -> OpenAIEmbedder:
        usual = {"base_url": provider.base_url, "model": "m", "api_key": "sk-hunter2"}
        embedder = OpenAIEmbedder(OpenAISettings(**(usual | settings)), clock=clock, ids=SystemIds(), sleep=pauses)
        made.append(embedder)
        return embedder

    yield make
    for embedder in made:
        await embedder.close()
