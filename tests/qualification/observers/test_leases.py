"""The observer ends, whatever its driver makes of that."""

import asyncio

import pytest

from tests.qualification.observers import leases
from tests.qualification.observers.leases import LeaseObserver
from tests.qualification.report.timeline import Timeline


async def test_it_ends_although_its_driver_swallows_cancellations(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(leases, "_END_AGAIN_SECONDS", 0.01)
    connected, swallowed = asyncio.Event(), asyncio.Event()

    async def swallows(self: LeaseObserver, name: str, port: int) -> None:
        connected.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            swallowed.set()

    monkeypatch.setattr(LeaseObserver, "_connected", swallows)
    async with asyncio.timeout(60):
        async with LeaseObserver({"redis-1": 1}, Timeline()):
            await connected.wait()
    assert swallowed.is_set()
