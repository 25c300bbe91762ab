"""Which server is the primary: never one in recovery, and never one that another has overtaken.

A promotion starts a new timeline. A former primary that still answers has a lower one than any process has seen that
talked to its successor, and what it says is out of date. (That nobody talks to it alone is what fencing is for.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import structlog

from durable_memory.domain.errors import dependency_unavailable

_log = structlog.stdlib.get_logger(__name__)


class ServerRow(Protocol):
    """Columns `in_recovery` and `timeline`, the latter as 8 hexadecimal digits, or None in recovery."""

    def __getitem__(self, column: str, /) -> object: ...


class Primary:
    """The highest timeline seen so far, and the history id that the store had there."""

    def __init__(self, on_promotion: Callable[[], None]) -> None:
        """`on_promotion` is called when a higher timeline shows up after the first."""
        self._on_promotion = on_promotion
        self.timeline = 0
        self.history_id = ""

    def check(self, server: ServerRow) -> None:
        """Raises: DEPENDENCY_UNAVAILABLE if what this server says may be out of date."""
        if server["in_recovery"]:
            raise dependency_unavailable("the database server is a standby")
        self.saw(int(str(server["timeline"]), 16))

    def saw(self, timeline: int) -> None:
        """A server that takes writes is on this one. Raises: DEPENDENCY_UNAVAILABLE if another was on a higher one."""
        if timeline < self.timeline:
            raise dependency_unavailable("the database server has been replaced by another")
        if timeline > self.timeline:
            first = self.timeline == 0
            self.timeline = timeline
            if not first:
                _log.warning("primary_changed", timeline=timeline)
                self._on_promotion()
