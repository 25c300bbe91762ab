"""Stores that a test can hold up, make fail, or take back in time."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from durable_memory.adapters.memory import MemoryStore
from durable_memory.domain.namespace import Namespace

Hook = Callable[[], Awaitable[None]]


class HookedStore:
    """A store whose calls are counted, and may wait or fail before they are made."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()
        self.before: dict[str, Hook] = {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not asyncio.iscoroutinefunction(method):
            return method

        async def call(*arguments: Any, **named: Any) -> Any:
            self.calls[name] += 1
            hook = self.before.get(name)
            if hook is not None:
                await hook()
            return await method(*arguments, **named)

        return call


class Gate:
    """A hook at which callers wait until it is opened; `reached` tells that one does."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._open = asyncio.Event()

    async def __call__(self) -> None:
        self.reached.set()
        await self._open.wait()

    def open(self) -> None:
        self._open.set()


def fails_once(error: Exception) -> Hook:
    """A hook that raises the first time."""
    left = [error]

    async def hook() -> None:
        if left:
            raise left.pop()

    return hook


class Rewinder:
    """Takes one namespace of a memory store back to what it was, as a store that lost its last writes would be."""

    def __init__(self, store: MemoryStore, namespace: Namespace) -> None:
        self._store = store
        self._key = namespace
        self._kept = copy.deepcopy(store._partitions[self._key])

    def rewind(self) -> None:
        self._store._partitions[self._key] = copy.deepcopy(self._kept)

    def rename_history(self, history_id: str) -> None:
        """The same state under another history id, as after a restore."""
        partition = self._store._partitions[self._key]
        partition.head = replace(partition.head, history_id=history_id)
