"""A refresh goes at its own pace, whoever watches it, and ends with its watcher."""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime

import pytest

from durable_memory.app.semantic.refresh_progress import RefreshPhase, RefreshProgress
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.ports.semantic_records import Receipt, RefreshWork
from durable_memory.rpc.refresh_steps import steps_of

RECEIPT = Receipt(
    authority_digest="a" * 64,
    fence=1,
    index_revision=1,
    history_digest="b" * 64,
    source_history_id="history-1",
    source_revision=1,
    active_count=0,
    indexed_count=0,
    consistency="INDEX_REVISION_CAS",
    work=RefreshWork(),
    at=datetime(2030, 1, 1, tzinfo=UTC),
)


def embedding(done):
    return RefreshProgress(phase=RefreshPhase.EMBEDDING, done=done, total=1_000)


async def test_a_slow_reader_misses_steps_and_never_holds_up_the_refresh():
    finished = asyncio.Event()

    async def refresh(report):
        for done in range(1_000):
            await report(embedding(done))
        finished.set()
        return RECEIPT

    async with aclosing(steps_of(refresh)) as steps:
        first = await anext(steps)
        await finished.wait()
        rest = [step async for step in steps]

    assert isinstance(first, RefreshProgress)
    assert rest == [RECEIPT]


async def test_the_last_step_before_the_end_is_told():
    async def refresh(report):
        await report(embedding(1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await report(RefreshProgress(phase=RefreshPhase.PUBLISHED))
        return RECEIPT

    async with aclosing(steps_of(refresh)) as steps:
        told = [step async for step in steps]

    assert told == [embedding(1), RefreshProgress(phase=RefreshPhase.PUBLISHED), RECEIPT]


async def test_what_the_refresh_raises_is_raised_to_its_watcher():
    async def refresh(report):
        await report(embedding(1))
        raise DomainError(Reason.SOURCE_DRIFT, "it moved")

    async with aclosing(steps_of(refresh)) as steps:
        assert await anext(steps) == embedding(1)
        with pytest.raises(DomainError, match="it moved"):
            await anext(steps)


async def test_the_refresh_has_ended_when_its_watcher_has_left():
    ended = []

    async def refresh(report):
        await report(embedding(1))
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)
        raise AssertionError("nobody sets the event")

    async with aclosing(steps_of(refresh)) as steps:
        await anext(steps)

    assert ended == [True]
