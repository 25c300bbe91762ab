"""A process that takes leases and publishes: told what to do by lines of JSON on stdin, and answers each with one.

Run as ``python -m tests.integration.redis.racer URL OWNER``. Orders have `do` and the arguments of the method of that
name below; with `at`, a time of the machine's monotonic clock, work begins then, so that several processes begin at
once.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from durable_memory.adapters.redis import (
    RedisConnection,
    RedisLeaseStore,
    RedisSettings,
    RedisVectorIndex,
    parse_redis_url,
)
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import Manifest, SegmentEntry
from durable_memory.ports.leases import Lease
from tests.conformance.index_samples import LONG_SECONDS, PATIENT, fresh, partition_of, publication, publish, stage
from tests.processes.polling import wait_until_async

PUBLISHED = "published"


class Racer:
    """`staged` is what was made ready for a publication that comes later."""

    def __init__(self, connection: RedisConnection, owner: str) -> None:
        self._index = RedisVectorIndex(connection)
        self._leases = RedisLeaseStore(connection)
        self._owner = owner
        self._staged: SegmentEntry | None = None
        self._lease: Lease | None = None

    async def prepare(self, scope: str, node_id: str) -> None:
        """Stage a segment with one node."""
        self._staged = await stage(self._index, partition_of(scope), (node_id,))

    async def acquire(self, scope: str, ttl: float) -> int:
        """Take the lease of a partition for the next `publish`; its fence."""
        self._lease = await self._acquire(partition_of(scope), ttl)
        return self._lease.fence

    async def publish(self, scope: str, expected: int, fence: int | None = None, owner: str | None = None) -> str:
        """Publish what was prepared beside what is there, under the lease that was taken, or a given one.

        How it ended, in a word.
        """
        partition = partition_of(scope)
        lease = self._lease
        if fence is not None:
            lease = Lease(name=partition.name, owner=owner or self._owner, fence=fence, ttl_seconds=LONG_SECONDS)
        assert lease is not None
        return await self._publish(partition, lease, expected)

    async def publish_in_turn(self, scope: str, expected: int) -> str:
        """Wait for the lease, publish what was prepared, and give the lease back."""
        partition = partition_of(scope)
        lease = await self._acquire(partition, LONG_SECONDS)
        try:
            return await self._publish(partition, lease, expected)
        finally:
            await self._leases.release(lease)

    async def converge(self, scope: str, node_id: str) -> int:
        """Publish a node, however often others come first; the number of conflicts on the way."""
        conflicts = 0
        while True:
            manifest = await self._index.manifest(partition_of(scope))
            await self.prepare(scope, node_id)
            outcome = await self.publish_in_turn(scope, 0 if manifest is None else manifest.index_revision)
            if outcome == PUBLISHED:
                return conflicts
            assert outcome == Reason.INDEX_REVISION_CONFLICT, outcome
            conflicts += 1

    async def publish_everywhere(self, scopes: list[str], rounds: int) -> list[int]:
        """Publish so many times in each partition, in all of them at once; the revisions that they end at."""

        async def work(partition: Partition) -> int:
            manifest: Manifest | None = None
            for _ in range(rounds):
                lease = await self._leases.acquire(
                    partition.name, self._owner, ttl_seconds=LONG_SECONDS, floor=0, nonce=fresh("nonce")
                )
                manifest = await publish(self._index, partition, lease, after=manifest)
                await self._leases.release(lease)
            return 0 if manifest is None else manifest.index_revision

        return await asyncio.gather(*(work(partition_of(scope)) for scope in scopes))

    async def _acquire(self, partition: Partition, ttl: float) -> Lease:
        async def granted() -> Lease | None:
            try:
                return await self._leases.acquire(
                    partition.name, self._owner, ttl_seconds=ttl, floor=0, nonce=fresh("nonce")
                )
            except DomainError as error:
                if error.reason is Reason.LEASE_HELD:
                    return None
                raise

        lease = await wait_until_async(granted, 60.0, what="the lease is granted")
        assert lease is not None
        return lease

    async def _publish(self, partition: Partition, lease: Lease, expected: int) -> str:
        assert self._staged is not None
        manifest = await self._index.manifest(partition)
        kept = () if manifest is None else manifest.segments
        wanted = publication(partition, lease, self._staged, kept=kept, expected_index_revision=expected)
        try:
            await self._index.publish(wanted)
        except DomainError as error:
            return error.reason
        return PUBLISHED


async def main(url: str, owner: str) -> None:
    connection = RedisConnection(parse_redis_url(url), RedisSettings(**PATIENT))
    await connection.open()
    racer = Racer(connection, owner)
    loop = asyncio.get_running_loop()
    try:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            order: dict[str, Any] = json.loads(line)
            at, work = order.pop("at", 0.0), getattr(racer, order.pop("do"))
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            sys.stdout.write(json.dumps(await work(**order)) + "\n")
            sys.stdout.flush()
    finally:
        await connection.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
