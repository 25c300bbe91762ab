"""All indexes are one index: random sequences of calls get the same answers everywhere as from the memory index."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from durable_memory.domain.errors import DomainError
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import SegmentEntry
from durable_memory.domain.semantic.segment import FloatWidth
from durable_memory.ports.leases import Lease
from durable_memory.ports.vector_index import Publication
from tests.conformance.index_backends import MemoryBackend, Opened
from tests.conformance.index_samples import DESCRIPTOR, LONG_SECONDS, encoded_segment, entry_of, partition_of

STEPS = 120
OWNERS = ("owner-1", "owner-2")

Call = Callable[[Opened], Awaitable[Any]]


class Script:
    """Makes calls that are mostly right, from a seed and from what earlier answers were."""

    def __init__(self, seed: int, unique: str) -> None:
        self._random = random.Random(seed)
        self._partitions = [partition_of(f"{unique} {number}") for number in range(2)]
        self._leases: list[Lease] = [Lease(name=self._partitions[0].name, owner="x", fence=1, ttl_seconds=60.0)]
        self._entries: list[SegmentEntry] = []
        self._publications: list[Publication] = []
        self._published = dict.fromkeys(self._partitions, 0)
        self._number = 0
        self._first = 1

    def next_call(self) -> tuple[str, Call]:
        kinds = ["acquire", "acquire", "renew", "release", "stage", "stage", "keep", "publish", "publish", "publish"]
        kind = self._random.choice([*kinds, "repeat", "clear", "look"])
        return kind, getattr(self, f"_{kind}")(self._random.choice(self._partitions))

    def learn(self, answer: Any) -> None:
        if isinstance(answer, Lease):
            self._leases.append(answer)

    def _lease(self, partition: Partition) -> Lease:
        """Mostly the newest of the partition."""
        own = [lease for lease in self._leases if lease.name == partition.name]
        return own[-1] if own and self._random.random() < 0.8 else self._random.choice(self._leases)

    def _acquire(self, partition: Partition) -> Call:
        owner, nonce = self._random.choice(OWNERS), f"nonce-{self._random.randrange(4)}"
        floor = self._random.choice((0, 0, 0, 5))
        return lambda opened: opened.leases.acquire(
            partition.name, owner, ttl_seconds=LONG_SECONDS, floor=floor, nonce=nonce
        )

    def _renew(self, partition: Partition) -> Call:
        lease = self._lease(partition)
        return lambda opened: opened.leases.renew(lease)

    def _release(self, partition: Partition) -> Call:
        lease = self._lease(partition)
        return lambda opened: opened.leases.release(lease)

    def _stage(self, partition: Partition) -> Call:
        self._number += 1
        number = self._number if self._random.random() < 0.9 else self._random.randint(self._first, self._number)
        encoded = encoded_segment([f"n{self._number if self._random.random() < 0.2 else number}"])
        segment_id = f"segment-{number}"
        self._entries.append(entry_of(encoded, segment_id, 1))
        return lambda opened: opened.index.stage(partition, segment_id, encoded, ttl_seconds=LONG_SECONDS)

    def _keep(self, partition: Partition) -> Call:
        ids = [entry.segment_id for entry in self._some_entries()]
        return lambda opened: opened.index.keep_staged(partition, ids, ttl_seconds=LONG_SECONDS)

    def _publish(self, partition: Partition) -> Call:
        right = self._random.random() < 0.8
        expected = self._published[partition] if right else self._random.randrange(4)
        self._number += 1
        width = FloatWidth.FLOAT32 if self._random.random() < 0.9 else FloatWidth.FLOAT16
        entries = tuple(self._some_entries())
        made = Publication(
            partition=partition,
            lease=self._lease(partition),
            expected_index_revision=expected,
            descriptor=replace(DESCRIPTOR, width=width),
            segments=entries,
            staged_ids=frozenset(entry.segment_id for entry in entries[1:]),
            source_history_id="history",
            source_revision=self._number,
            nonce=f"publication-{self._number}",
        )
        self._publications.append(made)
        return lambda opened: opened.index.publish(made)

    def _repeat(self, partition: Partition) -> Call:
        if not self._publications:
            return self._look(partition)
        made = self._random.choice(self._publications[-3:])
        return lambda opened: opened.index.publish(made)

    def _clear(self, partition: Partition) -> Call:
        """What was staged or replaced before may be there for a while or not, so it is not asked for again."""
        lease = self._lease(partition)
        self._first = self._number + 1
        self._entries.clear()
        self._publications.clear()
        return lambda opened: opened.index.clear(partition, lease)

    def _look(self, partition: Partition) -> Call:
        async def look(opened: Opened) -> Any:
            manifests = [await opened.index.manifest(own) for own in self._partitions]
            for own, manifest in zip(self._partitions, manifests, strict=True):
                self._published[own] = 0 if manifest is None else manifest.index_revision
            manifest = await opened.index.manifest(partition)
            ids = [] if manifest is None else [entry.segment_id for entry in manifest.segments]
            state = await opened.leases.inspect(partition.name)
            return manifests, manifest, dict(await opened.index.segments(partition, ids)), state.owner, state.fence

        return look

    def _some_entries(self) -> list[SegmentEntry]:
        recent = self._entries[-4:]
        chosen = self._random.sample(recent, self._random.randint(0, len(recent)))
        return list({entry.segment_id: entry for entry in chosen}.values())


async def answer(call: Call, opened: Opened) -> Any:
    try:
        return await call(opened)
    except DomainError as error:
        return error.reason, {name: value for name, value in error.metadata.items() if name != "retry_after_ms"}


@pytest.mark.parametrize("seed", range(6))
async def test_random_calls_get_the_answers_of_the_memory_index(opened, unique, seed):
    script = Script(seed, unique)
    async with MemoryBackend().opened() as oracle:
        for step in range(STEPS):
            for kind, call in (script.next_call(), ("look", script._look(script._partitions[step % 2]))):
                expected = await answer(call, oracle)
                actual = await answer(call, opened)
                assert actual == expected, (seed, step, kind)
                script.learn(expected)
