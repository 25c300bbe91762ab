"""Puts on the timeline who is primary and who is not, whoever made it so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Self

from tests.qualification.report.timeline import Event, Lane, Timeline

_INTERVAL_SECONDS: Final = 0.25

Roles = Callable[[], Mapping[str, str | None]]
"""What each process is now, by name; None: it does not run. It is called in a thread, and may take its time."""


class RoleWatch:
    """Looks again and again while it is open; what lasts less than a quarter of a second may be missed."""

    def __init__(self, timeline: Timeline, roles: Roles) -> None:
        self._timeline = timeline
        self._roles = roles
        self._open: dict[str, Event] = {}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.look()
        self._task = asyncio.create_task(self._run(), name="role-watch")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for name in list(self._open):
            self._end(name)

    async def look(self) -> None:
        """End what is over, and begin what is new."""
        for name, role in (await asyncio.to_thread(self._roles)).items():
            event = self._open.get(name)
            if event is not None and event.label != role:
                self._end(name)
                event = None
            if event is None and role is not None:
                self._open[name] = self._timeline.mark(Lane.PROCESS, role, key=name)

    def _end(self, name: str) -> None:
        self._open.pop(name).ended = time.monotonic()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_INTERVAL_SECONDS)
            await self.look()
