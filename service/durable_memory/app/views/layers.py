"""Segments upon segments: how an index takes a change without touching what it has.

A change makes a small segment of its own and marks replaced documents as dead. Young segments of like size are merged
at once while they are small. What is more work is left to a compaction off the event loop: merging the young ones, and
now and then merging them into the oldest, the base, which costs as much as the namespace is large. Where nobody
compacts, a change does it when the young segments have outgrown the base, so its cost stays constant on average.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.views.postings import Counts
from durable_memory.app.views.segment import Segment, build_segment, merge_segments
from durable_memory.domain.lexical.bm25f import FIELD_COUNT
from durable_memory.domain.lexical.document import IndexedDocument

NO_DEAD: Final = np.empty(0, dtype=np.int32)
_FANOUT: Final = 4
"""So many young segments of like size become one."""

_MERGED_AT_ONCE: Final = 128
"""Documents that a change merges itself, which takes some milliseconds; more are left to a compaction."""

_MANY_LAYERS: Final = 16
"""With more layers than this a query pays more for layers than for documents."""

_COMPACTION_SHARE: Final = 8
"""A compaction is due when the young and the dead are more than the base divided by this, and a few."""

_SMALL: Final = 64
"""So many documents are too few to be worth a compaction of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A segment in an index: where its documents are numbered from, and which of them are dead (sorted numbers)."""

    segment: Segment
    start: int
    dead: NDArray[np.int32]

    @property
    def document_count(self) -> int:
        """How many documents are alive."""
        return len(self.segment) - len(self.dead)

    def is_alive(self, number: int) -> bool:
        place = int(np.searchsorted(self.dead, number))
        return place == len(self.dead) or int(self.dead[place]) != number

    def living_numbers(self, node_ids: Iterable[str]) -> NDArray[np.int32]:
        """The numbers of those of `node_ids` that are alive here, ascending."""
        numbers = sorted(number for number in map(self.segment.find, node_ids) if number >= 0)
        return np.array([number for number in numbers if self.is_alive(number)], dtype=np.int32)

    def without(self, numbers: NDArray[np.int32]) -> Layer:
        """This layer with `numbers`, alive until now, dead."""
        if not len(numbers):
            return self
        return replace(self, dead=np.union1d(self.dead, numbers))


@dataclass(frozen=True, slots=True)
class FieldTotals:
    """Token counts of one bm25f field over the living documents: integers, so that no order of changes shows."""

    tokens: int = 0
    documents: int = 0

    def plus(self, lengths: Counts, sign: int) -> FieldTotals:
        return FieldTotals(
            self.tokens + sign * int(lengths.sum()), self.documents + sign * int(np.count_nonzero(lengths))
        )

    @property
    def average(self) -> float:
        return self.tokens / self.documents if self.documents else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Compaction:
    """The work of merging some layers into one. `run` is pure and slow: call it off the event loop."""

    profiles: frozenset[str]
    layers: tuple[Layer, ...]

    def run(self) -> Segment:
        if not self.layers:
            return build_segment((), self.profiles)
        return merge_segments([(layer.segment, layer.dead) for layer in self.layers])


@dataclass(frozen=True, slots=True, eq=False)
class LayerStack:
    """All documents of one state of a namespace. Immutable: every change returns another stack.

    Attributes:
        profiles: the lexical profiles that every segment has postings for.
        layers: oldest first; a living id is in exactly one.
        totals: for each bm25f field.
        pinned: how many leading layers no change may merge: the base, and what a compaction is working on.
        document_count: how many documents are alive.
    """

    profiles: frozenset[str]
    layers: tuple[Layer, ...] = ()
    totals: tuple[FieldTotals, ...] = (FieldTotals(),) * FIELD_COUNT
    pinned: int = 1
    document_count: int = field(init=False)

    def __post_init__(self) -> None:
        # Once, because a recall asks for it many times, and layers may be many.
        object.__setattr__(self, "document_count", sum(layer.document_count for layer in self.layers))

    @property
    def size(self) -> int:
        """How many numbers documents have, the dead included."""
        return self.layers[-1].start + len(self.layers[-1].segment) if self.layers else 0

    @property
    def nbytes(self) -> int:
        return sum(layer.segment.nbytes + layer.dead.nbytes for layer in self.layers)

    def find(self, node_id: str) -> tuple[Layer, int] | None:
        """The layer in which that document is alive and its number there."""
        for layer in reversed(self.layers):
            number = layer.segment.find(node_id)
            if number >= 0 and layer.is_alive(number):
                return layer, number
        return None

    def is_alive(self) -> NDArray[np.bool_] | None:
        """bool [documents of the index], `None` where all are alive."""
        if not any(len(layer.dead) for layer in self.layers):
            return None
        alive = np.ones(self.size, dtype=np.bool_)
        for layer in self.layers:
            alive[layer.start + layer.dead] = False
        return alive

    def applied(self, changed: Mapping[str, IndexedDocument], removed: Collection[str]) -> LayerStack:
        """With `changed` documents (by id) in place of what they were, and without `removed` ids."""
        totals = self.totals
        layers = []
        replaced = {*changed, *removed}
        for layer in self.layers:
            gone = layer.living_numbers(replaced)
            layers.append(layer.without(gone))
            totals = _changed_totals(totals, layer.segment, gone, -1)
        if changed:
            segment = build_segment(changed.values(), self.profiles)
            layers.append(Layer(segment, 0, NO_DEAD))
            totals = _changed_totals(totals, segment, np.arange(len(segment)), +1)
        return self._tidied(layers, totals)

    def _tidied(self, layers: list[Layer], totals: tuple[FieldTotals, ...]) -> LayerStack:
        """With young layers merged where enough are of like size, and all where they have outgrown the base."""
        layers = [layer for place, layer in enumerate(layers) if place < self.pinned or layer.document_count]
        while self._is_mergeable(layers):
            layers[-_FANOUT:] = [self._merged(layers[-_FANOUT:])]
        if self.pinned == 1 and layers and _burden(layers) > layers[0].document_count + _SMALL:
            return replace(self, layers=_numbered([self._merged(layers)]), totals=totals)
        return replace(self, layers=_numbered(layers), totals=totals)

    def _is_mergeable(self, layers: Sequence[Layer]) -> bool:
        """Whether the youngest layers are of like size, and few enough documents to merge on the event loop."""
        youngest = layers[-_FANOUT:]
        return (
            len(layers) >= self.pinned + _FANOUT
            and _tier(youngest[0]) <= _tier(youngest[-1])
            and sum(layer.document_count for layer in youngest) <= _MERGED_AT_ONCE
        )

    def _merged(self, layers: Sequence[Layer]) -> Layer:
        return Layer(Compaction(self.profiles, tuple(layers)).run(), 0, NO_DEAD)

    @property
    def needs_compaction(self) -> bool:
        """Whether queries would gain from a compaction."""
        return len(self.layers) > _MANY_LAYERS or self._is_overgrown

    @property
    def _is_overgrown(self) -> bool:
        base = self.layers[0].document_count if self.layers else 0
        return _burden(self.layers) > base // _COMPACTION_SHARE + _SMALL

    def begin_compaction(self) -> tuple[LayerStack, Compaction]:
        """This stack, keeping its layers apart from later changes, and the work of merging them.

        The base takes part only where the others have become a good part of it.
        """
        layers = self.layers if self._is_overgrown or len(self.layers) < 3 else self.layers[1:]
        return replace(self, pinned=max(1, len(self.layers))), Compaction(self.profiles, layers)

    def adopted(self, compaction: Compaction, segment: Segment) -> LayerStack:
        """With the result of a compaction in place of the layers that went into it.

        Documents that changed since are dead in it. The same stack where those layers are not there any more.
        """
        merged = compaction.layers
        start = (
            next((n for n, layer in enumerate(self.layers) if layer.segment is merged[0].segment), 0) if merged else 0
        )
        current = self.layers[start : start + len(merged)]
        if [id(layer.segment) for layer in current] != [id(layer.segment) for layer in merged]:
            return self
        changed: set[str] = set()
        for now, then in zip(current, merged, strict=True):
            changed.update(now.segment.ids[number] for number in np.setdiff1d(now.dead, then.dead).tolist())
        layer = Layer(segment, 0, NO_DEAD)
        layer = layer.without(layer.living_numbers(changed))
        layers = [*self.layers[:start], layer, *self.layers[start + len(merged) :]]
        return replace(self, layers=_numbered(layers), pinned=1)


def _numbered(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    numbered = []
    start = 0
    for layer in layers:
        numbered.append(replace(layer, start=start))
        start += len(layer.segment)
    return tuple(numbered)


def _tier(layer: Layer) -> int:
    """The power of _FANOUT that its documents reach."""
    return (layer.document_count.bit_length() - 1) // 2


def _burden(layers: Sequence[Layer]) -> int:
    """What a query pays beyond the base: documents in young layers, and dead ones."""
    young = sum(len(layer.segment) for layer in layers[1:])
    return young + sum(len(layer.dead) for layer in layers)


def _changed_totals(
    totals: Sequence[FieldTotals], segment: Segment, numbers: NDArray[np.integer], sign: int
) -> tuple[FieldTotals, ...]:
    lengths = segment.lengths[:, numbers]
    changed = [total.plus(row, sign) for total, row in zip(totals, lengths, strict=False)]
    return (*changed, *totals[len(changed) :])
