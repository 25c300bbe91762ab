"""Waiters wake at the next change of their namespace, or by themselves."""

import asyncio

import pytest

from durable_memory.adapters.change_signal import ChangeSignal

A, B = b"a" * 32, b"b" * 32


async def _waiting(signal: ChangeSignal, *keys: bytes) -> list[asyncio.Task[None]]:
    waiters = [asyncio.create_task(signal.wait(key)) for key in keys]
    await asyncio.sleep(0)
    return waiters


async def test_a_change_wakes_all_who_wait_for_it_and_nobody_else():
    signal = ChangeSignal()
    *first, other = await _waiting(signal, A, A, B)
    signal.notify(A)
    await asyncio.gather(*first)
    assert not other.done()
    signal.notify(B)
    await other


async def test_everybody_wakes_at_the_end():
    signal = ChangeSignal()
    waiters = await _waiting(signal, A, B)
    signal.notify_all()
    await asyncio.gather(*waiters)


async def test_a_wait_ends_by_itself():
    await asyncio.wait_for(ChangeSignal(most_seconds=0.01).wait(A), 60.0)


async def test_a_cancelled_wait_is_forgotten():
    signal = ChangeSignal()
    (waiter,) = await _waiting(signal, A)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert signal._waiters == {}


async def test_notifying_nobody_and_twice_is_harmless():
    signal = ChangeSignal()
    signal.notify(A)
    (waiter,) = await _waiting(signal, A)
    signal.notify(A)
    signal.notify(A)
    signal.notify_all()
    await waiter
    assert signal._waiters == {}
