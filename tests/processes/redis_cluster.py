"""A Redis Cluster of several shards as children of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import redis
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from tests.processes.free_port import free_port
from tests.processes.polling import wait_until
from tests.processes.redis import RedisProcess

_HOST = "127.0.0.1"
_NODE_TIMEOUT_MILLIS = 15_000
_NODE_TIMEOUT_WITH_REPLICAS_MILLIS = 2_000
"""After so long a shard's replica is promoted; with less, a busy server is taken for a dead one."""

_WHOLE_SECONDS = 30.0


class RedisCluster:
    """Shards with equal parts of the slots, each with so many replicas; open it as a context manager.

    A shard that is down is nothing to the slots of the others. After the promotion of a replica `primaries` still has
    the servers that were primaries at the start.
    """

    def __init__(self, binary: Path, *, shards: int = 3, replicas: int = 0) -> None:
        self._buses = [free_port() for _ in range(shards * (1 + replicas))]
        self._node_timeout = _NODE_TIMEOUT_WITH_REPLICAS_MILLIS if replicas else _NODE_TIMEOUT_MILLIS
        nodes = [self._node(binary, bus) for bus in self._buses]
        self.primaries: Sequence[RedisProcess] = nodes[:shards]
        self.replicas: Sequence[RedisProcess] = nodes[shards:]
        """That of the first shard first; then that of the second..."""
        self._stack = ExitStack()

    def _node(self, binary: Path, bus: int) -> RedisProcess:
        settings = {
            "cluster-enabled": "yes",
            "cluster-port": str(bus),
            "cluster-node-timeout": str(self._node_timeout),
            "cluster-require-full-coverage": "no",
        }
        return RedisProcess(binary, settings=settings)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for node in self.nodes:
                stack.enter_context(node)
            self._form()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def nodes(self) -> Sequence[RedisProcess]:
        return [*self.primaries, *self.replicas]

    @property
    def url(self) -> str:
        """It names all primaries of the start."""
        return f"redis+cluster://{','.join(f'{_HOST}:{node.port}' for node in self.primaries)}"

    def shard_of(self, key: str) -> int:
        """The position in `primaries` of the one that had the key's slot at the start."""
        return key_slot(key.encode()) * len(self.primaries) // REDIS_CLUSTER_HASH_SLOTS

    def flush(self) -> None:
        """Let all shards forget everything."""
        for node in self.primaries:
            with node.client() as client:
                client.flushall()

    def begin_move(self, slot: int, source: RedisProcess, target: RedisProcess) -> None:
        """From now on the target takes what the source does not have."""
        with source.client() as client:
            client.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", _id(target))
        with target.client() as client:
            client.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", _id(source))

    def move_keys(self, slot: int, source: RedisProcess, target: RedisProcess, *, most: int = 1_000) -> None:
        """Move so many keys of the slot."""
        with source.client() as client:
            keys = client.execute_command("CLUSTER GETKEYSINSLOT", slot, most)
            if keys:
                client.execute_command("MIGRATE", _HOST, target.port, "", 0, 5_000, "KEYS", *keys)

    def end_move(self, slot: int, source: RedisProcess, target: RedisProcess) -> None:
        """The slot is the target's now."""
        for node in (target, source):
            with node.client() as client:
                client.execute_command("CLUSTER SETSLOT", slot, "NODE", _id(target))

    def _form(self) -> None:
        count = len(self.primaries)
        for number, node in enumerate(self.primaries):
            with node.client() as client:
                first, end = (-(-REDIS_CLUSTER_HASH_SLOTS * position // count) for position in (number, number + 1))
                client.execute_command("CLUSTER ADDSLOTS", *range(first, end))
                client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
        with self.primaries[0].client() as client:
            for node, bus in zip(self.nodes[1:], self._buses[1:], strict=True):
                client.execute_command("CLUSTER MEET", _HOST, node.port, bus)
        wait_until(self._have_met, _WHOLE_SECONDS, what="all servers of the cluster know each other")
        for number, node in enumerate(self.replicas):
            with node.client() as client:
                client.execute_command("CLUSTER REPLICATE", _id(self.primaries[number % count]))
        wait_until(self._is_whole, _WHOLE_SECONDS, what="the cluster is whole")

    def _have_met(self) -> bool:
        return all(int(_info(node)["cluster_known_nodes"]) == len(self.nodes) for node in self.nodes)

    def _is_whole(self) -> bool:
        return (
            all(_info(node)["cluster_state"] == "ok" for node in self.nodes)
            and all(_covers(node) for node in self.nodes)
            and all(_follows(node) for node in self.replicas)
        )


def _id(node: RedisProcess) -> str:
    with node.client() as client:
        answer: bytes = client.execute_command("CLUSTER MYID")
    return answer.decode()


def _info(node: RedisProcess) -> dict[str, str]:
    with node.client() as client:
        answer: dict[str, str] = client.execute_command("CLUSTER INFO")
    return answer


def _covers(node: RedisProcess) -> bool:
    return int(_info(node)["cluster_slots_assigned"]) == REDIS_CLUSTER_HASH_SLOTS


def _follows(node: RedisProcess) -> bool:
    with node.client() as client:
        try:
            return bool(client.info("replication").get("master_link_status") == "up")
        except redis.exceptions.RedisError:
            return False
