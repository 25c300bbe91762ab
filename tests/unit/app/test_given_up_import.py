"""An import whose caller has gone is over when nothing holds its records any more."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from durable_memory.app import transfer
from durable_memory.app.transfer import TransferService
from tests.unit.app.world import World


async def test_what_is_given_up_while_it_is_verified_ends_with_the_verification(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.remember("tea", "a")
    records = [record async for record in world.app.transfer.export(world.call)]
    reached, go_on = threading.Event(), threading.Event()

    def slow(*_: Any) -> Any:
        reached.set()
        assert go_on.wait(60)
        raise AssertionError("nobody hears of this")

    monkeypatch.setattr(transfer, "verified_copy", slow)
    service: TransferService = world.app.transfer
    importing = asyncio.create_task(service.import_(world.request("ImportNamespace"), records))
    await asyncio.to_thread(reached.wait, 60)
    importing.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not importing.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await importing
