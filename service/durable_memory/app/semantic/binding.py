"""Which documents of a namespace view the records of a vector view are of.

A vector counts only if its node is ACTIVE in the namespace view and the text that was embedded is the node's present
one. A record of the present revision is of its text, for revisions never change. One of an earlier revision still may
be, where only labels, relations or evidence moved: the digest of the text decides, and is looked at when the record is
a candidate.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.semantic.vector_view import Block, VectorView
from durable_memory.app.views.index import LexicalIndex
from durable_memory.app.views.segment import Segment
from durable_memory.domain.lexical.query import LexicalFilter
from durable_memory.domain.semantic.segment import VectorRecord

_INLINE_LOOKUPS: Final = 20_000


class RecordState(IntEnum):
    """What a record is worth."""

    GONE = 0
    """The index holds it no longer, or its node is not ACTIVE."""
    MOVED = 1
    """It is of an earlier revision; whether its text is the present one has not been looked at."""
    OUTDATED = 2
    CURRENT = 3


@dataclass(slots=True, eq=False)
class Binding:
    """One pair of views; valid for exactly these objects.

    Records are numbered through all blocks of the vector view. `states` changes as digests are looked at, and only from
    MOVED to what a record of these two views is for ever.

    Attributes:
        live: bool [records], those that the vector view counts.
        numbers: intp [records], the document in the index; -1 where the node is not ACTIVE.
        states: uint8 [records], `RecordState`.
        revisions: int64 [documents of the index].
        starts: intp [blocks], the number of each block's first record.
    """

    index: weakref.ref[LexicalIndex]
    live: NDArray[np.bool_]
    numbers: NDArray[np.intp]
    states: NDArray[np.uint8]
    revisions: NDArray[np.int64]
    starts: NDArray[np.intp]

    def admitted(self, vectors: VectorView, index: LexicalIndex, filter: LexicalFilter) -> NDArray[np.bool_]:
        """bool [records]: live ones that `filter` lets through. Of a node that is not ACTIVE only its id is judged."""
        passes = index.passes(filter)
        if passes is None:
            return self.live
        # The last place stands for -1: nothing is known of that node.
        admitted: NDArray[np.bool_] = self.live & np.append(passes, True)[self.numbers]
        for node_id in filter.excluded_ids:
            for start, block in zip(self.starts.tolist(), vectors.blocks, strict=True):
                row = block.rows.get(node_id)
                if row is not None:
                    admitted[start + row] = False
        return admitted

    def record(self, vectors: VectorView, number: int) -> VectorRecord:
        """The record of that number."""
        block = int(np.searchsorted(self.starts, number, side="right")) - 1
        return vectors.blocks[block].records[number - int(self.starts[block])]

    def find(self, vectors: VectorView, node_id: str) -> int | None:
        """The number of a node's live record."""
        for start, block in zip(self.starts.tolist(), vectors.blocks, strict=True):
            if block.live(node_id) is not None:
                return int(start) + block.rows[node_id]
        return None


class Bindings:
    """The last binding of each vector view; it goes with that view."""

    def __init__(self) -> None:
        self._held: weakref.WeakKeyDictionary[VectorView, Binding] = weakref.WeakKeyDictionary()
        self._under_way: dict[tuple[int, int], asyncio.Task[Binding]] = {}

    async def of(self, index: LexicalIndex, vectors: VectorView) -> Binding:
        """The binding of these two. After a change of one node it is the cost of some array operations."""
        held = self._held.get(vectors)
        if held is not None and held.index() is index:
            return held
        if _lookups(index, vectors) <= _INLINE_LOOKUPS:
            held = self._held[vectors] = bind(index, vectors)
            return held
        pair = (id(index), id(vectors))  # the task holds both, so that no other object gets one of these ids
        task = self._under_way.get(pair)
        if task is None:
            task = self._under_way[pair] = asyncio.create_task(self._bind(index, vectors), name="bind vectors")
            task.add_done_callback(lambda done: self._ended(pair, done))
        return await asyncio.shield(task)

    async def _bind(self, index: LexicalIndex, vectors: VectorView) -> Binding:
        made = self._held[vectors] = await asyncio.to_thread(bind, index, vectors)
        return made

    def _ended(self, pair: tuple[int, int], task: asyncio.Task[Binding]) -> None:
        del self._under_way[pair]
        if not task.cancelled():
            task.exception()  # every waiter gets it; where all have left, it is not "never retrieved"


def bind(index: LexicalIndex, vectors: VectorView) -> Binding:
    """Look the records up in the index."""
    layout = index.layout()
    alive = index.alive()
    starts = np.cumsum([0, *(len(block.records) for block in vectors.blocks)])
    size = int(starts[-1])
    numbers = np.full(size, -1, dtype=np.intp)
    live = np.ones(size, dtype=np.bool_)
    for first, segment in layout:
        _look_up(segment, vectors.blocks)
        for start, block in zip(starts.tolist(), vectors.blocks, strict=False):
            rows, documents = block.documents[segment]
            if alive is not None:
                kept = alive[first + documents]
                rows, documents = rows[kept], documents[kept]
            numbers[start + rows] = first + documents
    for start, block in zip(starts.tolist(), vectors.blocks, strict=False):
        live[start + block.dead] = False
    revisions = _joined([segment.revisions for _, segment in layout])
    states = np.zeros(size, dtype=np.uint8)
    bound = np.flatnonzero(live & (numbers >= 0))
    of_records = _joined([block.revisions for block in vectors.blocks])
    same = of_records[bound] == revisions[numbers[bound]]
    states[bound] = np.where(same, RecordState.CURRENT, RecordState.MOVED)
    return Binding(weakref.ref(index), live, numbers, states, revisions, starts[:-1])


def _look_up(segment: Segment, blocks: Sequence[Block]) -> None:
    """Make sure that every block knows where its nodes are in the segment: one lookup for each pair, ever."""
    numbers: dict[str, int] | None = None
    for block in blocks:
        if segment in block.documents:
            continue
        if len(segment) < len(block.records):
            pairs = [(block.rows.get(node_id), number) for number, node_id in enumerate(segment.ids)]
        else:
            if numbers is None:
                numbers = {node_id: number for number, node_id in enumerate(segment.ids)}
            found = map(numbers.get, (record.node_id for record in block.records))
            pairs = [(row, number) for row, number in enumerate(found) if number is not None]
        known = np.array([pair for pair in pairs if pair[0] is not None], dtype=np.intp).reshape(-1, 2)
        block.documents[segment] = (known[:, 0].copy(), known[:, 1].copy())


def _lookups(index: LexicalIndex, vectors: VectorView) -> int:
    """How many ids `bind` has to look up."""
    return sum(
        min(len(segment), len(block.records))
        for _, segment in index.layout()
        for block in vectors.blocks
        if segment not in block.documents
    )


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
