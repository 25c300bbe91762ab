"""An error of a refresh says that nothing was published only where that is known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from durable_memory.app.semantic.partition_state import IndexState
from durable_memory.app.semantic.refresh_limits import RefreshLimits
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.refusals import index_revision_conflict, lease_fenced
from durable_memory.domain.semantic.segment import FloatWidth
from tests.fixture_embedder import DIMENSION
from tests.unit.app.semantic.semantic_world import (
    ABOUT_RAIN,
    ABOUT_TEA,
    RAIN,
    TEA,
    Backing,
    SemanticWorld,
    found_ids,
    semantic_process,
)
from tests.unit.app.stores import Gate, fails_once
from tests.unit.app.world import refused

UNKNOWN = DomainError(Reason.OUTCOME_UNKNOWN, "no answer came")
LOST = DomainError(Reason.DEPENDENCY_UNAVAILABLE, "nobody is there")


def fails(*errors: DomainError) -> Callable[[], Awaitable[None]]:
    """A hook that raises each of these once."""
    left = list(errors)

    async def hook() -> None:
        if left:
            raise left.pop(0)

    return hook


@pytest.mark.parametrize(
    "errors",
    [
        (UNKNOWN, LOST, LOST),
        (LOST, UNKNOWN, LOST),
        (UNKNOWN, lease_fenced(1, 2)),
        (UNKNOWN, index_revision_conflict(0, 1)),
    ],
    ids=lambda errors: "-".join(error.reason.value for error in errors),
)
async def test_what_comes_after_an_answer_that_was_lost_cannot_say_that_nothing_was_published(
    semantic: SemanticWorld, backing: Backing, errors: tuple[DomainError, ...]
) -> None:
    await semantic.open()
    await semantic.remember(TEA, "a")
    backing.index.before["publish"] = fails(*errors)
    with refused(Reason.OUTCOME_UNKNOWN):
        await semantic.refresh()
    backing.index.before.clear()
    assert (await semantic.refresh()).indexed_count == 1


async def test_where_no_attempt_was_made_nothing_was_published(semantic: SemanticWorld, backing: Backing) -> None:
    await semantic.open()
    await semantic.remember(TEA, "a")
    backing.index.before["publish"] = fails(LOST, LOST, LOST)
    with refused(Reason.DEPENDENCY_UNAVAILABLE):
        await semantic.refresh()


@pytest.mark.parametrize("error", [LOST, lease_fenced(1, 2)])
async def test_a_clearing_that_is_not_on_record_may_have_happened(
    semantic: SemanticWorld, backing: Backing, error: DomainError
) -> None:
    await semantic.indexed(TEA)
    backing.records.before["write_receipt"] = fails_once(error)
    with refused(Reason.OUTCOME_UNKNOWN):
        await semantic.semantic.clear(semantic.call)
    assert (await semantic.status()).manifest is None


# The width of the floats


async def test_another_width_in_the_settings_is_taken_up_by_a_rebuild_and_holds_up_no_refresh(backing: Backing) -> None:
    async with semantic_process(backing, "wide") as wide:
        await wide.indexed(TEA)
    async with semantic_process(backing, "narrow", limits=RefreshLimits(width=FloatWidth.FLOAT16)) as narrow:
        await narrow.remember(RAIN, "b")
        assert (await narrow.refresh()).indexed_count == 2
        manifest = (await narrow.status()).manifest
        assert manifest is not None
        assert (manifest.index_revision, manifest.descriptor.width) == (2, FloatWidth.FLOAT32)
        receipt = await narrow.refresh(rebuild=True)
        assert (receipt.indexed_count, receipt.work.provider_calls) == (2, 0)
        status = await narrow.status()
        assert status.manifest is not None
        assert (status.state, status.manifest.descriptor.width) == (IndexState.CURRENT, FloatWidth.FLOAT16)
        assert found_ids(await narrow.answer(ABOUT_TEA)) == ["a"]
        assert found_ids(await narrow.answer(ABOUT_RAIN)) == ["b"]


@pytest.fixture
async def narrowing(backing: Backing) -> AsyncIterator[SemanticWorld]:
    """A process that would store an index of wide floats in narrow ones, were it told to write it anew."""
    async with semantic_process(backing, "wide") as wide:
        await wide.indexed(TEA)
    async with semantic_process(backing, "narrow", limits=RefreshLimits(width=FloatWidth.FLOAT16)) as narrow:
        yield narrow


async def width(world: SemanticWorld) -> FloatWidth:
    """That of the floats of an index that serves."""
    status = await world.status()
    assert status.manifest is not None
    assert status.state is IndexState.CURRENT
    assert found_ids(await world.answer(ABOUT_TEA)) == ["a"]
    return status.manifest.descriptor.width


async def test_a_rebuild_in_another_width_that_would_take_too_much_leaves_the_old_index(backing: Backing) -> None:
    async with semantic_process(backing, "narrow", limits=RefreshLimits(width=FloatWidth.FLOAT16)) as narrow:
        await narrow.indexed(TEA)
    fits_vectors_alone = RefreshLimits(max_bytes=DIMENSION * FloatWidth.FLOAT32.nbytes + 1)
    async with semantic_process(backing, "wide", limits=fits_vectors_alone) as wide:
        with refused(Reason.QUOTA_EXCEEDED):
            await wide.refresh(rebuild=True)
        assert await width(wide) is FloatWidth.FLOAT16


@pytest.mark.parametrize("step", ["stage", "write_intent"])
async def test_a_rebuild_in_another_width_that_is_left_or_fails_on_its_way_leaves_the_old_index(
    narrowing: SemanticWorld, backing: Backing, step: str
) -> None:
    hooked = backing.index if step == "stage" else backing.records
    gate = hooked.before[step] = Gate()
    work = asyncio.create_task(narrowing.refresh(rebuild=True))
    await gate.reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    hooked.before[step] = fails_once(LOST)
    with refused(Reason.DEPENDENCY_UNAVAILABLE):
        await narrowing.refresh(rebuild=True)
    assert await width(narrowing) is FloatWidth.FLOAT32


async def test_a_rebuild_in_another_width_that_is_left_when_the_old_index_goes_comes_to_its_end(
    narrowing: SemanticWorld, backing: Backing
) -> None:
    gate = backing.index.before["clear"] = Gate()
    work = asyncio.create_task(narrowing.refresh(rebuild=True))
    await gate.reached.wait()
    work.cancel()
    gate.open()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert await width(narrowing) is FloatWidth.FLOAT16


async def test_a_rebuild_in_another_width_that_ends_between_the_two_indexes_does_not_say_that_nothing_happened(
    narrowing: SemanticWorld, backing: Backing
) -> None:
    backing.index.before["publish"] = fails(LOST, LOST, LOST)
    with refused(Reason.OUTCOME_UNKNOWN):
        await narrowing.refresh(rebuild=True)
    assert await narrowing.state() is IndexState.REGRESSED
    assert (await narrowing.refresh()).work.provider_calls == 0
    assert await width(narrowing) is FloatWidth.FLOAT16


async def test_a_rebuild_in_another_width_whose_staged_segments_vanish_stages_them_again(
    narrowing: SemanticWorld, backing: Backing
) -> None:
    left = [None]

    async def vanish() -> None:
        if left:
            left.pop()
            backing.drop_segments(but=())

    backing.index.before["publish"] = vanish
    assert (await narrowing.refresh(rebuild=True)).indexed_count == 1
    assert await width(narrowing) is FloatWidth.FLOAT16


@pytest.mark.parametrize("error", [LOST, lease_fenced(1, 2)])
async def test_a_rebuild_in_another_width_that_fails_when_it_stages_again_does_not_say_that_nothing_happened(
    narrowing: SemanticWorld, backing: Backing, error: DomainError
) -> None:
    async def vanish() -> None:
        backing.index.before["publish"] = fails()
        backing.index.before["stage"] = fails_once(error)
        backing.drop_segments(but=())

    backing.index.before["publish"] = vanish
    with refused(Reason.OUTCOME_UNKNOWN):
        await narrowing.refresh(rebuild=True)
    assert (await narrowing.refresh()).indexed_count == 1
    assert await width(narrowing) is FloatWidth.FLOAT16
