"""What programs and people use of semantic recall, over a server that has vectors."""

import asyncio
import json

import pytest

from durable_memory_client import IndexState, MemoryClient, RefreshProgress, errors
from tests.integration.command_line import Processes
from tests.rpc.semantic_parts import GENERATION, SemanticParts


@pytest.fixture(params=["memory:", "sqlite"])
async def served(request, serve_application):
    return await serve_application(request.param, semantic=SemanticParts())


async def test_a_program_refreshes_looks_and_clears(served):
    async with MemoryClient(served.address, tenant="acme", principal="user-1", scope="notes") as memory:
        session = await memory.open_session("assistant")
        bound = session.info.binding.semantic_generation
        assert bound is not None
        for number in range(130):
            await memory.remember(f"Fact number {number}.")

        steps: list[RefreshProgress] = []
        receipt = await memory.refresh_semantic_recall(session.session_id).wait(steps.append)

        assert (receipt.indexed_count, receipt.work.provider_inputs) == (130, 130)
        assert (steps[-1].phase, {step.total for step in steps} - {0}) == ("PUBLISHED", {130})
        status = await memory.get_index_status()
        assert (status.state, status.unindexed_active_count) == (IndexState.CURRENT, 0)
        assert status.generation.authority_digest == bound.authority_digest == GENERATION.authority_digest
        assert (await memory.clear_partition()).index_revision == 0
        assert [found.index_revision async for found in memory.list_receipts(page_size=1)] == [0, 1]
        assert (await memory.get_index_status()).state == IndexState.NOT_BUILT


async def test_a_program_without_vectors_behind_it_is_told_so(serve_application):
    served = await serve_application()
    async with MemoryClient(served.address, tenant="acme", principal="user-1", scope="notes") as memory:
        await memory.open_session("assistant")

        with pytest.raises(errors.SemanticUnavailableError) as caught:
            await memory.refresh_semantic_recall("assistant").wait()

        assert caught.value.metadata["cause"] == "SEMANTIC_NOT_CONFIGURED"
        assert (caught.value.attempts, bool(caught.value.request_id)) == (1, True)


async def test_a_person_builds_the_index_looks_at_it_and_takes_it_down(serve_application, tmp_path):
    served = await serve_application(semantic=SemanticParts())
    commands = Processes(tmp_path, DURABLE_MEMORY_ADDRESS=served.address)

    async def said(*arguments):
        return (await asyncio.to_thread(commands.ok, "index", *arguments)).out

    await asyncio.to_thread(commands.ok, "remember", "The office opens at 8.")
    assert "not built" in await said("status")
    assert (await said("refresh")).startswith("indexed: 1 of 1 active memory, as of revision 1; index revision 1\n")
    assert json.loads(await said("refresh", "--json"))["work"]["provider_calls"] == 0
    assert json.loads(await said("rebuild", "--json"))["index_revision"] == 2
    assert len((await said("receipts", "--json")).splitlines()) == 3
    assert (await said("schedule", "--every", "1h")).startswith("every 1 h\n")
    assert "every 1 h" in await said("status")
    assert "cleared: 1 active memory" in await said("clear")
