"""What the log says of maintenance that fails: the cause when it is new, then ever more rarely, and when it is over."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from durable_memory.app.semantic.maintenance import Maintenance, MaintenancePhase
from durable_memory.domain.errors import DomainError, Reason
from tests.processes.polling import wait_until_async
from tests.unit.app.semantic.semantic_world import TEA, Backing, SemanticWorld, looked, maintained

Lines = list[MutableMapping[str, Any]]


@pytest.fixture
def logs() -> Iterator[Lines]:
    with capture_logs() as lines:
        yield lines


def fails(error: Exception) -> Any:
    async def hook() -> None:
        raise error

    return hook


def lines_of(logs: Lines, event: str, *fields: str) -> Sequence[tuple[Any, ...]]:
    return [tuple(line[name] for name in fields) for line in logs if line["event"] == event]


def has_told(logs: Lines, event: str, times: int) -> bool:
    return len(lines_of(logs, event)) == times


def away() -> DomainError:
    return DomainError(Reason.DEPENDENCY_UNAVAILABLE, "the repository is not there")


async def failed_looks(maintenance: Maintenance, times: int) -> None:
    seen = maintenance.health().failures
    await wait_until_async(lambda: maintenance.health().failures >= seen + times)


async def test_an_outage_is_told_when_it_begins_at_growing_intervals_and_when_it_is_over(
    semantic: SemanticWorld, backing: Backing, logs: Lines
) -> None:
    await semantic.open()
    backing.records.before["due"] = fails(away())
    async with maintained(semantic) as maintenance:
        told = []
        for seconds in (0.0, 9.0, 1.0, 19.0, 1.0, 39.0, 1.0):
            semantic.pass_seconds(seconds)
            await failed_looks(maintenance, 5)
            told.append(len(lines_of(logs, "semantic_maintenance_failed")))
        assert told == [1, 1, 2, 2, 3, 3, 4]
        assert maintenance.health().phase is MaintenancePhase.FAILING
        del backing.records.before["due"]
        await wait_until_async(lambda: lines_of(logs, "semantic_maintenance_works_again"))
        failures = maintenance.health().failures
        assert maintenance.health().phase is not MaintenancePhase.FAILING
    assert failures >= 35, "each was counted"
    assert lines_of(logs, "semantic_maintenance_works_again", "reason", "failures", "seconds") == [
        ("DEPENDENCY_UNAVAILABLE", failures, 70.0)
    ]
    assert lines_of(logs, "semantic_maintenance_failed", "reason", "times")[0] == ("DEPENDENCY_UNAVAILABLE", 1)


async def test_another_cause_is_told_at_once_and_the_first_is_no_new_one_after_it(
    semantic: SemanticWorld, backing: Backing, logs: Lines
) -> None:
    await semantic.open()
    async with maintained(semantic) as maintenance:
        for error in (away(), DomainError(Reason.NOT_SERVING, "the schema does not fit"), away()):
            backing.records.before["due"] = fails(error)
            await failed_looks(maintenance, 5)
        reasons = lines_of(logs, "semantic_maintenance_failed", "reason")
        assert reasons == [("DEPENDENCY_UNAVAILABLE",), ("NOT_SERVING",)]
        del backing.records.before["due"]
        await wait_until_async(partial(has_told, logs, "semantic_maintenance_works_again", 2))


async def test_an_outage_after_one_that_is_over_is_told_at_once(
    semantic: SemanticWorld, backing: Backing, logs: Lines
) -> None:
    await semantic.open()
    async with maintained(semantic) as maintenance:
        for times in (1, 2):
            backing.records.before["due"] = fails(away())
            await failed_looks(maintenance, 5)
            assert len(lines_of(logs, "semantic_maintenance_failed")) == times
            del backing.records.before["due"]
            await wait_until_async(partial(has_told, logs, "semantic_maintenance_works_again", times))


async def test_a_refresh_that_fails_is_over_when_it_comes_through_and_not_when_a_look_does(
    semantic: SemanticWorld, logs: Lines
) -> None:
    await semantic.open()
    await semantic.remember(TEA, "a")
    semantic.embedder.fail_next()
    async with maintained(semantic) as maintenance:
        await failed_looks(maintenance, 1)
        await wait_until_async(looked(semantic))
        assert not lines_of(logs, "semantic_maintenance_works_again")
        assert maintenance.health().phase is MaintenancePhase.FAILING
        semantic.pass_seconds(2.0)
        await wait_until_async(lambda: lines_of(logs, "semantic_maintenance_works_again"))
    assert lines_of(logs, "semantic_maintenance_works_again", "cause", "failures") == [("PROVIDER_FAILED", 1)]


async def test_the_same_defect_at_every_look_is_not_told_at_every_look(
    semantic: SemanticWorld, backing: Backing, logs: Lines
) -> None:
    await semantic.open()
    async with maintained(semantic) as maintenance:
        backing.records.before["due"] = fails(KeyError("column"))
        await failed_looks(maintenance, 5)
        backing.records.before["due"] = fails(ValueError("row"))
        await failed_looks(maintenance, 5)
    defects = lines_of(logs, "semantic_maintenance_defect", "exceptions")
    assert defects == [(["builtins.KeyError"],), (["builtins.ValueError"],)]
    assert all(frames for (frames,) in lines_of(logs, "semantic_maintenance_defect", "frames"))
