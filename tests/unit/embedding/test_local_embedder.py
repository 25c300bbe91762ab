"""The embedder over a packaged model, with a model that does what a test says."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence

import numpy as np
import pytest

from durable_memory.adapters.embedding.inputs import InputForm
from durable_memory.adapters.local.embedder import LocalEmbedder
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure
from tests.fixture_embedder import DIMENSION, floats, numbers_of
from tests.processes.polling import wait_until_async


class _Model:
    provider = "stub"
    name = "stub-model"
    form = InputForm(query_prefix="q:", passage_prefix="p:", query_max_bytes=8)
    similarity_floor = 0.25
    window_bytes = 10
    batch_texts = 2
    batch_bytes = 100

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.threads: set[int] = set()
        self.loads: Callable[[], None] = lambda: None
        self.changes: Callable[[np.ndarray], np.ndarray] = lambda rows: rows
        self.gate = threading.Event()
        self.gate.set()
        self.is_loaded = False

    def load(self) -> str:
        self.threads.add(threading.get_ident())
        self.loads()
        self.is_loaded = True
        return "1.0+abc"

    def passages(self, texts: Sequence[str]) -> np.ndarray:
        self.threads.add(threading.get_ident())
        self.calls.append(list(texts))
        assert self.gate.wait(60)
        rows = np.array([numbers_of(text) for text in texts])
        return self.changes(rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def query(self, text: str) -> np.ndarray:
        return self.passages([text])

    def unload(self) -> None:
        self.is_loaded = False


@pytest.fixture
def model() -> _Model:
    return _Model()


@pytest.fixture
async def embedder(model) -> AsyncIterator[LocalEmbedder]:
    embedder = LocalEmbedder(model, call_timeout_seconds=60.0, query_timeout_seconds=60.0)
    await embedder.open()
    yield embedder
    model.gate.set()
    await embedder.close()


async def test_its_generation_says_which_model_how_it_is_fed_and_what_it_makes(embedder):
    generation = await embedder.open()
    assert (generation.provider, generation.model, generation.dimension) == ("stub", "stub-model", DIMENSION)
    assert generation.revision == f"1.0+abc;{_Model.form.label};window=10"
    assert generation.similarity_floor == 0.25


async def test_texts_get_their_vectors_in_their_order_in_batches(embedder, model):
    vectors = await embedder.embed_passages(["a", "b", "c"])
    assert model.calls[1:] == [["p:a", "p:b"], ["p:c"]]
    np.testing.assert_allclose(np.linalg.norm(floats(vectors[2])), 1.0, atol=1e-6)
    expected = np.array(numbers_of("p:c"))
    np.testing.assert_allclose(floats(vectors[2]), expected / np.linalg.norm(expected), atol=1e-6)
    assert await embedder.embed_passages([]) == []


async def test_a_long_passage_is_given_in_pieces_and_stands_in_their_middle(embedder, model):
    first, long, last = await embedder.embed_passages(["a", "bbbbbbbbccccc", "d"])
    assert model.calls[1:] == [["p:a", "p:bbbbbbbb"], ["ccccc", "p:d"]]
    pieces = [np.array(numbers_of(text)) for text in ("p:bbbbbbbb", "ccccc")]
    expected = sum(weight * piece / np.linalg.norm(piece) for weight, piece in zip((10, 5), pieces, strict=True))
    np.testing.assert_allclose(floats(long), expected / np.linalg.norm(expected), atol=1e-6)
    assert [first, last] == await embedder.embed_passages(["a", "d"])


async def test_a_question_has_its_own_prefix_and_cap(embedder, model):
    await embedder.embed_query("a long question")
    assert model.calls[1:] == [["q:a long q"]]


async def test_everything_runs_in_one_thread_that_is_not_the_event_loops(embedder, model):
    await asyncio.gather(*(embedder.embed_query("q") for _ in range(5)), embedder.embed_passages(["a"] * 5))
    assert len(model.threads) == 1
    assert threading.get_ident() not in model.threads


async def test_the_event_loop_goes_on_while_the_model_works(embedder, model):
    model.gate.clear()
    working = asyncio.create_task(embedder.embed_query("q"))
    await wait_until_async(lambda: len(model.calls) == 2)
    assert not working.done()
    model.gate.set()
    assert await working


async def test_a_question_goes_before_passages_that_wait(embedder, model):
    model.gate.clear()
    passages = asyncio.create_task(embedder.embed_passages(["a", "b", "c", "d"]))
    await wait_until_async(lambda: len(model.calls) == 2)
    question = asyncio.create_task(embedder.embed_query("q"))
    await asyncio.sleep(0)
    model.gate.set()
    await asyncio.gather(passages, question)
    assert model.calls[1:] == [["p:a", "p:b"], ["q:q"], ["p:c", "p:d"]]


async def test_what_takes_too_long_is_given_up_on_but_never_run_beside_something_else(model):
    embedder = LocalEmbedder(model, query_timeout_seconds=1.0)
    await embedder.open()
    model.gate.clear()
    for _ in range(2):
        with pytest.raises(EmbeddingError) as failed:
            await embedder.embed_query("q")
        assert failed.value.failure is EmbeddingFailure.TIMEOUT
    assert len(model.calls) == 2, "the second one waited for the first to end"
    assert embedder.usage.failures == {EmbeddingFailure.TIMEOUT: 2}
    model.gate.set()
    assert await embedder.embed_passages(["p"])
    await embedder.close()


async def test_what_was_given_up_on_keeps_its_turn_until_it_ends_so_that_questions_still_go_first(embedder, model):
    model.gate.clear()
    given_up = asyncio.create_task(embedder.embed_query("given up"))
    await wait_until_async(lambda: len(model.calls) == 2)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    passages = asyncio.create_task(embedder.embed_passages(["a"]))
    await asyncio.sleep(0)
    question = asyncio.create_task(embedder.embed_query("q"))
    await asyncio.sleep(0)
    model.gate.set()
    await asyncio.gather(passages, question)
    assert model.calls[1:] == [["q:given up"], ["q:q"], ["p:a"]]


async def test_a_cancelled_caller_leaves_the_thread_to_the_next(embedder, model):
    model.gate.clear()
    first = asyncio.create_task(embedder.embed_query("first"))
    second = asyncio.create_task(embedder.embed_query("second"))
    await wait_until_async(lambda: len(model.calls) == 2)
    first.cancel()
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    model.gate.set()
    assert await embedder.embed_query("third")
    assert model.calls[1:] == [["q:first"], ["q:third"]]


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        (lambda rows: rows[:-1], EmbeddingFailure.WRONG_COUNT),
        (lambda rows: rows[:, :-1], EmbeddingFailure.WRONG_DIMENSION),
        (lambda rows: rows * np.nan, EmbeddingFailure.NOT_FINITE),
        (lambda rows: rows * 0, EmbeddingFailure.ZERO_VECTOR),
        (lambda rows: rows * 2, EmbeddingFailure.UNREADABLE),
    ],
)
async def test_a_model_that_makes_no_unit_vectors_fails_the_call(embedder, model, changes, failure):
    model.changes = changes
    with pytest.raises(EmbeddingError) as failed:
        await embedder.embed_passages(["a", "b"])
    assert failed.value.failure is failure
    assert embedder.usage.failures == {failure: 1}


@pytest.mark.parametrize("text", ["", "nul\0"])
async def test_a_text_that_it_would_misread_never_reaches_the_model(embedder, model, text):
    with pytest.raises(EmbeddingError):
        await embedder.embed_passages(["a", text])
    with pytest.raises(EmbeddingError):
        await embedder.embed_query(text)
    assert len(model.calls) == 1


@pytest.mark.parametrize("error", [ImportError("no engine"), OSError("no file"), RuntimeError("failed to load")])
async def test_a_model_that_cannot_be_loaded_says_so_and_may_be_tried_again(model, error):
    def fail() -> None:
        raise error

    embedder = LocalEmbedder(model)
    model.loads = fail
    with pytest.raises(EmbeddingError) as failed:
        await embedder.open()
    assert (failed.value.failure, failed.value.retryable) == (EmbeddingFailure.UNREACHABLE, False)
    assert failed.value.__cause__ is error
    model.loads = lambda: None
    assert await embedder.open()
    await embedder.close()


async def test_closing_lets_the_model_go_after_what_is_under_way(model):
    embedder = LocalEmbedder(model)
    await embedder.open()
    model.gate.clear()
    working = asyncio.create_task(embedder.embed_passages(["a", "b", "c"]))
    await wait_until_async(lambda: len(model.calls) == 2)
    closing = asyncio.create_task(embedder.close())
    await asyncio.sleep(0)
    assert model.is_loaded
    model.gate.set()
    await closing
    assert not model.is_loaded
    with pytest.raises(EmbeddingError) as failed:
        await working
    assert failed.value.failure is EmbeddingFailure.UNREACHABLE
    await embedder.close()
    with pytest.raises(RuntimeError):
        await embedder.embed_query("q")


async def test_usage_counts_what_reached_the_model(embedder):
    before = (embedder.usage.calls, embedder.usage.inputs, embedder.usage.input_bytes)
    await embedder.embed_passages(["a", "b", "c"])
    usage = embedder.usage
    assert (usage.calls - before[0], usage.inputs - before[1], usage.input_bytes - before[2]) == (2, 3, 9)


async def test_whatever_an_engine_raises_is_a_failure_of_the_provider(embedder, model):
    def fails(rows: np.ndarray) -> np.ndarray:
        raise IndexError("token 17 of 'the vault opens at seven'")

    model.changes = fails
    for call in (embedder.embed_query("q"), embedder.embed_passages(["a"])):
        with pytest.raises(EmbeddingError) as failed:
            await call
        assert failed.value.failure is EmbeddingFailure.UNREADABLE
        assert "vault" not in str(failed.value)
    assert embedder.usage.failures == {EmbeddingFailure.UNREADABLE: 2}
