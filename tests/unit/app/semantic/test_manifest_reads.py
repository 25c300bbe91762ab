"""Reads of a manifest: one for all who wait, and never one that began before the question."""

from __future__ import annotations

import asyncio

import pytest

from durable_memory.app.semantic.manifest_reads import ManifestReads
from durable_memory.domain.errors import DomainError, Reason
from tests.unit.app.semantic.semantic_world import TEA, SemanticWorld
from tests.unit.app.stores import Gate, fails_once
from tests.unit.app.world import OTHER_NAMESPACE


async def test_who_comes_while_a_read_is_under_way_is_answered_by_the_next_and_together(
    semantic: SemanticWorld,
) -> None:
    await semantic.indexed(TEA)
    index, gate = semantic.backing.index, Gate()
    reads = ManifestReads(semantic.runtime.index)
    before = index.calls["manifest"]
    index.before["manifest"] = gate
    first = reads.begin(semantic.partition)
    await gate.reached.wait()
    later = [reads.begin(semantic.partition) for _ in range(10)]
    assert first not in later
    elsewhere = reads.begin(semantic.partition_of(OTHER_NAMESPACE))
    gate.open()
    found = await asyncio.gather(first, *later)
    assert await elsewhere is None
    assert {manifest and manifest.index_revision for manifest in found} == {1}
    assert index.calls["manifest"] - before == 3
    await reads.begin(semantic.partition)
    assert index.calls["manifest"] - before == 4


async def test_who_comes_within_some_turns_shares_a_read_while_recalls_come_in_numbers(
    semantic: SemanticWorld,
) -> None:
    await semantic.indexed(TEA)
    reads, calls = ManifestReads(semantic.runtime.index), semantic.backing.index.calls

    async def later(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        await reads.begin(semantic.partition)

    before = calls["manifest"]
    await asyncio.gather(*(later(3 * caller) for caller in range(5)))
    assert calls["manifest"] - before == 1
    for _ in range(2):
        await reads.begin(semantic.partition)
    await asyncio.gather(later(0), later(3))
    assert calls["manifest"] - before == 5, "who was alone the last time does not wait"


async def test_a_read_that_fails_fails_for_those_who_waited_for_it_alone(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA)
    reads = ManifestReads(semantic.runtime.index)
    semantic.backing.index.before["manifest"] = fails_once(DomainError(Reason.DEPENDENCY_UNAVAILABLE, "gone"))
    failing = reads.begin(semantic.partition)
    with pytest.raises(DomainError):
        await failing
    assert await reads.begin(semantic.partition) is not None


async def test_closing_stops_reads(semantic: SemanticWorld) -> None:
    reads, gate = ManifestReads(semantic.runtime.index), Gate()
    semantic.backing.index.before["manifest"] = gate
    first = reads.begin(semantic.partition)
    await gate.reached.wait()
    second = reads.begin(semantic.partition)
    await reads.close()
    assert first.cancelled()
    assert second.cancelled()
