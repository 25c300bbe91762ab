"""Counting what has no vector: one look at a time, and none that keeps the event loop from everything else."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from durable_memory.app.semantic.unindexed_counts import UnindexedCounts
from durable_memory.app.views.view import ViewKey
from tests.processes.polling import wait_until_async

_PARTITION = cast(Any, SimpleNamespace(name="p", namespace="n"))


class _Vectors:
    """Of a publication that covered revision 1."""

    key = "vectors"
    manifest = SimpleNamespace(source_history_id="h", source_revision=1)

    def __len__(self) -> int:
        return 2


class _Store:
    """Answers when it is told to; nothing has changed."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[list[Any]]] = []

    async def changed_nodes(self, *_: object, **__: object) -> list[Any]:
        self.asked.append(asyncio.get_running_loop().create_future())
        return await self.asked[-1]

    def answer(self) -> bool:
        """Everything that waits; return whether anything did."""
        waiting = [asked for asked in self.asked if not asked.done()]
        for asked in waiting:
            asked.set_result([])
        return bool(waiting)

    async def list_change_sets(self, *_: object, **__: object) -> list[Any]:
        return []


def _view(revision: int) -> Any:
    return SimpleNamespace(key=ViewKey("h", revision, f"chain {revision}"), index=[1, 2, 3])


async def test_who_comes_for_another_view_in_the_moment_in_which_a_look_ends_has_one_made():
    """Before, it waited without a pause for the look that was done, and so nothing else was ever done."""
    store = _Store()
    counts = UnindexedCounts(cast(Any, store))
    first = asyncio.create_task(counts.of(_PARTITION, _view(2), cast(Any, _Vectors())))
    await wait_until_async(lambda: len(store.asked) == 1)
    store.answer()
    # Its first step comes right after the last one of the look, before anybody has been told that this is over.
    second = asyncio.create_task(counts.of(_PARTITION, _view(3), cast(Any, _Vectors())))
    await wait_until_async(lambda: len(store.asked) == 2)
    store.answer()
    assert await second == 1
    # Who came first finds what is known now, or has another look made.
    await wait_until_async(lambda: first.done() or store.answer())
    assert await first == 1
    await counts.close()
