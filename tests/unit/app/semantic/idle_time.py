"""Time that passes only while there is nothing else to do: what a deadline decides is the same on every machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest


class IdleTime:
    """The time of an event loop, and `Clock` on it.

    Where the loop would wait for a timer, it is that late at once; for a thread that works, it waits. Timers that are
    due at different times are never found due together, however long a step has taken.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, start: datetime) -> None:
        selector: Any = loop._selector  # type: ignore[attr-defined]
        self._select = selector.select
        self._run_in_executor = loop.run_in_executor
        self._working = 0
        self._start = start
        self._began = self._now = loop.time()

    @classmethod
    def of_this_loop(cls, start: datetime, monkeypatch: pytest.MonkeyPatch) -> IdleTime:
        """From here on, until the patches are undone."""
        loop: Any = asyncio.get_running_loop()
        own = cls(loop, start)
        monkeypatch.setattr(loop, "time", own.monotonic)
        monkeypatch.setattr(loop, "run_in_executor", own.run_in_executor)
        monkeypatch.setattr(loop._selector, "select", own.select)
        return own

    def monotonic(self) -> float:
        return self._now

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._now - self._began)

    def run_in_executor(self, executor: Any, work: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        self._working += 1
        done: asyncio.Future[Any] = self._run_in_executor(executor, work, *arguments)
        done.add_done_callback(self._worked)
        return done

    def _worked(self, done: asyncio.Future[Any]) -> None:
        self._working -= 1

    def select(self, timeout: float | None = None) -> Any:
        """What the loop's selector does, but for the waiting."""
        if timeout is None or timeout <= 0 or self._working:
            return self._select(None if self._working and timeout else timeout)
        ready = self._select(0)
        if not ready:
            self._now += timeout
        return ready
