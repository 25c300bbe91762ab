"""Scheduled refreshes: one at a time for each partition, each on record with the fence under which it ran."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from durable_memory import tasks
from durable_memory.app.call import Call
from durable_memory.app.semantic.maintenance import Maintenance, MaintenancePhase
from durable_memory.domain.caller import Role
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.ports.leases import Lease
from durable_memory.ports.semantic_records import MaintenanceRun, RunOutcome
from tests.processes.polling import wait_until_async
from tests.unit.app.semantic.semantic_world import (
    RAIN,
    TEA,
    TTL_SECONDS,
    Backing,
    SemanticWorld,
    looked,
    maintained,
)
from tests.unit.app.stores import fails_once
from tests.unit.app.world import refused

DELAY_SECONDS = 2.0
LOST = DomainError(Reason.DEPENDENCY_UNAVAILABLE, "the repository is not there")


@pytest.fixture
async def due(semantic: SemanticWorld) -> SemanticWorld:
    """A process whose namespace has one memory that wants a refresh, which nobody makes yet."""
    await semantic.open()
    await semantic.remember(TEA, "a")
    semantic.pass_seconds(DELAY_SECONDS)
    return semantic


async def runs(world: SemanticWorld) -> list[MaintenanceRun]:
    """The namespace's, newest first."""
    return list((await world.semantic.maintenance(world.call)).runs)


def ran(world: SemanticWorld, times: int) -> Callable[[], Awaitable[bool]]:
    async def enough() -> bool:
        return len(await runs(world)) >= times

    return enough


async def test_a_run_is_on_record_with_the_fence_of_its_lease(due: SemanticWorld) -> None:
    async with maintained(due, delay_seconds=DELAY_SECONDS):
        await wait_until_async(ran(due, 1))
    (run,) = await runs(due)
    receipt = (await due.status()).last_receipt
    assert receipt is not None
    assert (run.outcome, run.error) == (RunOutcome.PUBLISHED, "")
    assert (run.fence, run.index_revision) == (receipt.fence, receipt.index_revision) == (1, 1)


async def test_what_came_of_a_run_is_on_record_before_another_can_begin(
    due: SemanticWorld, successor: SemanticWorld, backing: Backing
) -> None:
    tried: list[bool] = []

    async def another() -> None:
        with refused(Reason.LEASE_HELD):
            await successor.refresh()
        tried.append(True)

    backing.records.before["add_run"] = another
    async with maintained(due, delay_seconds=DELAY_SECONDS):
        await wait_until_async(ran(due, 1))
    assert tried


async def test_a_failed_run_has_its_fence_too_and_the_next_try_waits(due: SemanticWorld) -> None:
    due.embedder.fail_next()
    async with maintained(due, delay_seconds=DELAY_SECONDS) as maintenance:
        await wait_until_async(ran(due, 1))
        (run,) = await runs(due)
        assert (run.outcome, run.fence, run.index_revision) == (RunOutcome.FAILED, 1, 0)
        assert run.error == "SEMANTIC_UNAVAILABLE:PROVIDER_FAILED:UNREACHABLE"
        assert maintenance.health().phase is MaintenancePhase.FAILING
        await wait_until_async(looked(due))
        assert len(await runs(due)) == 1
        due.pass_seconds(DELAY_SECONDS)
        await wait_until_async(ran(due, 2))
        assert [run.fence for run in await runs(due)] == [2, 1]
        assert maintenance.health().phase is not MaintenancePhase.FAILING


async def test_a_run_that_ended_before_it_had_a_lease_has_no_fence(due: SemanticWorld, backing: Backing) -> None:
    backing.records.before["highest_fence"] = fails_once(LOST)
    async with maintained(due, delay_seconds=DELAY_SECONDS):
        await wait_until_async(ran(due, 1))
    (run,) = await runs(due)
    assert (run.outcome, run.error, run.fence) == (RunOutcome.FAILED, "DEPENDENCY_UNAVAILABLE", 0)


async def test_a_run_that_the_process_stops_in_the_middle_is_on_record_as_cancelled(due: SemanticWorld) -> None:
    due.embedder.gate.clear()
    async with maintained(due, delay_seconds=DELAY_SECONDS) as maintenance:
        await due.embedder.waiting.wait()
    (run,) = await runs(due)
    assert (run.outcome, run.fence, run.index_revision) == (RunOutcome.CANCELLED, 1, 0)
    assert maintenance.health().phase is MaintenancePhase.STOPPED


async def test_a_run_that_came_through_is_on_record_once_if_the_process_stops_while_it_gives_its_lease_back(
    due: SemanticWorld, backing: Backing, monkeypatch: pytest.MonkeyPatch
) -> None:
    releasing, gate, release = asyncio.Event(), asyncio.Event(), backing.leases.release

    async def slowly(lease: Lease) -> None:
        releasing.set()
        await gate.wait()
        await release(lease)

    monkeypatch.setattr(backing.leases, "release", slowly)
    async with maintained(due, delay_seconds=DELAY_SECONDS):
        await releasing.wait()
    gate.set()
    (run,) = await runs(due)
    assert (run.outcome, run.fence, run.index_revision) == (RunOutcome.PUBLISHED, 1, 1)


async def test_a_run_that_came_through_is_on_record_as_that_if_the_process_stops_meanwhile(
    due: SemanticWorld, backing: Backing
) -> None:
    recording, gate = asyncio.Event(), asyncio.Event()

    async def slowly() -> None:
        recording.set()
        await gate.wait()

    backing.records.before["add_run"] = slowly
    async with maintained(due, delay_seconds=DELAY_SECONDS) as maintenance:
        await recording.wait()
        (running,) = maintenance._running.values()
        stopping = asyncio.create_task(maintenance.stop())
        await wait_until_async(lambda: running.cancelling() > 0, what="the run is told to end")
        gate.set()
        await stopping
    (run,) = await runs(due)
    assert (run.outcome, run.fence, run.index_revision) == (RunOutcome.PUBLISHED, 1, 1)


async def test_what_is_begun_by_a_look_that_was_told_to_end_is_ended_as_well(
    due: SemanticWorld, backing: Backing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_AGAIN_SECONDS", 0.01)
    looking = asyncio.Event()
    due.embedder.gate.clear()

    async def takes_it_for_a_lost_connection() -> None:
        if not looking.is_set():
            looking.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    backing.records.before["due"] = takes_it_for_a_lost_connection
    async with maintained(due, delay_seconds=DELAY_SECONDS):
        await looking.wait()
    assert [task for task in asyncio.all_tasks() if task.get_name() == "scheduled refresh"] == []


async def test_a_run_that_was_overtaken_leaves_the_record_to_its_successor(
    due: SemanticWorld, successor: SemanticWorld
) -> None:
    due.embedder.gate.clear()
    async with maintained(due, delay_seconds=DELAY_SECONDS) as maintenance:
        await due.embedder.waiting.wait()
        due.pass_seconds(TTL_SECONDS + 1)
        assert (await successor.refresh()).fence == 2
        due.embedder.gate.set()
        await wait_until_async(lambda: maintenance.health().last_error == "LEASE_FENCED")
    assert await runs(due) == []
    assert (await due.status()).last_failure == ""


async def test_while_another_replica_refreshes_nothing_is_run_and_nothing_fails(
    due: SemanticWorld, successor: SemanticWorld
) -> None:
    successor.embedder.gate.clear()
    work = asyncio.create_task(successor.refresh())
    await successor.embedder.waiting.wait()
    async with maintained(due, delay_seconds=DELAY_SECONDS) as maintenance:
        await wait_until_async(looked(due))
        assert (maintenance.health().runs, maintenance.health().failures) == (0, 0)
    successor.embedder.gate.set()
    assert (await work).indexed_count == 1


async def test_one_partition_is_never_refreshed_twice_at_once_by_one_process(due: SemanticWorld) -> None:
    due.embedder.gate.clear()
    async with maintained(due, workers=3, delay_seconds=DELAY_SECONDS) as maintenance:
        await due.embedder.waiting.wait()
        await wait_until_async(looked(due))
        assert maintenance.health().running == 1
        assert due.backing.records.calls["record_fence"] == 1
        due.embedder.gate.set()
        await wait_until_async(ran(due, 1))


async def test_a_look_that_fails_is_told_in_health_and_made_again(due: SemanticWorld, backing: Backing) -> None:
    backing.records.before["due"] = fails_once(LOST)
    async with maintained(due, delay_seconds=DELAY_SECONDS) as maintenance:
        await wait_until_async(ran(due, 1))
        health = maintenance.health()
    assert (health.runs, health.failures, health.last_error) == (1, 1, "DEPENDENCY_UNAVAILABLE")


async def test_only_operators_are_told_of_a_process_that_works_for_all(due: SemanticWorld) -> None:
    async with maintained(due, delay_seconds=DELAY_SECONDS):
        await wait_until_async(ran(due, 1))
    reader = replace(due.call.caller, roles=frozenset({Role.READER}))
    seen = await due.semantic.maintenance(Call(caller=reader, namespace=due.namespace))
    operator = await due.semantic.maintenance(due.call)
    assert seen.health is None
    assert operator.health is not None
    assert len(seen.runs) == 1
    assert (seen.runs, seen.last_receipt) == (operator.runs, operator.last_receipt)


async def test_a_refresh_by_hand_that_comes_through_ends_the_last_failure(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA)
    await semantic.remember(RAIN, "b")
    semantic.embedder.fail_next()
    with refused(Reason.SEMANTIC_UNAVAILABLE):
        await semantic.refresh()
    assert (await semantic.status()).last_failure == "SEMANTIC_UNAVAILABLE:PROVIDER_FAILED:UNREACHABLE"
    (run,) = await runs(semantic)
    assert run.fence == 2
    await semantic.refresh()
    assert (await semantic.status()).last_failure == ""


async def test_ticks_that_nobody_was_there_for_are_not_made_up_for(due: SemanticWorld) -> None:
    await due.semantic.set_schedule(due.call, interval_seconds=60.0, on_change_delay_seconds=None)
    due.pass_seconds(3_600)
    async with maintained(due, delay_seconds=DELAY_SECONDS):
        await wait_until_async(ran(due, 1))
        await wait_until_async(looked(due))
        assert len(await runs(due)) == 1
        due.pass_seconds(60)
        await wait_until_async(ran(due, 2))
    assert [run.outcome for run in await runs(due)] == [RunOutcome.UNCHANGED, RunOutcome.PUBLISHED]


@pytest.mark.parametrize("interval_seconds", [None, 60.0])
async def test_what_another_replica_has_run_between_look_and_lease_is_not_run_again(
    due: SemanticWorld, successor: SemanticWorld, backing: Backing, interval_seconds: float | None
) -> None:
    if interval_seconds is not None:
        await due.semantic.set_schedule(
            due.call, interval_seconds=interval_seconds, on_change_delay_seconds=DELAY_SECONDS
        )
        due.pass_seconds(interval_seconds)

    async def another_is_faster() -> None:
        del backing.records.before["highest_fence"]
        async with maintained(successor, delay_seconds=DELAY_SECONDS):
            await wait_until_async(ran(due, 1))

    backing.records.before["highest_fence"] = another_is_faster
    async with maintained(due, delay_seconds=DELAY_SECONDS) as maintenance:
        await wait_until_async(lambda: backing.records.calls["record_fence"] == 2, what="it has a lease of its own")
        await wait_until_async(looked(due))
        await wait_until_async(lambda: not maintenance.health().running)
        assert (maintenance.health().runs, maintenance.health().failures) == (0, 0)
    (run,) = await runs(due)
    assert (run.outcome, run.fence) == (RunOutcome.PUBLISHED, 1)
    assert [receipt.fence for receipt in await due.semantic.receipts(due.call, before=None, limit=9)] == [1]


async def test_a_lost_index_that_another_replica_has_built_again_meanwhile_is_not_built_twice(
    semantic: SemanticWorld, successor: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    backing.lose_index()
    assert (await semantic.answer(TEA)).degradation is not None

    async def another_is_faster() -> None:
        del backing.records.before["highest_fence"]
        assert (await successor.refresh()).fence == 2

    backing.records.before["highest_fence"] = another_is_faster
    async with maintained(semantic, delay_seconds=DELAY_SECONDS) as maintenance:
        await wait_until_async(lambda: backing.records.calls["record_fence"] == 3, what="it has a lease of its own")
        await wait_until_async(looked(semantic))
        await wait_until_async(lambda: not maintenance.health().running)
    assert await runs(semantic) == []
    assert (await semantic.answer(TEA)).degradation is None


async def test_a_refresh_by_hand_that_fails_is_on_record_whatever_it_fails_of(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    await semantic.remember(RAIN, "b")
    failures = (Reason.QUOTA_EXCEEDED, Reason.SOURCE_DRIFT, Reason.DEPENDENCY_UNAVAILABLE)
    for reason in failures:
        backing.records.before["cached_vectors"] = fails_once(DomainError(reason, "it does"))
        with refused(reason):
            await semantic.refresh()
        assert (await semantic.status()).last_failure == reason.value
    assert [run.error for run in await runs(semantic)] == [reason.value for reason in failures[::-1]]
    assert {run.outcome for run in await runs(semantic)} == {RunOutcome.FAILED}


async def test_a_refresh_by_hand_that_was_not_tried_is_not_on_record(
    semantic: SemanticWorld, successor: SemanticWorld
) -> None:
    await semantic.open()
    await semantic.remember(TEA, "a")
    successor.embedder.gate.clear()
    work = asyncio.create_task(successor.refresh())
    await successor.embedder.waiting.wait()
    with refused(Reason.LEASE_HELD):
        await semantic.refresh()
    successor.embedder.gate.set()
    await work
    assert await runs(semantic) == []


async def test_what_is_new_does_not_wait_for_minutes_once_a_provider_is_back(due: SemanticWorld) -> None:
    async def is_well() -> bool:
        return (await due.status()).last_failure == ""

    async with maintained(due, delay_seconds=DELAY_SECONDS) as maintenance:
        for failures in range(1, 8):
            due.embedder.fail_next()
            due.pass_seconds(31.0)
            await wait_until_async(partial(_failed, maintenance, failures))
        due.pass_seconds(31.0)
        await wait_until_async(is_well)


def _failed(maintenance: Maintenance, times: int) -> bool:
    return maintenance.health().failures >= times
