"""Health of SemanticService: NOT_SERVING while recall goes on by words alone, and SERVING again by itself.

A server before a real index server and a provider on loopback, asked and watched through real channels.
"""

import asyncio
from functools import partial

import pytest
from grpc_health.v1 import health_pb2

from durable_memory.adapters.embedding.breaker import CircuitBreaker
from durable_memory.domain.errors import Reason
from durablememory.v1 import recall_pb2, semantic_pb2
from durablememory.v1 import recall_service_pb2 as recall_pb
from durablememory.v1 import semantic_service_pb2 as pb
from durablememory.v1 import session_service_pb2 as session_pb
from tests.processes.embedding_provider import EmbeddingProvider, answers, drops, says
from tests.processes.polling import wait_until_async
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import system_redis
from tests.rpc.messages import call, namespace, remember
from tests.rpc.refusals import refused

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SEMANTIC = "durablememory.v1.SemanticService"
RECALL = "durablememory.v1.RecallService"
_SECONDS = 60.0


@pytest.fixture
async def provider():
    async with EmbeddingProvider() as provider:
        yield provider


@pytest.fixture
def index_server():
    """Durable, so that a restart finds what was published; ended with the test, whatever it did to it."""
    with RedisProcess(system_redis(), durable=True) as server:
        yield server


@pytest.fixture
def serve(serve_application, provider, index_server, monkeypatch):
    """Start a server in front of both, which looks at its health often and leaves a failing provider alone briefly.

    `probe_timeout`: seconds after which an index server is taken to stand still.
    """
    impatient = partial(CircuitBreaker, open_seconds=0.1, max_open_seconds=0.1)
    monkeypatch.setattr("durable_memory.adapters.openai.embedder.CircuitBreaker", impatient)

    async def serve(probe_timeout=_SECONDS):
        return await serve_application(
            embedding={
                "provider": "openai",
                "base_url": provider.base_url,
                "model": "fixture",
                "attempts": 1,
                "query_timeout_seconds": _SECONDS,
            },
            vectors={
                "redis_url": index_server.url,
                "poll_interval_seconds": 3_600,
                "search_budget_seconds": _SECONDS,
            },
            health={"probe_interval_seconds": 0.05, "probe_timeout_seconds": probe_timeout},
        )

    return serve


@pytest.fixture
async def stubs(serve):
    """Of a server with an open session and an indexed memory."""
    return await with_an_index(await serve())


async def with_an_index(served):
    stubs = await served.stubs()
    await stubs.sessions.OpenSession(session_pb.OpenSessionRequest(**call(session_id="assistant")))
    await remember(stubs, "The user drinks tea.", node_id="tea")
    await refresh(stubs)
    return stubs


async def refresh(stubs):
    cas = semantic_pb2.INDEX_CONSISTENCY_INDEX_REVISION_CAS
    request = pb.RefreshSemanticRecallRequest(**call(session_id="assistant", requirement=cas))
    async for _ in stubs.semantic.RefreshSemanticRecall(request, timeout=_SECONDS):
        pass


async def recall(stubs):
    request = recall_pb.ActiveRecallRequest(namespace=namespace(), session_id="assistant", query="tea")
    return (await stubs.recall.ActiveRecall(request)).result


async def health(stubs, service=""):
    return (await stubs.health.Check(health_pb2.HealthCheckRequest(service=service))).status


async def becomes(stubs, status):
    """SemanticService says `status`, while the rest of the server is well throughout."""

    async def is_so():
        assert [await health(stubs, service) for service in ("", RECALL)] == [SERVING, SERVING]
        return await health(stubs, SEMANTIC) == status

    await wait_until_async(is_so, _SECONDS, what=f"SemanticService says {status}")


async def test_watchers_are_told_when_the_index_server_dies_and_when_it_is_back(stubs, index_server):
    watch = stubs.health.Watch(health_pb2.HealthCheckRequest(service=SEMANTIC))
    assert (await watch.read()).status == SERVING

    index_server.kill9()
    assert (await asyncio.wait_for(watch.read(), _SECONDS)).status == NOT_SERVING
    answer = await recall(stubs)
    assert answer.degradation.reason == recall_pb2.DEGRADATION_REASON_INDEX_UNAVAILABLE
    assert [hit.citation.node_id for hit in answer.hits] == ["tea"]
    await becomes(stubs, NOT_SERVING)

    index_server.restart()
    assert (await asyncio.wait_for(watch.read(), _SECONDS)).status == SERVING
    assert not (await recall(stubs)).HasField("degradation")
    watch.cancel()


async def test_the_line_of_a_server_that_is_ready_says_what_it_found_of_the_index(serve, index_server):
    index_server.kill9()
    served = await serve()
    said = "recall by words until the vector index answers, then words and meaning (fixture)"
    assert said in served.application.description
    assert await health(await served.stubs(), SEMANTIC) == NOT_SERVING

    index_server.restart()
    await becomes(await served.stubs(), SERVING)
    assert "recall by words and meaning (fixture)" in served.application.description


async def test_an_index_that_came_back_empty_is_said_until_it_is_rebuilt(stubs, index_server):
    index_server.restart_empty()

    async def regressed():
        answer = await recall(stubs)
        return answer.degradation.reason == recall_pb2.DEGRADATION_REASON_INDEX_REGRESSED

    await wait_until_async(regressed, _SECONDS, what="a recall meets the empty index")
    await becomes(stubs, NOT_SERVING)
    await refresh(stubs)
    await becomes(stubs, SERVING)
    assert not (await recall(stubs)).HasField("degradation")


async def test_an_index_server_that_would_evict_what_was_published_is_not_served_from_quietly(stubs, index_server):
    with index_server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        await becomes(stubs, NOT_SERVING)
        client.config_set("maxmemory-policy", "noeviction")
    await becomes(stubs, SERVING)


async def test_an_index_server_that_stands_still_is_said_and_holds_nothing_up(serve, index_server):
    stubs = await with_an_index(await serve(probe_timeout=0.5))
    index_server.stop_answering()
    try:
        await becomes(stubs, NOT_SERVING)
    finally:
        index_server.answer_again()
    await becomes(stubs, SERVING)


@pytest.mark.parametrize("behaviour", [drops, says(500), says(401)], ids=["drops", "500", "401"])
async def test_a_provider_that_fails_is_said_until_it_answers_again(stubs, provider, behaviour):
    provider.usually = behaviour
    answer = await recall(stubs)
    assert answer.degradation.reason == recall_pb2.DEGRADATION_REASON_PROVIDER_FAILED
    await becomes(stubs, NOT_SERVING)

    provider.usually = answers()
    await becomes(stubs, SERVING)
    assert not (await recall(stubs)).HasField("degradation")


async def test_a_provider_that_is_away_at_the_start_is_said_from_the_first_moment(serve, provider):
    provider.usually = drops
    stubs = await (await serve()).stubs()
    assert await health(stubs, SEMANTIC) == NOT_SERVING
    assert await health(stubs) == SERVING
    async with refused(Reason.SEMANTIC_UNAVAILABLE):
        await stubs.semantic.GetIndexStatus(pb.GetIndexStatusRequest(namespace=namespace()))

    provider.usually = answers()
    await becomes(stubs, SERVING)


async def test_a_server_that_makes_no_vectors_by_choice_is_well(serve_application):
    stubs = await (await serve_application(embedding={"provider": "none"})).stubs()
    assert await health(stubs, SEMANTIC) == SERVING
