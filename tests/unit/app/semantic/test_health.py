"""What a process says of semantic recall as a whole: what it met, and whether that is still so."""

import asyncio

import pytest
from structlog.testing import capture_logs

from durable_memory.app.recall_result import DegradationReason
from durable_memory.app.semantic.health import REMEMBERED_SECONDS
from durable_memory.domain.errors import DomainError, Reason, dependency_unavailable, not_serving
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.refusals import manifest_unreadable
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure
from tests.unit.app.semantic.semantic_world import ABOUT_TEA, MONEY, RAIN, TEA
from tests.unit.app.stores import Gate

_PROBE_SECONDS = 60.0


async def _check(world) -> bool:
    await world.runtime.health.check(timeout_seconds=_PROBE_SECONDS)
    assert world.runtime.state().serving is world.runtime.health.serving
    return bool(world.runtime.health.serving)


def _fail(world, failure=EmbeddingFailure.UNREACHABLE, times: int = 1) -> None:
    world.embedder.failures.extend(EmbeddingError(failure, retryable=True) for _ in range(times))


async def _reason(world, query: str = ABOUT_TEA) -> DegradationReason | None:
    degradation = (await world.answer(query)).degradation
    return None if degradation is None else degradation.reason


def _fails(error: Exception):
    async def hook() -> None:
        raise error

    return hook


async def test_a_process_whose_provider_has_not_answered_yet_does_not_serve(semantic):
    assert await _check(semantic)
    semantic.runtime._current.value = None
    assert not await _check(semantic)


async def test_nothing_is_asked_of_a_provider_that_works(semantic):
    await semantic.indexed(TEA)
    await semantic.answer(ABOUT_TEA)
    queries, calls = list(semantic.embedder.queries), semantic.provider_calls()

    assert await _check(semantic)
    assert (semantic.embedder.queries, semantic.provider_calls()) == (queries, calls)


async def test_a_failure_that_passes_is_not_held_against_the_provider(semantic):
    await semantic.indexed(TEA)
    _fail(semantic)
    assert await _reason(semantic) is DegradationReason.PROVIDER_FAILED

    calls = semantic.provider_calls()
    assert await _check(semantic)
    assert semantic.provider_calls() == calls + 1  # the failure was looked into, once
    assert await _check(semantic)
    assert semantic.provider_calls() == calls + 1


async def test_a_provider_that_goes_on_failing_is_said_until_it_answers_again(semantic):
    await semantic.indexed(TEA)
    _fail(semantic, times=4)
    assert await _reason(semantic) is DegradationReason.PROVIDER_FAILED

    assert not await _check(semantic)
    assert not semantic.runtime.state().embedder_available
    assert semantic.runtime.state().index_available
    assert not await _check(semantic)
    semantic.embedder.failures.clear()
    assert await _check(semantic)  # without any call from outside


async def test_a_provider_that_limits_the_rate_is_well(semantic):
    await semantic.indexed(TEA)
    _fail(semantic, EmbeddingFailure.RATE_LIMITED, times=9)
    assert await _reason(semantic) is DegradationReason.PROVIDER_FAILED

    assert await _check(semantic)
    assert len(semantic.embedder.failures) == 8  # and it is left alone


@pytest.mark.parametrize(
    "error",
    [dependency_unavailable("gone"), not_serving("index", "the policy is not noeviction"), TimeoutError()],
    ids=["away", "evicts", "silent"],
)
async def test_an_index_that_cannot_be_used_is_said_until_it_can(semantic, backing, error):
    backing.index.before["check"] = _fails(error)
    assert not await _check(semantic)
    assert not semantic.runtime.state().index_available
    del backing.index.before["check"]
    assert await _check(semantic)


async def test_an_index_that_never_answers_does_not_hold_health_up(semantic, backing):
    backing.index.before["check"] = Gate()
    await semantic.runtime.health.check(timeout_seconds=0.01)
    assert not semantic.runtime.health.serving


async def test_a_regressed_index_is_said_as_soon_as_it_is_met_and_until_it_is_rebuilt(semantic, backing):
    await semantic.indexed(TEA)
    backing.lose_index()
    waiting = asyncio.create_task(semantic.runtime.health.wait(3_600.0))
    assert await _reason(semantic) is DegradationReason.INDEX_REGRESSED

    await waiting  # whoever waits is told, and not at the end of their time
    assert semantic.runtime.state().unserved_partitions == {"REGRESSED": 1}
    assert not await _check(semantic)
    await semantic.refresh()
    assert await _check(semantic)
    assert semantic.runtime.state().unserved_partitions == {}


async def test_what_another_process_has_rebuilt_is_noticed_without_a_call(semantic, successor, backing):
    await semantic.indexed(TEA)
    backing.lose_index()
    await semantic.status()
    assert not await _check(semantic)

    await successor.refresh()
    assert await _check(semantic)


async def test_a_damaged_segment_is_said_until_the_partition_is_rebuilt(semantic, successor, backing):
    await semantic.indexed(TEA)
    backing.damage_segments()
    assert await _reason(successor) is DegradationReason.INDEX_CORRUPTED

    assert successor.runtime.state().unserved_partitions == {"CORRUPTED": 1}
    assert not await _check(successor)
    assert not await _check(successor)  # the manifest looks as well as ever
    await successor.refresh()
    assert await _check(successor)


async def test_a_finding_is_counted_once_however_often_it_is_met(semantic, successor, backing, monkeypatch):
    found: list[str] = []
    monkeypatch.setattr(successor.runtime.health._observer, "index_unserved", found.append)
    await semantic.indexed(TEA)
    backing.damage_segments()
    for _ in range(3):
        assert await _reason(successor) is DegradationReason.INDEX_CORRUPTED
    backing.lose_index()
    for _ in range(3):
        await successor.status()
    assert found == ["CORRUPTED", "REGRESSED"]


async def test_a_namespace_that_nobody_asks_for_any_more_does_not_keep_health_down(semantic, backing):
    await semantic.indexed(TEA)
    backing.lose_index()
    await semantic.status()
    semantic.pass_seconds(REMEMBERED_SECONDS - 1)
    assert not await _check(semantic)
    await semantic.status()
    semantic.pass_seconds(REMEMBERED_SECONDS - 1)
    assert not await _check(semantic)  # it was asked for in between
    semantic.pass_seconds(2)
    assert await _check(semantic)


async def test_an_index_that_cannot_be_read_is_not_taken_for_mended(semantic, backing):
    await semantic.indexed(TEA)
    backing.lose_index()
    await semantic.status()
    backing.index.before["manifest"] = _fails(dependency_unavailable("gone"))
    assert not await _check(semantic)
    assert semantic.runtime.state().unserved_partitions == {"REGRESSED": 1}


async def test_a_partition_that_cannot_be_read_keeps_no_other_from_being_looked_at(
    semantic, successor, backing, monkeypatch
):
    await semantic.indexed(TEA)
    backing.lose_index()
    await semantic.status()
    other = semantic.partition_of(Namespace("acme", "user-1", "other"))
    read = backing.index._store.manifest

    async def manifest(partition):
        if partition == other:
            raise manifest_unreadable()
        return await read(partition)

    monkeypatch.setattr(backing.index._store, "manifest", manifest)
    semantic.runtime.health.unreadable(other)
    assert semantic.runtime.state().unserved_partitions == {"REGRESSED": 1, "CORRUPTED": 1}
    await successor.refresh()
    assert not await _check(semantic)
    assert semantic.runtime.state().unserved_partitions == {"CORRUPTED": 1}


async def test_memories_without_a_vector_are_counted_while_the_provider_fails(semantic):
    await semantic.indexed(TEA)
    assert semantic.runtime.state().unembedded_nodes == 0
    await semantic.remember(RAIN, "b")
    await semantic.remember(MONEY, "c")
    semantic.embedder.fail_next()
    with pytest.raises(DomainError):
        await semantic.refresh()

    assert semantic.runtime.state().unembedded_nodes == 2
    await semantic.refresh()
    assert semantic.runtime.state().unembedded_nodes == 0


async def test_a_recall_counts_what_it_could_not_find_by_meaning(semantic):
    await semantic.indexed(TEA)
    await semantic.remember(RAIN, "b")
    await semantic.answer(ABOUT_TEA)
    assert semantic.runtime.state().unembedded_nodes == 1
    semantic.pass_seconds(REMEMBERED_SECONDS + 1)
    assert semantic.runtime.state().unembedded_nodes == 0


async def test_a_rebuild_that_fails_has_taken_no_vector_away(semantic, backing):
    await semantic.indexed(TEA)
    backing.index.before["stage"] = _fails(dependency_unavailable("gone"))
    with pytest.raises(DomainError):
        await semantic.refresh(rebuild=True)
    assert semantic.runtime.state().unembedded_nodes == 0


async def test_the_state_tells_what_is_held_and_what_it_cost(semantic):
    await semantic.indexed(TEA, RAIN)
    await semantic.answer(ABOUT_TEA)
    state = semantic.app.state()

    assert (state.views.views, state.views.loads) == (1, 1)
    assert state.semantic is not None
    assert (state.semantic.vector_views, state.semantic.vectors) == (1, 2)
    assert state.semantic.vector_bytes > 2 * 8 * 4
    assert (state.semantic.usage.calls, state.semantic.usage.inputs) == (2, 3)
    await semantic.answer("something else")
    assert state.semantic.usage.calls == 2  # a state does not change any more


async def test_what_is_wrong_with_the_index_is_logged_when_it_is_found_and_when_it_changes(semantic):
    with capture_logs() as logs:
        for problem in ("no sentinel answers", "no sentinel answers", "a replica answers", None):
            semantic.backing.index.before.clear()
            if problem is not None:
                error = DomainError(Reason.DEPENDENCY_UNAVAILABLE, problem, dependency="index")
                semantic.backing.index.before["check"] = _fails(error)
            assert await _check(semantic) is (problem is None)
    told = [entry.get("index_problem") for entry in logs if entry["event"] == "semantic_dependencies"]
    assert told == ["no sentinel answers", "a replica answers", None]
