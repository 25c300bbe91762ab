"""Scheduled refreshes of many namespaces: what is wrong with some of them is no matter to the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from durable_memory.app.semantic.maintenance import MaintenancePhase
from durable_memory.app.semantic.refresh_limits import RefreshLimits
from durable_memory.domain.namespace import Namespace
from durable_memory.ports.semantic_records import RunOutcome
from tests.processes.polling import wait_until_async
from tests.unit.app.semantic.semantic_world import (
    RAIN,
    TEA,
    Backing,
    SemanticWorld,
    looked,
    maintained,
    semantic_process,
)
from tests.unit.app.stores import fails_once

MANY = 12
"""More than one look for due work takes at once, per worker."""


def named(number: int) -> Namespace:
    return Namespace(f"tenant-{number:02}", "user-1", "project-a")


def indexed(world: SemanticWorld) -> Callable[[], Awaitable[bool]]:
    async def covered() -> bool:
        receipt = await world.runtime.records.last_receipt(world.partition)
        return receipt is not None and receipt.indexed_count == receipt.active_count

    return covered


async def fill(world: SemanticWorld, namespace: Namespace, *contents: str) -> SemanticWorld:
    there: SemanticWorld = world.at(namespace)  # type: ignore[assignment]
    await there.open()
    for content in contents:
        await there.remember(content)
    return there


async def test_namespaces_that_wait_after_failures_keep_no_other_one_from_its_turn(backing: Backing) -> None:
    async with semantic_process(backing, "a", limits=RefreshLimits(max_records=1)) as world:
        for number in range(MANY):
            await fill(world, named(number), TEA, RAIN)
        async with maintained(world) as maintenance:
            await wait_until_async(lambda: maintenance.health().failures >= MANY)
            world.pass_seconds(1.0)
            well = await fill(world, named(MANY), TEA)
            await wait_until_async(indexed(well))


async def test_namespaces_that_other_replicas_refresh_keep_no_other_one_from_its_turn(
    backing: Backing, semantic: SemanticWorld
) -> None:
    for number in range(MANY):
        there = await fill(semantic, named(number), TEA)
        await backing.leases.acquire(there.partition.name, "another", ttl_seconds=3_600.0, floor=0, nonce="n")
    semantic.pass_seconds(1.0)
    well = await fill(semantic, named(MANY), TEA)
    async with maintained(semantic):
        await wait_until_async(indexed(well))


async def test_what_another_replica_refreshes_is_not_asked_for_at_every_look(
    backing: Backing, semantic: SemanticWorld
) -> None:
    there = await fill(semantic, named(1), TEA)
    await backing.leases.acquire(there.partition.name, "another", ttl_seconds=60.0, floor=0, nonce="n")
    async with maintained(semantic):
        await wait_until_async(looked(semantic, 20))
        assert backing.records.calls["highest_fence"] == 1
        semantic.pass_seconds(61.0)
        await wait_until_async(indexed(there))


async def test_a_defect_in_one_refresh_is_a_failed_run_and_ends_nothing(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.open()
    await semantic.remember(TEA, "a")
    backing.records.before["cached_vectors"] = fails_once(KeyError("column"))
    async with maintained(semantic) as maintenance:
        await wait_until_async(lambda: maintenance.health().failures == 1)
        await wait_until_async(looked(semantic))
        health = maintenance.health()
        assert (health.phase, health.failures, health.last_error) == (MaintenancePhase.FAILING, 1, "INTERNAL")
        (run,) = (await semantic.semantic.maintenance(semantic.call)).runs
        assert (run.outcome, run.error) == (RunOutcome.FAILED, "INTERNAL")
        semantic.pass_seconds(2.0)
        await wait_until_async(indexed(semantic))


@pytest.mark.parametrize("step", ["due", "schedule"])
async def test_a_defect_in_a_look_for_work_is_on_record_and_the_next_look_comes(
    semantic: SemanticWorld, backing: Backing, step: str
) -> None:
    await semantic.indexed(TEA)
    backing.lose_index()
    await semantic.answer("kettles")
    backing.records.before[step] = fails_once(KeyError("column"))
    async with maintained(semantic) as maintenance:
        await wait_until_async(lambda: maintenance.health().failures == 1)
        assert maintenance.health().last_error == "INTERNAL"
        await wait_until_async(lambda: maintenance.health().runs == 1)
