"""The openai embedder against an endpoint that misbehaves in every way there is."""

import asyncio
import base64
import gzip
import logging
import socket
import struct
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest

from durable_memory.adapters.embedding.inputs import InputForm
from durable_memory.adapters.openai import OpenAIEmbedder, OpenAISettings
from durable_memory.adapters.runtime import SystemClock, SystemIds
from durable_memory.ports.embedder import ConnectionTrouble, EmbeddingError, EmbeddingFailure
from tests.fixture_embedder import DIMENSION, floats, numbers_of
from tests.processes.embedding_provider import (
    EmbeddingProvider,
    answers,
    drops,
    for_texts_with,
    hangs,
    reorders,
    replaces,
    says,
    sends,
)
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until_async

_KEY = "sk-hunter2"
_TEXT = "the vault opens at seven"


@pytest.fixture
async def embedder(make) -> OpenAIEmbedder:
    """Open, and without repetitions."""
    opened: OpenAIEmbedder = make(attempts=1)
    await opened.open()
    return opened


async def _failure(embedder: OpenAIEmbedder, texts=(_TEXT, "another")) -> EmbeddingError:
    with pytest.raises(EmbeddingError) as failed:
        await embedder.embed_passages(list(texts))
    return failed.value


def _unit(text: str, dimension: int = DIMENSION) -> np.ndarray:
    numbers = np.array(numbers_of(text, dimension))
    unit: np.ndarray = (numbers / np.linalg.norm(numbers)).astype(np.float32)
    return unit


async def test_texts_get_their_vectors_in_their_order_however_many_batches_they_make(make, provider):
    embedder = make(batch_max_texts=3, max_concurrent=2)
    await embedder.open()
    texts = [f"text {number}" for number in range(20)]
    vectors = await embedder.embed_passages(texts)
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(floats(vector), _unit(text), atol=1e-6)
    assert [len(call.texts) for call in provider.calls[1:]] == [3, 3, 3, 3, 3, 3, 2]
    assert embedder.usage.calls == len(provider.calls) == 8
    assert embedder.usage.inputs == 21
    assert embedder.usage.input_bytes == sum(len(text) for call in provider.calls for text in call.texts)
    assert embedder.usage.input_tokens == 8, "the provider says 1 for each call"
    assert await embedder.embed_passages([]) == []


async def test_no_more_calls_are_under_way_at_once_than_allowed(make, provider):
    embedder = make(max_concurrent=2)
    await embedder.open()
    provider.gate.clear()
    working = asyncio.gather(*(embedder.embed_query(f"text {number}") for number in range(6)))
    await wait_until_async(lambda: provider.most_at_once == 2)
    provider.gate.set()
    assert len(await working) == 6
    assert provider.most_at_once == 2


async def test_a_question_is_asked_while_passages_take_all_their_time(make, provider):
    embedder = make(batch_max_texts=1, max_concurrent=3)
    await embedder.open()
    provider.usually = for_texts_with("text", hangs, answers())
    working = asyncio.create_task(embedder.embed_passages([f"text {number}" for number in range(6)]))
    await wait_until_async(lambda: len(provider.calls) == 3)
    for number in range(3):
        assert await embedder.embed_query(f"question {number}")
    assert len(provider.calls) == 6, "two calls for passages are under way, and the others wait"
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working


async def test_a_question_goes_before_passages_that_wait(make, provider):
    embedder = make(batch_max_texts=1, max_concurrent=1)
    await embedder.open()
    provider.gate.clear()
    passages = asyncio.create_task(embedder.embed_passages(["first", "second"]))
    await wait_until_async(lambda: len(provider.calls) == 2)
    question = asyncio.create_task(embedder.embed_query("question"))
    await asyncio.sleep(0)
    provider.gate.set()
    await asyncio.gather(passages, question)
    assert [call.texts[0] for call in provider.calls[1:]] == ["first", "question", "second"]


@pytest.mark.parametrize("packed", [True, False])
async def test_the_served_dimension_is_measured(make, provider, packed):
    provider.usually = answers(384, packed=packed)
    embedder = make()
    generation = await embedder.open()
    assert generation.dimension == 384
    np.testing.assert_allclose(floats(await embedder.embed_query("q")), _unit("q", 384), atol=1e-6)


async def test_large_answers_are_read_as_well_as_small_ones(make, provider):
    provider.usually = answers(1536)
    embedder = make()
    await embedder.open()
    texts = [f"text {number}" for number in range(64)]
    vectors = await embedder.embed_passages(texts)
    np.testing.assert_allclose(floats(vectors[63]), _unit("text 63", 1536), atol=1e-6)


async def test_what_is_asked_for_is_what_the_settings_say(make, provider):
    form = InputForm(passage_prefix="passage: ", query_prefix="query: ", passage_max_bytes=6, query_max_bytes=4)
    embedder = make(dimensions=DIMENSION, form=form)
    await embedder.open()
    await embedder.embed_passages(["a long passage"])
    await embedder.embed_query("question")
    probe, passage, query = provider.calls
    assert passage.target == "/v1/embeddings"
    assert passage.headers["authorization"] == f"Bearer {_KEY}"
    assert passage.body == {
        "model": "m",
        "input": ["passage: a long"],
        "dimensions": DIMENSION,
        "encoding_format": "base64",
    }
    assert query.texts == ["query: ques"]
    assert "dimensions" not in (await _only_call(make(), provider)).body
    assert probe.headers["accept-encoding"] == "identity"


async def _only_call(embedder: OpenAIEmbedder, provider: EmbeddingProvider):
    provider.calls.clear()
    await embedder.open()
    (call,) = provider.calls
    return call


async def test_nothing_of_the_clients_own_environment_is_sent_or_obeyed(make, provider, monkeypatch):
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID"):
        monkeypatch.setenv(f"OPENAI_{name}", "sk-of-somebody-else")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    call = await _only_call(make(api_key=None), provider)
    assert "authorization" not in call.headers
    assert "sk-of-somebody-else" not in str(call.headers)


async def test_what_changes_a_vector_changes_the_generation(make, provider):
    async def digest(**settings) -> str:
        generation = await make(**settings).open()
        return str(generation.model_digest)

    usual = await digest()
    assert await digest() == usual
    assert await digest(api_key=None, batch_max_texts=1) == usual
    others = [
        await digest(model="n"),
        await digest(revision="2"),
        await digest(form=InputForm(query_prefix="query: ")),
        await digest(form=InputForm(passage_max_bytes=10)),
    ]
    provider.usually = answers(model="m-002")
    others.append(await digest())
    assert len({usual, *others}) == 6
    assert await digest(revision="2") == others[1]


async def test_an_endpoint_that_ignores_the_dimensions_asked_for_is_refused(make):
    with pytest.raises(EmbeddingError) as refused:
        await make(dimensions=4).open()
    assert refused.value.failure is EmbeddingFailure.WRONG_DIMENSION
    assert not refused.value.retryable


async def test_a_failed_opening_may_be_repeated(make, provider):
    embedder = make(attempts=1)
    provider.script.append(says(500))
    with pytest.raises(EmbeddingError):
        await embedder.open()
    assert (await embedder.open()).dimension == DIMENSION
    assert (await embedder.open()).dimension == DIMENSION
    assert len(provider.calls) == 2


async def test_after_closing_it_may_be_opened_again(make):
    embedder = make()
    await embedder.open()
    await embedder.close()
    await embedder.close()
    with pytest.raises(RuntimeError):
        await embedder.embed_query("q")
    await embedder.open()
    assert await embedder.embed_query("q")


@pytest.mark.parametrize(
    ("behaviour", "failure"),
    [
        (replaces(lambda rows: rows[:-1]), EmbeddingFailure.WRONG_COUNT),
        (replaces(lambda rows: [*rows, rows[0]]), EmbeddingFailure.WRONG_COUNT),
        (answers(DIMENSION + 1), EmbeddingFailure.WRONG_DIMENSION),
        (replaces(lambda rows: [rows[0], rows[1][:-1]]), EmbeddingFailure.WRONG_DIMENSION),
        (answers(model="another"), EmbeddingFailure.WRONG_MODEL),
        (replaces(lambda rows: [rows[0], [float("nan")] * DIMENSION]), EmbeddingFailure.NOT_FINITE),
        (replaces(lambda rows: [rows[0], [None] * DIMENSION]), EmbeddingFailure.NOT_FINITE),
        (
            replaces(lambda rows: [rows[0], base64.b64encode(struct.pack("<f", float("inf")) * DIMENSION).decode()]),
            EmbeddingFailure.NOT_FINITE,
        ),
        (replaces(lambda rows: [rows[0], [0.0] * DIMENSION]), EmbeddingFailure.ZERO_VECTOR),
        (reorders(lambda items: [items[0] | {"index": 1}, items[1]]), EmbeddingFailure.WRONG_ORDER),
        (sends(b"<html>"), EmbeddingFailure.UNREADABLE),
        (sends(b'{"error": "overloaded"}'), EmbeddingFailure.UNREADABLE),
        (sends(b" " * 1_048_576, repeats=512), EmbeddingFailure.UNREADABLE),
        (sends(gzip.compress(b"{}"), headers={"Content-Encoding": "gzip"}), EmbeddingFailure.UNREADABLE),
        (drops, EmbeddingFailure.UNREACHABLE),
        (says(500), EmbeddingFailure.UNREACHABLE),
        (says(408), EmbeddingFailure.UNREACHABLE),
        (says(429), EmbeddingFailure.RATE_LIMITED),
        (says(401), EmbeddingFailure.REFUSED),
        (says(400), EmbeddingFailure.REFUSED),
    ],
)
async def test_an_answer_that_is_not_as_promised_fails_the_whole_call_and_says_why(
    embedder, provider, behaviour, failure
):
    provider.script.append(behaviour)
    error = await _failure(embedder)
    assert error.failure is failure
    assert embedder.usage.failures == {failure: 1}
    assert embedder.usage.calls == len(provider.calls) == 2
    assert len(await embedder.embed_passages([_TEXT, "another"])) == 2


async def test_an_endless_error_is_not_read_to_its_end(embedder, provider):
    provider.script.append(sends(b" " * 1_048_576, repeats=512, status=500))
    assert (await _failure(embedder)).failure is EmbeddingFailure.UNREADABLE


async def test_vectors_in_another_order_are_put_into_the_right_one(embedder, provider):
    provider.script.append(reorders(lambda items: items[::-1]))
    first, second = await embedder.embed_passages(["a", "b"])
    np.testing.assert_allclose(floats(first), _unit("a"), atol=1e-6)
    np.testing.assert_allclose(floats(second), _unit("b"), atol=1e-6)


async def test_one_failed_batch_fails_the_call_and_stops_the_others(make, provider):
    embedder = make(batch_max_texts=1, max_concurrent=3, attempts=1)
    await embedder.open()
    provider.script += [hangs, says(400)]
    error = await _failure(embedder, [f"text {number}" for number in range(50)])
    assert (error.failure, error.status) == (EmbeddingFailure.REFUSED, 400)
    assert len(provider.calls) == 3


async def test_a_provider_that_says_nothing_is_given_up_on(make, provider):
    embedder = make(call_timeout_seconds=2.0)
    await embedder.open()
    provider.script += [hangs, hangs]
    assert (await _failure(embedder)).failure is EmbeddingFailure.TIMEOUT
    assert len(provider.calls) == 2, "what hung once is not waited for again"


async def test_a_question_is_given_up_on_sooner_than_passages(make, provider):
    embedder = make(query_timeout_seconds=0.2)
    await embedder.open()
    provider.script.append(hangs)
    with pytest.raises(EmbeddingError) as failed:
        await embedder.embed_query(_TEXT)
    assert failed.value.failure is EmbeddingFailure.TIMEOUT


async def test_a_question_does_not_wait_for_its_turn_for_ever(make, provider):
    embedder = make(max_concurrent=1, query_timeout_seconds=0.2)
    await embedder.open()
    provider.gate.clear()
    passages = asyncio.create_task(embedder.embed_passages(["passage"]))
    await wait_until_async(lambda: len(provider.calls) == 2)
    with pytest.raises(EmbeddingError) as failed:
        await embedder.embed_query("question")
    assert failed.value.failure is EmbeddingFailure.TIMEOUT
    provider.gate.set()
    await passages
    assert len(provider.calls) == 2


@pytest.mark.parametrize("trouble", [says(429), says(500), says(503), drops])
async def test_what_passes_is_tried_again_and_every_try_is_counted(make, provider, pauses, trouble):
    embedder = make()
    await embedder.open()
    provider.script += [trouble, trouble]
    assert len(await embedder.embed_passages([_TEXT])) == 1
    assert embedder.usage.calls == len(provider.calls) == 4
    assert sum(embedder.usage.failures.values()) == 2
    assert 0.25 <= pauses.seconds[0] <= 0.5
    assert 0.5 <= pauses.seconds[1] <= 1.0


async def test_tries_are_bounded(make, provider):
    embedder = make(attempts=3)
    await embedder.open()
    provider.usually = says(503)
    error = await _failure(embedder)
    assert (error.failure, error.status) == (EmbeddingFailure.UNREACHABLE, 503)
    assert error.for_log == {
        "failure": "UNREACHABLE",
        "status": "503",
        "endpoint": provider.base_url.removeprefix("http://").removesuffix("/v1"),
    }
    assert len(provider.calls) == 4


async def test_a_provider_that_is_not_there_is_unreachable(make):
    embedder = make(base_url=f"http://127.0.0.1:{free_port()}/v1", attempts=2)
    with pytest.raises(EmbeddingError) as failed:
        await embedder.open()
    assert failed.value.failure is EmbeddingFailure.UNREACHABLE
    assert failed.value.trouble is ConnectionTrouble.CONNECTION_REFUSED
    assert embedder.usage.calls == 2


async def test_a_name_that_nobody_has_is_told_apart(make, monkeypatch):
    async def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(EmbeddingError) as failed:
        await make(base_url="http://user-1.invalid/v1", attempts=1).open()
    assert failed.value.for_log == {
        "failure": "UNREACHABLE",
        "trouble": "NAME_NOT_RESOLVED",
        "endpoint": "user-1.invalid:80",
    }


async def test_an_endpoint_that_speaks_no_tls_is_told_apart(make):
    def in_plain_text(_, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(in_plain_text, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(EmbeddingError) as failed:
            await make(base_url=f"https://127.0.0.1:{port}/v1", attempts=1).open()
    assert failed.value.facts == {"failure": "UNREACHABLE", "trouble": "TLS_FAILED"}


async def test_a_connection_that_ends_without_an_answer_is_told_apart(embedder, provider):
    provider.usually = drops
    assert (await _failure(embedder)).facts == {"failure": "UNREACHABLE", "trouble": "CONNECTION_LOST"}


async def test_vectors_of_another_dimension_say_what_was_expected_and_what_came(embedder, provider):
    provider.usually = answers(DIMENSION + 3)
    error = await _failure(embedder)
    assert error.words == f"WRONG_DIMENSION (expected dimension {DIMENSION}, received dimension {DIMENSION + 3})"
    assert "endpoint" not in error.facts, "that is for the log alone"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.5", "Retry-After-Ms": "7000"}, 7.0),
        ({"Retry-After": format_datetime(datetime(2026, 1, 1, 0, 0, 7, tzinfo=UTC), usegmt=True)}, 7.0),
        ({"Retry-After": "soon"}, 0.0),
        ({"Retry-After": "nan"}, 0.0),
        ({"Retry-After": "-5"}, 0.0),
        ({"Retry-After": "Thu, 99 Foo 2026"}, 0.0),
    ],
)
async def test_a_provider_that_names_a_time_is_given_it(make, provider, pauses, headers, seconds):
    embedder = make()
    await embedder.open()
    provider.script.append(says(429, headers))
    await embedder.embed_passages([_TEXT])
    assert seconds - 0.001 <= sum(pauses.seconds) <= max(seconds, 0.5) + 0.001


@pytest.mark.parametrize(("asked", "given"), [("60", 60), ("1e12", 3_600)])
async def test_a_long_time_is_not_waited_out_but_kept_by_everybody_for_an_hour_at_most(
    make, provider, pauses, clock, asked, given
):
    embedder = make(longest_pause_seconds=20)
    await embedder.open()
    provider.script.append(says(429, {"Retry-After": asked}))
    error = await _failure(embedder)
    assert (error.failure, error.retry_after_seconds) == (EmbeddingFailure.RATE_LIMITED, given)
    with pytest.raises(EmbeddingError) as refused:
        await embedder.embed_query("q")
    assert refused.value.failure is EmbeddingFailure.RATE_LIMITED
    assert len(provider.calls) == 2
    assert not pauses.seconds
    clock.advance(timedelta(seconds=given))
    await embedder.embed_query("q")


async def test_a_question_does_not_outwait_its_deadline(make, provider, pauses):
    embedder = make(query_timeout_seconds=5)
    await embedder.open()
    provider.usually = says(429, {"Retry-After": "6"})
    with pytest.raises(EmbeddingError) as failed:
        await embedder.embed_query("q")
    assert failed.value.failure is EmbeddingFailure.RATE_LIMITED
    assert len(provider.calls) == 2
    assert not pauses.seconds, "nor does it wait for what cannot come in its time"
    assert embedder.usage.failures == {EmbeddingFailure.RATE_LIMITED: 1}


async def test_a_redirect_is_not_followed(embedder, provider):
    async with EmbeddingProvider() as elsewhere:
        provider.script.append(says(307, {"Location": f"{elsewhere.base_url}/embeddings"}))
        error = await _failure(embedder)
        assert (error.failure, error.status) == (EmbeddingFailure.REFUSED, 307)
        assert not elsewhere.calls


async def test_a_text_that_no_model_should_see_never_leaves(embedder, provider):
    error = await _failure(embedder, [_TEXT, "nul\0"])
    assert error.failure is EmbeddingFailure.REFUSED
    assert len(provider.calls) == 1


async def test_a_cancelled_call_ends_at_once_and_leaves_its_turn(make, provider):
    embedder = make(max_concurrent=1)
    await embedder.open()
    provider.script.append(hangs)
    working = asyncio.create_task(embedder.embed_passages([_TEXT]))
    await wait_until_async(lambda: len(provider.calls) == 2)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert await embedder.embed_query("q")


@pytest.mark.parametrize("trouble", [says(400), says(500), says(429), sends(b"{"), drops, hangs])
async def test_neither_key_nor_text_gets_into_an_error_or_a_log_or_a_description(
    make, provider, caplog, monkeypatch, trouble
):
    monkeypatch.setenv("OPENAI_LOG", "debug")
    caplog.set_level(logging.DEBUG)
    embedder = make(attempts=1, call_timeout_seconds=2.0)
    await embedder.open()
    provider.script.append(trouble)
    error = await _failure(embedder)
    shown = [
        repr(embedder),
        repr(OpenAISettings(base_url="http://x/v1", model="m", api_key=_KEY)),
        repr(error),
        "".join(traceback.format_exception(error)),
        *(record.getMessage() for record in caplog.records),
    ]
    context: BaseException | None = error
    while context is not None:
        assert isinstance(context, EmbeddingError), "exceptions of the client hold the request"
        context = context.__cause__ or context.__context__
    assert not {record.name.partition(".")[0] for record in caplog.records} & {"openai", "httpx2", "httpcore2"}
    for text in shown:
        assert _KEY not in text
        assert _TEXT not in text


async def test_it_works_on_the_machines_own_clock(provider):
    settings = OpenAISettings(base_url=provider.base_url, model="m", first_pause_seconds=0.01)
    embedder = OpenAIEmbedder(settings, clock=SystemClock(), ids=SystemIds())
    provider.script.append(says(429, {"Retry-After": "0.02"}))
    await embedder.open()
    assert len(await embedder.embed_passages([_TEXT])) == 1
    await embedder.close()
