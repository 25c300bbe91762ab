"""A cluster of one shard is a server like any other; of several, one server alone cannot serve all partitions."""

from collections.abc import Iterator

import pytest

from durable_memory.domain.errors import DomainError, Reason
from tests.conformance.index_samples import grant, publish
from tests.integration.redis.conftest import OpenIndex, made
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import system_redis

_SLOTS = 16_384


def clustered(bus_port: int) -> RedisProcess:
    return RedisProcess(system_redis(), settings={"cluster-enabled": "yes", "cluster-port": str(bus_port)})


def give(server: RedisProcess, slots: range) -> None:
    with server.client() as client:
        client.execute_command("CLUSTER ADDSLOTS", *slots)


def is_whole(server: RedisProcess) -> bool:
    with server.client() as client:
        return bool(client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")


@pytest.fixture
def one_of_two() -> Iterator[RedisProcess]:
    bus_port = free_port()
    with clustered(free_port()) as first, clustered(bus_port) as second:
        give(first, range(_SLOTS // 2))
        give(second, range(_SLOTS // 2, _SLOTS))
        with first.client() as client:
            client.execute_command("CLUSTER MEET", "127.0.0.1", second.port, bus_port)
        wait_until(lambda: is_whole(first) and is_whole(second), what="the cluster is whole")
        yield first


async def test_a_cluster_of_one_shard_is_used(open_index: OpenIndex, partition):
    with clustered(free_port()) as server:
        give(server, range(_SLOTS))
        wait_until(lambda: is_whole(server), what="the cluster is whole")
        opened = await open_index(server.url)
        await opened.index.check()
        await publish(opened.index, partition, await grant(opened.leases, partition))
        await opened.index.close()


async def test_one_of_several_shards_is_refused_when_it_is_opened_and_not_by_half_of_the_namespaces(one_of_two):
    with pytest.raises(DomainError) as refused:
        await made(one_of_two.url).index.open()
    assert refused.value.reason is Reason.NOT_SERVING
    assert refused.value.metadata == {"state": "index", "shards": "2"}
    assert "redis+cluster://" in refused.value.message
