"""The rights that the operations page gives, and nothing else, are enough."""

import secrets
from pathlib import Path

import pytest

from durable_memory.domain.errors import DomainError
from tests.conformance.index_samples import encoded_segment, grant, publish, stage
from tests.integration.redis.conftest import OpenIndex, made
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import system_redis
from tests.processes.redis_cluster import RedisCluster
from tests.processes.sentinel import SentinelProcess, Watch

_PAGE = Path(__file__).parents[3] / "docs" / "operations.md"


def rights_of(user: str) -> list[str]:
    """The words of the line of the page that makes the user, without those that make it."""
    (line,) = (line for line in _PAGE.read_text().splitlines() if line.startswith(f"ACL SETUSER {user} "))
    return line.split()[3:]


def allow(server, user: str) -> None:
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", user, "reset", *rights_of(user))


async def uses_all(opened, partition) -> None:
    lease = await grant(opened.leases, partition)
    manifest = await publish(opened.index, partition, lease)
    entry = await stage(opened.index, partition)
    await opened.index.stage(partition, entry.segment_id, encoded_segment(("n1", "n2")), ttl_seconds=60.0)
    await opened.index.keep_staged(partition, [entry.segment_id], ttl_seconds=60.0)
    assert await opened.index.manifest(partition) == manifest
    assert len(await opened.index.segments(partition, [manifest.segments[0].segment_id])) == 1
    await publish(opened.index, partition, lease, after=manifest)
    await opened.leases.renew(lease)
    await opened.leases.inspect(partition.name)
    await opened.index.clear(partition, lease)
    await opened.leases.release(lease)
    await opened.index.check()
    await opened.index.close()


async def test_a_server_and_a_sentinel_with_the_rights_of_the_page(open_index: OpenIndex, partition):
    with RedisProcess(system_redis()) as server:
        allow(server, "memory")
        watch = Watch(name="memory", primary_port=server.port, quorum=1)
        with SentinelProcess(system_redis(), watch, secrets.token_hex(20)) as sentinel:
            allow(sentinel, "watcher")
            with sentinel.client() as client:
                client.execute_command("ACL", "SETUSER", "default", "nocommands", "+acl", "+ping", "+info")
            url = f"redis+sentinel://memory:password@127.0.0.1:{sentinel.port}/memory/1"
            with pytest.raises(DomainError, match="the sentinels refuse to say where the primary is"):
                await made(url).index.open()
            await uses_all(await open_index(f"{url}?sentinel_username=watcher&sentinel_password=password"), partition)


async def test_a_cluster_with_the_rights_of_the_page(open_index: OpenIndex, partition):
    with RedisCluster(system_redis()) as cluster:
        for node in cluster.nodes:
            allow(node, "memory")
        await uses_all(await open_index(cluster.url.replace("://", "://memory:password@")), partition)
