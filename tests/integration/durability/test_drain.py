"""SIGTERM under load: the server finishes what it took, and whoever watches goes on where it was."""

import asyncio
import logging
import random
from collections import Counter
from contextlib import AsyncExitStack

import grpc
import pytest

from durable_memory_client import Create, Draft, Evidence, MemoryClient, MemoryServiceError, MemoryUnavailableError
from durablememory.v1 import repository_service_pb2, repository_service_pb2_grpc
from tests.conftest import StartServer
from tests.integration.durability.load import sent
from tests.processes.polling import wait_until_async
from tests.processes.server import ServerProcess
from tests.qualification.recorder.recorder import unknown_and_applied
from tests.qualification.traffic.tenancy import Tenancy, connect

_DRAINS = 3
_DRAINS_AT_MOST = 12
_SNAPSHOTS_AT_MOST = 5
_BACK_OFF_SECONDS = 0.1
# Far more text than the wire holds.
_NODE_IDS = [f"node-{number:03}" for number in range(400)]
_CONTENT_BYTES = 60_000

# Servers are started many times, which takes long where others want the machine as well.
pytestmark = pytest.mark.timeout(600)

_log = logging.getLogger(__name__)


async def test_a_drain_breaks_no_promise_and_leaves_no_call_without_an_answer(store: str, start_server: StartServer):
    server = start_server(store)
    rng = random.Random(11)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connect(server))
        tenancy = Tenancy([client], seed="11")
        stack.push_async_callback(tenancy.close)
        tenancy.start()
        for _ in range(_DRAINS):
            await sent(tenancy, rng.randint(20, 60))
            assert await asyncio.to_thread(server.terminate) == 0
            await asyncio.to_thread(server.start)
            await tenancy.check()
        await tenancy.stop()
        await tenancy.settle()
        await tenancy.check_everything()
    # Callers that gave up by themselves are not the server's doing.
    calls = tenancy.recorder.calls
    in_doubt, applied = unknown_and_applied(calls, tenancy.committed, but_for={"DEADLINE_EXCEEDED"})
    _log.info("%d calls, %d in doubt, %d of these applied", len(calls), in_doubt, len(applied))
    assert not applied, "what the server finished, it also answered"


async def test_callers_of_a_busy_server_are_told_that_it_stops(store: str, start_server: StartServer):
    """The library drops what it has read and not handed over when it is told to stop: it must be quiet by then.

    Without the client, which takes a dropped call for an outage and repeats it.
    """
    server = start_server(store)
    told: Counter[grpc.StatusCode] = Counter()
    stopping = asyncio.Event()

    async def keep_asking(channel: grpc.aio.Channel) -> None:
        stub = repository_service_pb2_grpc.RepositoryServiceStub(channel)
        request = repository_service_pb2.GetChangeTokenRequest(
            namespace={"tenant_id": "acme", "principal_id": "user-1", "scope_id": "default"}
        )
        while not stopping.is_set():
            try:
                await stub.GetChangeToken(request, timeout=60.0)
                told[grpc.StatusCode.OK] += 1
            except grpc.aio.AioRpcError as error:
                told[error.code()] += 1
                await asyncio.sleep(_BACK_OFF_SECONDS)

    async with AsyncExitStack() as stack:
        options = (("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1))
        channels = [
            await stack.enter_async_context(grpc.aio.insecure_channel(server.address, options=options))
            for _ in range(4)
        ]
        callers = [asyncio.create_task(keep_asking(channel)) for channel in channels * 8]
        quiet = 0
        try:
            for _ in range(_DRAINS_AT_MOST):
                enough = told[grpc.StatusCode.OK] + 200

                def is_loaded(enough: int = enough) -> bool:
                    return told[grpc.StatusCode.OK] > enough

                await wait_until_async(is_loaded, what="callers are answered")
                dropped = told[grpc.StatusCode.CANCELLED]
                assert await asyncio.to_thread(server.terminate) == 0
                await asyncio.to_thread(server.start)
                # One may still come in at the very moment; unless the server waits, it is many of each drain.
                quiet += told[grpc.StatusCode.CANCELLED] - dropped <= 1
                if quiet == _DRAINS:
                    break
        finally:
            stopping.set()
            await asyncio.gather(*callers)
    _log.info("callers were told %s", told)
    # Callers that the machine holds up are quiet as well, and all come back at the very moment now and then.
    assert quiet == _DRAINS
    assert set(told) <= {
        grpc.StatusCode.OK,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
    }


async def test_a_snapshot_that_is_being_read_is_read_to_its_end_first(store: str, start_server: StartServer):
    server = start_server(store, env={"DURABLE_MEMORY_SERVER_DRAIN_GRACE_SECONDS": "90"})
    async with connect(server) as client:
        await _fill(client)
        for _ in range(_SNAPSHOTS_AT_MOST):
            if await _is_read_to_its_end(client, server):
                break
            await asyncio.to_thread(server.start)
        else:
            pytest.fail("no snapshot was read to its end")


async def _is_read_to_its_end(client: MemoryClient, server: ServerProcess) -> bool:
    """Read all while the server drains. False if the end of it was lost.

    The library closes a connection when it has handed over the last of a stream. A reader whom the machine holds up
    loses what it had not taken by then; unless the server waits, what is lost is most of it, and every time.
    """
    drains = _drains(server)
    nodes = aiter(client.snapshot())
    read = [(await anext(nodes)).id]
    end = asyncio.create_task(asyncio.to_thread(server.terminate, 100.0))
    await wait_until_async(lambda: _drains(server) > drains, what="the drain has begun")
    whole = True
    try:
        async for node in nodes:
            read.append(node.id)  # noqa: PERF401 - what was read before it ended counts
    except MemoryUnavailableError:
        whole = False
    assert read == (_NODE_IDS if whole else _NODE_IDS[: len(read)])
    assert await end == 0
    return whole


async def test_a_reader_that_stands_still_does_not_hold_up_the_end_and_is_told(store: str, start_server: StartServer):
    server = start_server(store, env={"DURABLE_MEMORY_SERVER_DRAIN_GRACE_SECONDS": "0.5"})
    async with connect(server) as client:
        await _fill(client)
        nodes = aiter(client.snapshot())
        await anext(nodes)
        assert await asyncio.to_thread(server.terminate) == 0
        with pytest.raises(MemoryServiceError):
            [node async for node in nodes]


async def _fill(client: MemoryClient) -> None:
    for start in range(0, len(_NODE_IDS), 100):
        await client.apply_change_set(map(_large, _NODE_IDS[start : start + 100]), timeout=60.0)


def _large(node_id: str) -> Create:
    said = Evidence.tool_result(f"tool:{node_id}", node_id)
    return Create(node_id=node_id, memory=Draft(content=f"{node_id} " + "x" * _CONTENT_BYTES, evidence=[said]))


def _drains(server: ServerProcess) -> int:
    return server.log_text().count('"draining"')
