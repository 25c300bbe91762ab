"""Waiting for a condition with a deadline: the only place of the tests that lets time pass."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")
What = str | Callable[[], str]

_INTERVAL_SECONDS = 0.02
_PATIENCE_SECONDS = 30.0
"""Of a machine that has other things to do: how soon something happens is not judged here."""


class WaitTimeoutError(AssertionError):
    """The condition did not become true before its deadline."""


def wait_until(
    condition: Callable[[], T],
    timeout: float = _PATIENCE_SECONDS,
    *,
    what: What = "",
    interval: float = _INTERVAL_SECONDS,
) -> T:
    """Poll ``condition`` until it is truthy and return its value; ``timeout`` and ``interval`` are in seconds.

    ``what`` names the awaited condition in the error; a function is asked when the error is made. An exception
    of the condition is not caught.
    """
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() >= deadline:
            raise WaitTimeoutError(_message(condition, timeout, what))
        time.sleep(interval)
    return value


@overload
async def wait_until_async(
    condition: Callable[[], Awaitable[T]], timeout: float = ..., *, what: What = ..., interval: float = ...
) -> T: ...
@overload
async def wait_until_async(
    condition: Callable[[], T], timeout: float = ..., *, what: What = ..., interval: float = ...
) -> T: ...
async def wait_until_async(
    condition: Callable[[], Any],
    timeout: float = _PATIENCE_SECONDS,
    *,
    what: What = "",
    interval: float = _INTERVAL_SECONDS,
) -> Any:
    """Like :func:`wait_until` without blocking the event loop; the condition may be a coroutine function."""
    deadline = time.monotonic() + timeout
    while True:
        answer = condition()
        value = await answer if inspect.isawaitable(answer) else answer
        if value:
            return value
        if time.monotonic() >= deadline:
            raise WaitTimeoutError(_message(condition, timeout, what))
        await asyncio.sleep(interval)


def _message(condition: Callable[[], object], timeout: float, what: What) -> str:
    name = what() if callable(what) else what
    return f"not within {timeout:g} s: {name or getattr(condition, '__qualname__', repr(condition))}"
