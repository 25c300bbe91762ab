"""Schedules, and the runs that they lead to."""

import asyncio
from dataclasses import replace

import pytest

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.ports.semantic_records import RUN_ERROR_MAX_CHARACTERS, RUNS_KEPT, SCHEDULE_SECONDS_MAX, RunOutcome
from tests.conformance.semantic_records.samples import maintenance_run, schedule
from tests.conformance.semantic_records.samples import partition as partition_of


@pytest.mark.parametrize(
    ("interval", "delay"),
    [(None, None), (0.1, None), (None, 0.0), (60.0, 2.5), (SCHEDULE_SECONDS_MAX, SCHEDULE_SECONDS_MAX)],
)
async def test_a_schedule_comes_back_with_every_field(records, namespace, generation, interval, delay):
    assert await records.schedule(namespace, generation.authority_digest) is None
    written = schedule(generation, interval, delay)
    await records.set_schedule(namespace, written)
    assert await records.schedule(namespace, generation.authority_digest) == written


async def test_a_schedule_replaces_the_one_before(records, namespace, generation):
    await records.set_schedule(namespace, schedule(generation, 60.0, 2.0))
    last = replace(schedule(generation), set_by="somebody else")
    await records.set_schedule(namespace, last)
    assert await records.schedule(namespace, generation.authority_digest) == last


async def test_partitions_have_schedules_of_their_own(
    records, namespace, other_namespace, generation, other_generation
):
    await records.set_schedule(namespace, schedule(generation, 60.0))
    for names in ((other_namespace, generation), (namespace, other_generation)):
        assert await records.schedule(names[0], names[1].authority_digest) is None
        await records.set_schedule(names[0], schedule(names[1], 5.0))
    assert await records.schedule(namespace, generation.authority_digest) == schedule(generation, 60.0)


@pytest.mark.parametrize(
    ("interval", "delay", "field"),
    [
        (0.0, None, "interval_seconds"),
        (-1.0, None, "interval_seconds"),
        (float("nan"), None, "interval_seconds"),
        (SCHEDULE_SECONDS_MAX + 1, None, "interval_seconds"),
        (None, -0.1, "on_change_delay_seconds"),
        (None, float("inf"), "on_change_delay_seconds"),
    ],
)
def test_a_schedule_that_never_comes_or_never_rests_is_refused(generation, interval, delay, field):
    with pytest.raises(DomainError) as refusal:
        schedule(generation, interval, delay)
    assert (refusal.value.reason, refusal.value.metadata["field"]) == (Reason.INVALID_FIELD, field)


async def test_runs_come_back_with_every_field_those_that_were_added_last_first(records, partition):
    assert await records.runs(partition) == []
    assert await records.record_fence(partition, 3)
    written = [
        replace(maintenance_run(number, outcome=outcome), fence=fence, error="e" * RUN_ERROR_MAX_CHARACTERS)
        for number, outcome in enumerate(RunOutcome)
        for fence in (0, 3)
    ]
    written.append(maintenance_run(0))  # from a host whose clock is behind
    for run in written:
        await records.add_run(partition, run)
    assert await records.runs(partition) == written[::-1]


async def test_the_last_64_runs_are_kept(records, partition):
    assert RUNS_KEPT == 64
    written = [maintenance_run(number) for number in range(2 * RUNS_KEPT + 3)]
    for run in written:
        await records.add_run(partition, run)
    assert await records.runs(partition) == written[: -RUNS_KEPT - 1 : -1]


async def test_runs_that_are_added_at_once_are_all_there(records, partition):
    written = [maintenance_run(number) for number in range(16)]
    await asyncio.gather(*(records.add_run(partition, run) for run in written))
    assert sorted(await records.runs(partition), key=lambda run: run.started_at) == written


async def test_a_run_that_had_no_fence_leaves_the_recorded_one_alone(records, partition):
    await records.add_run(partition, maintenance_run())
    assert await records.highest_fence(partition) == 0
    assert await records.record_fence(partition, 1)
    await records.add_run(partition, maintenance_run())
    assert await records.highest_fence(partition) == 1


async def test_partitions_have_runs_of_their_own(records, partition, other_namespace, generation, other_generation):
    await records.add_run(partition, maintenance_run(1))
    for other in (partition_of(other_namespace, generation), partition_of(partition.namespace, other_generation)):
        assert await records.runs(other) == []
        await records.add_run(other, maintenance_run(2))
    assert await records.runs(partition) == [maintenance_run(1)]


def test_the_error_of_a_run_is_short():
    with pytest.raises(ValueError, match="short"):
        replace(maintenance_run(), error="e" * (RUN_ERROR_MAX_CHARACTERS + 1))
