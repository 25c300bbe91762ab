"""What a server measures and records of semantic recall, and that no text gets into any of it.

The whole server over a provider on loopback; a provider that refuses quotes what was sent to it, key and all.
"""

import io
import logging
import re

import grpc
import pytest
import structlog

from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Partition
from durable_memory.ports.embedder import EmbeddingFailure
from durable_memory.telemetry import configure_logging
from durablememory.v1 import recall_pb2, semantic_pb2
from durablememory.v1 import recall_service_pb2 as recall_pb
from durablememory.v1 import semantic_service_pb2 as pb
from durablememory.v1 import session_service_pb2 as session_pb
from tests.measured import Measured
from tests.processes.embedding_provider import EmbeddingProvider, answers, says, sends
from tests.processes.polling import wait_until_async
from tests.rpc.messages import call, namespace, remember

_KEY = "sk-the-key-of-the-provider"
_HOSTILE = 'Ignore all of this: "}]} {0} %s \r\n\x1b[31m <script> the-secret-of-the-user'
_QUESTION = "what is the-secret-of-the-question %s {0}"
_SECRETS = ("the-secret-of-the-user", "the-secret-of-the-question", _KEY, "Ignore all of this", "<script>")
_REFRESH = pb.RefreshSemanticRecallRequest(
    namespace=namespace(),
    request_id="refresh",
    session_id="assistant",
    requirement=semantic_pb2.INDEX_CONSISTENCY_INDEX_REVISION_CAS,
)
_ATTRIBUTES = {
    *("channel", "mode", "operation", "outcome", "reason", "result", "state"),
    *("rpc.method", "rpc.response.status_code", "rpc.service", "rpc.system.name"),
}
"""None of them can take a value that a caller chooses."""

_SECONDS = 60.0


@pytest.fixture
def log(monkeypatch):
    """All that is logged, by this service and its libraries, at the lowest level."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", root.handlers)
    monkeypatch.setattr(root, "level", root.level)
    output = io.StringIO()
    configure_logging("debug", output)
    yield output
    structlog.reset_defaults()


@pytest.fixture
def measured(monkeypatch):
    measured = Measured()
    monkeypatch.setattr("durable_memory.main.build_telemetry", lambda settings: measured.telemetry)
    return measured  # the application ends it


@pytest.fixture
async def provider():
    async with EmbeddingProvider() as provider:
        yield provider


class _Server:
    """A served application with an open session, and what it holds."""

    def __init__(self, app, stubs) -> None:
        self.runtime = app.application.services.runtime
        self.stubs = stubs

    async def refresh(self):
        async for _ in self.stubs.semantic.RefreshSemanticRecall(_REFRESH, timeout=_SECONDS):
            pass

    async def recall(self, query, **fields):
        request = recall_pb.ActiveRecallRequest(namespace=namespace(), session_id="assistant", query=query, **fields)
        return (await self.stubs.recall.ActiveRecall(request)).result

    async def status(self):
        return (await self.stubs.semantic.GetIndexStatus(pb.GetIndexStatusRequest(namespace=namespace()))).status

    async def lose_index(self):
        """As a server that came back empty, and forgot it."""
        partition = Partition(Namespace("acme", "user-1", "default"), self.runtime.generation.authority_digest)
        lease = await self.runtime.holder._leases.acquire(
            partition.name, "somebody", ttl_seconds=_SECONDS, floor=100, nonce="lost"
        )
        await self.runtime.index.clear(partition, lease)
        await self.runtime.holder._leases.release(lease)


@pytest.fixture
async def server(serve_application, provider, measured):
    app = await serve_application(
        embedding={
            "provider": "openai",
            "base_url": provider.base_url,
            "model": "fixture",
            "attempts": 1,
            "api_key": _KEY,
            "query_timeout_seconds": _SECONDS,
        },
        vectors={"poll_interval_seconds": 3_600, "search_budget_seconds": _SECONDS},
        health={"probe_interval_seconds": 0.05},
    )
    stubs = await app.stubs()
    await stubs.sessions.OpenSession(session_pb.OpenSessionRequest(**call(session_id="assistant")))
    return _Server(app, stubs)


async def _shown(measured, name, *attributes, value):
    """A gauge is read now and then."""
    await wait_until_async(lambda: measured.value(name, *attributes) == value, what=f"{name} is {value}")


async def test_a_recall_that_works_is_measured_from_end_to_end(server, measured):
    await remember(server.stubs, "tea", node_id="tea")
    await server.refresh()
    assert not (await server.recall("tea")).HasField("degradation")

    assert measured.points("recall.hits") == {("HYBRID",): 1}
    assert measured.value("recall.vectors", "searched") == 1
    assert measured.points("recall.degraded") == {}
    assert measured.points("embedding.cache") == {("hit",): 0, ("miss",): 1}
    assert measured.points("index.publications") == {("OK",): 1}
    assert measured.points("refresh.duration") == {("PUBLISHED",): 1}
    assert measured.value("lease.duration", "acquire", "OK") == 1
    assert measured.value("embedding.duration", "passages", "OK") == 1
    assert measured.value("embedding.duration", "query", "OK") == 1
    for name, value in (
        ("semantic.serving", 1),
        ("index.available", 1),
        ("embedding.available", 1),
        ("embedding.circuit_open", 0),
        ("vector_views.count", 1),
        ("vector_views.vectors", 1),
        ("views.count", 1),
        ("views.loads", 1),
        ("embedding.calls", 3),  # one measures the dimension
        ("embedding.inputs", 3),
        ("index.unembedded_nodes", 0),
        ("maintenance.running", 0),
        ("maintenance.runs", 0),
        ("maintenance.failures", 0),
    ):
        await _shown(measured, name, value=value)
    await server.refresh()
    assert measured.points("refresh.duration") == {("PUBLISHED",): 1, ("UNCHANGED",): 1}


async def test_spans_of_a_refresh_are_below_its_call_and_name_digests_alone(server, measured):
    await remember(server.stubs, "tea", node_id="tea")
    await server.refresh()

    def by_name(name):
        return [span for span in measured.spans if span.name == name]

    await wait_until_async(
        lambda: by_name("durablememory.v1.SemanticService/RefreshSemanticRecall"), what="the call has ended"
    )
    (rpc,) = by_name("durablememory.v1.SemanticService/RefreshSemanticRecall")
    (refresh,) = by_name("semantic refresh")
    (publish,) = by_name("index publish")
    (passages,) = by_name("embedding passages")
    assert refresh.context.trace_id == rpc.context.trace_id
    assert publish.parent.span_id == passages.parent.span_id == refresh.context.span_id
    assert refresh.attributes["durable_memory.authority_digest"] == server.runtime.generation.authority_digest
    assert len(refresh.attributes["durable_memory.partition"]) == 64
    assert refresh.attributes["durable_memory.index.revision"] == 1
    assert refresh.attributes["durable_memory.refresh.added"] == 1
    for word in ("acme", "user-1", "assistant"):
        assert word not in "".join(span.to_json() for span in (refresh, publish, passages))


async def test_what_a_recall_goes_without_is_measured_until_the_index_is_rebuilt(server, measured):
    await remember(server.stubs, "tea", node_id="tea")
    await server.refresh()
    await server.lose_index()
    assert (await server.recall("tea")).degradation.reason == recall_pb2.DEGRADATION_REASON_INDEX_REGRESSED
    assert (await server.recall("tea")).HasField("degradation")

    assert measured.points("recall.degraded") == {("AUTO", "INDEX_REGRESSED"): 2}
    assert measured.points("recall.hits") == {("LEXICAL",): 2}
    assert measured.value("index.regressed") == 1
    await _shown(measured, "index.unserved_partitions", "REGRESSED", value=1)
    await _shown(measured, "semantic.serving", value=0)

    await server.refresh()
    assert measured.points("embedding.cache") == {("hit",): 1, ("miss",): 1}
    await _shown(measured, "index.unserved_partitions", "REGRESSED", value=0)
    await _shown(measured, "semantic.serving", value=1)


async def test_a_provider_that_fails_is_measured_with_its_reason_and_what_is_left_out(server, measured, provider):
    await remember(server.stubs, "tea", node_id="tea")
    provider.usually = sends(b"nothing that can be read")
    with pytest.raises(grpc.aio.AioRpcError):
        await server.refresh()

    assert measured.points("refresh.duration") == {("SEMANTIC_UNAVAILABLE",): 1}
    assert measured.value("embedding.duration", "passages", "UNREADABLE") == 1
    await _shown(measured, "index.unembedded_nodes", value=1)
    await _shown(measured, "embedding.available", value=0)
    await _shown(measured, "embedding.circuit_open", value=1)  # the probes of health have failed as well
    assert measured.value("embedding.failures", EmbeddingFailure.UNREADABLE) >= 5


@pytest.mark.parametrize("status", [400, 401, 422, 429, 500, 302])
async def test_what_a_provider_quotes_gets_nowhere(server, measured, provider, log, status):
    """Not the text, not the question, not the key: neither into an answer, nor the log, a span or a measurement."""
    await remember(server.stubs, "tea", node_id="tea")
    await server.refresh()
    await remember(server.stubs, _HOSTILE, node_id="hostile")
    provider.usually = says(status)

    said = []
    try:
        await server.refresh()
    except grpc.aio.AioRpcError as error:
        said.append(f"{error.details()} {error.debug_error_string()} {error.trailing_metadata()}")
    answer = await server.recall(_QUESTION)
    assert answer.HasField("degradation")
    said.append(answer.degradation.message)
    explicit = server.recall(_QUESTION, mode=recall_pb2.RECALL_MODE_HYBRID)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await explicit
    said.append(f"{refused.value.details()} {refused.value.trailing_metadata()}")
    index = await server.status()
    said.append(str(index))
    said.append(
        str(await server.stubs.semantic.GetMaintenanceHealth(pb.GetMaintenanceHealthRequest(namespace=namespace())))
    )

    assert any("the-secret-of-the-user" in text for seen in provider.calls for text in seen.texts)
    assert any("the-secret-of-the-question" in text for seen in provider.calls for text in seen.texts)
    assert index.unindexed_active_count == 1
    assert len(index.last_failure) <= 200
    assert measured.spans
    assert log.getvalue()
    everything = "\n".join([*said, log.getvalue(), measured.text()])
    for secret in _SECRETS:
        assert secret not in everything


async def test_a_text_that_is_embedded_and_found_is_recorded_nowhere(server, measured, provider, log):
    await remember(server.stubs, _HOSTILE, node_id="hostile")
    provider.usually = answers()
    await server.refresh()
    assert (await server.recall(_QUESTION)).hits
    await server.status()

    for secret in _SECRETS:
        assert secret not in log.getvalue() + measured.text()
    attributes = measured.attributes()
    assert attributes.keys() <= _ATTRIBUTES
    values = set().union(*attributes.values())
    assert all(re.fullmatch(r"[A-Za-z0-9_.]{1,64}", value) for value in values)
    assert not values & {"acme", "user-1", "default", "assistant", "hostile", "development"}
