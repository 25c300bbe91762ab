"""The openai embedder before an endpoint that keeps failing, or is slow: when it is left alone, and for how long."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import pytest

from durable_memory.adapters.openai import OpenAIEmbedder
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure
from tests.processes.embedding_provider import EmbeddingProvider, answers, hangs, says
from tests.processes.polling import wait_until_async

_TEXT = "the vault opens at seven"
_MANY = ["one", "two", "three"]


async def _failure(embedder: OpenAIEmbedder, texts: Sequence[str]) -> EmbeddingError:
    with pytest.raises(EmbeddingError) as failed:
        await embedder.embed_passages(texts)
    return failed.value


async def test_a_provider_that_keeps_failing_is_left_alone_then_tried_once(make, provider, clock):
    embedder = make(attempts=1)
    await embedder.open()
    provider.usually = says(500)
    for _ in range(5):
        await _failure(embedder, [_TEXT])
    made = len(provider.calls)
    error = await _failure(embedder, [_TEXT])
    assert error.failure is EmbeddingFailure.CIRCUIT_OPEN
    assert embedder.usage.failures[EmbeddingFailure.CIRCUIT_OPEN] == 1
    assert len(provider.calls) == made

    clock.advance(timedelta(seconds=11))
    provider.usually = answers()
    await embedder.embed_passages([_TEXT])
    assert [call.texts for call in provider.calls[made:]] == [["health"], [_TEXT]]


async def test_the_call_that_opens_the_circuit_says_what_happened_and_not_that_it_opened(make, provider):
    embedder = make(attempts=10)
    await embedder.open()
    provider.usually = says(502)
    error = await _failure(embedder, [_TEXT])
    assert (error.failure, error.status) == (EmbeddingFailure.UNREACHABLE, 502)
    assert len(provider.calls) == 6


def _has_calls(provider: EmbeddingProvider, count: int) -> bool:
    return len(provider.calls) == count


def _is_slow_with_many(call):
    """Answers a question, and batches never."""
    return (hangs if len(call.texts) > 1 else answers())(call)


async def test_a_provider_too_slow_for_batches_is_asked_questions_all_the_same(make, provider):
    embedder = make(call_timeout_seconds=2.0, max_concurrent=7)
    await embedder.open()
    provider.usually = _is_slow_with_many
    failures = await asyncio.gather(*(_failure(embedder, _MANY) for _ in range(6)))
    assert {error.failure for error in failures} == {EmbeddingFailure.TIMEOUT}
    assert len(provider.calls) == 1 + len(failures)
    assert not embedder.usage.circuit_open
    provider.usually = answers()
    assert await embedder.embed_query("q")


@pytest.mark.parametrize("status", [408, 504])
async def test_a_gateway_that_gives_up_on_batches_keeps_nobody_from_asking(make, provider, status):
    embedder = make(attempts=6)
    await embedder.open()
    provider.usually = says(status)
    assert (await _failure(embedder, _MANY)).status == status
    assert not embedder.usage.circuit_open


async def test_a_provider_that_answers_no_question_is_left_alone(make, provider):
    embedder = make(query_timeout_seconds=0.05)
    await embedder.open()
    provider.usually = hangs
    for _ in range(5):
        with pytest.raises(EmbeddingError):
            await embedder.embed_query("q")
    assert embedder.usage.circuit_open


async def test_questions_that_spent_their_time_waiting_for_batches_do_not_tell_of_a_failing_provider(
    make, provider, clock
):
    embedder = make(max_concurrent=1, attempts=1, query_timeout_seconds=20.0)
    await embedder.open()
    for _ in range(5):
        provider.script += [says(504), hangs]
        provider.gate.clear()
        made = len(provider.calls)
        batch = asyncio.create_task(_failure(embedder, _MANY))
        await wait_until_async(partial(_has_calls, provider, made + 1))
        question = asyncio.create_task(embedder.embed_query("q"))
        await asyncio.sleep(0)  # it waits for its turn
        clock.advance(timedelta(seconds=18.5))
        provider.gate.set()
        await batch
        with pytest.raises(EmbeddingError) as failed:
            await question
        assert failed.value.failure is EmbeddingFailure.TIMEOUT
        assert len(provider.calls) == made + 2, "it got its turn, and a second and a half"
    assert not embedder.usage.circuit_open


async def test_a_provider_that_is_away_and_names_a_time_is_away_until_then(make, provider, clock):
    embedder = make()
    await embedder.open()
    provider.script.append(says(503, {"Retry-After": "30"}))
    for left in (30, 20):
        with pytest.raises(EmbeddingError) as failed:
            await embedder.embed_query("q")
        error = failed.value
        assert (error.failure, error.status) == (EmbeddingFailure.UNREACHABLE, 503)
        assert error.retry_after_seconds == pytest.approx(left)
        clock.advance(timedelta(seconds=10))
    assert len(provider.calls) == 2
    assert embedder.usage.failures == {EmbeddingFailure.UNREACHABLE: 2}
    clock.advance(timedelta(seconds=10))
    assert await embedder.embed_query("q")


async def test_a_time_that_comes_with_a_refusal_of_one_text_refuses_no_other(make, provider):
    embedder = make()
    await embedder.open()
    provider.script.append(says(413, {"Retry-After": "30"}))
    assert (await _failure(embedder, [_TEXT])).about_input
    error = await _failure(embedder, ["another"])
    assert (error.failure, error.about_input) == (EmbeddingFailure.RATE_LIMITED, False)


async def test_what_finds_a_provider_back_is_one_short_question_and_never_a_batch(make, provider, clock):
    embedder = make(attempts=1)
    await embedder.open()
    provider.usually = says(500)
    for _ in range(5):
        await _failure(embedder, _MANY)
    for pause in (10, 20, 30, 30):
        clock.advance(timedelta(seconds=pause - 1))
        made = len(provider.calls)
        assert (await _failure(embedder, _MANY)).failure is EmbeddingFailure.CIRCUIT_OPEN
        clock.advance(timedelta(seconds=1))
        assert (await _failure(embedder, _MANY)).failure is EmbeddingFailure.UNREACHABLE
        assert [call.texts for call in provider.calls[made:]] == [["health"]]
    clock.advance(timedelta(seconds=30))
    provider.usually = answers()
    assert len(await embedder.embed_passages(_MANY)) == 3


async def test_a_provider_that_would_not_take_the_short_question_is_given_the_passages(make, provider, clock):
    embedder = make(attempts=1)
    await embedder.open()
    provider.usually = says(500)
    for _ in range(5):
        await _failure(embedder, _MANY)
    clock.advance(timedelta(seconds=10))
    provider.usually = answers()
    provider.script.append(says(400))
    assert len(await embedder.embed_passages(_MANY)) == 3
