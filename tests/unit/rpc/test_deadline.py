"""How long a call may run, and that who serves it knows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from durable_memory.rpc.interceptors.call import IncomingCall, current_end, enter
from durable_memory.rpc.interceptors.deadline import DeadlineLayer

LAYER = DeadlineLayer(default_seconds=10.0, maximum_seconds=120.0, maximum_upload_seconds=900.0)


class Waiting:
    """The context of a caller who waits for so many seconds."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds

    def time_remaining(self) -> float | None:
        return self._seconds


@pytest.mark.parametrize(("remaining", "bound"), [(3.0, 3.0), (None, 10.0), (500.0, 120.0)])
async def test_a_call_knows_when_it_is_cancelled_at_the_latest(remaining: float | None, bound: float) -> None:
    context: Any = Waiting(remaining)
    call = IncomingCall(method="/durablememory.v1.RecallService/ActiveRecall", streaming=False, context=context)
    before = asyncio.get_running_loop().time()

    async def served() -> float | None:
        return current_end()

    enter(call)
    ends_at = await LAYER.around(call, served)
    assert before + bound <= ends_at <= asyncio.get_running_loop().time() + bound


@pytest.mark.parametrize(("remaining", "bound"), [(30.0, 30.0), (None, 900.0), (5_000.0, 900.0)])
async def test_what_only_the_caller_streams_is_answered_within_a_bound_of_its_own(
    remaining: float | None, bound: float
) -> None:
    context: Any = Waiting(remaining)
    call = IncomingCall(method="/x/ImportNamespace", streaming=True, uploading=True, context=context)
    before = asyncio.get_running_loop().time()

    async def served() -> float | None:
        return call.ends_at

    ends_at = await LAYER.around(call, served)
    assert before + bound <= ends_at <= asyncio.get_running_loop().time() + bound
