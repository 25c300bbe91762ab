"""Which documents a filter lets through, and which of those found are the best."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.views.layers import Layer
from durable_memory.app.views.segment import NO_TIME, Segment, label_term, microseconds
from durable_memory.domain.lexical.query import ANY_DOCUMENT, LexicalFilter

_FEW: Final = 32
"""So many ties are sorted one by one."""


def passing(layers: Sequence[Layer], filter: LexicalFilter) -> NDArray[np.bool_] | None:
    """bool [documents of the index], dead ones included; `None` when every document passes."""
    if not layers or filter == ANY_DOCUMENT:
        return None
    return np.concatenate([_passing_segment(layer.segment, filter) for layer in layers])


def _passing_segment(segment: Segment, filter: LexicalFilter) -> NDArray[np.bool_]:
    passes = np.ones(len(segment), dtype=np.bool_)
    if filter.kinds:
        passes &= np.isin(segment.kinds, list(filter.kinds))
    for key, value in filter.labels.items():
        row = segment.labels.row(label_term(key, value))
        having = np.zeros(len(segment), dtype=np.bool_)
        if row is not None:
            having[segment.labels.documents[row]] = True
        passes &= having
    _keep_range(passes, segment.occurred, filter.occurred_from, filter.occurred_until)
    _keep_range(passes, segment.updated, filter.updated_from, filter.updated_until)
    for node_id in filter.excluded_ids:
        number = segment.find(node_id)
        if number >= 0:
            passes[number] = False
    return passes


def _keep_range(
    passes: NDArray[np.bool_], times: NDArray[np.int64], start: datetime | None, end: datetime | None
) -> None:
    if start is None and end is None:
        return
    passes &= times != NO_TIME
    if start is not None:
        passes &= times >= microseconds(start)
    if end is not None:
        passes &= times < microseconds(end)


def largest(values: NDArray[np.float64], rank: int) -> float:
    """The value of that rank, 1 for the largest; 0 where there are not so many."""
    if len(values) < rank:
        return 0.0
    ordered = values.copy()
    ordered.partition(len(values) - rank)
    return ordered.item(len(values) - rank)


def best(
    layers: Sequence[Layer], found: NDArray[np.intp], scores: NDArray[np.float64], limit: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The `limit` best of `found` and their scores, best first; equal scores newer first, then by id.

    Args:
        found: numbers within the index, ascending.
        scores: of each of them.
    """
    # Nothing below the score of rank `limit` can be among the best, whatever its time and id.
    keep = (scores >= largest(scores, limit)).nonzero()[0]
    found, scores = found[keep], scores[keep]
    if len(found) > limit + _FEW:
        found, scores = _best_of_each(layers, found, scores, limit)
    order = ordered(layers, found, scores)[:limit]
    return found[order], scores[order]


def ordered(layers: Sequence[Layer], found: NDArray[np.intp], scores: NDArray[np.float64]) -> NDArray[np.intp]:
    """The places of `found`, best score first; equal scores newer first, then by id.

    Args:
        found: numbers within the index, in any order.
        scores: of each of them.
    """
    if len(layers) == 1:  # where numbers are in the order of ids
        return np.lexsort((found, -layers[0].segment.updated[found], -scores))
    updated = np.empty(len(found), dtype=np.int64)
    holders = np.searchsorted([layer.start for layer in layers], found, side="right") - 1
    for place, layer in enumerate(layers):
        held = (holders == place).nonzero()[0]
        updated[held] = layer.segment.updated[found[held] - layer.start]
    order = np.lexsort((-updated, -scores))
    ranked, times = scores[order], updated[order]
    if not ((ranked[1:] == ranked[:-1]) & (times[1:] == times[:-1])).any():
        return order
    ids = [node_id for node_id, _ in named(layers, found.tolist())]
    by_id = np.empty(len(ids), dtype=np.intp)
    by_id[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    return np.lexsort((by_id, -updated, -scores))


def named(layers: Sequence[Layer], found: Iterable[int]) -> list[tuple[str, int]]:
    """Ids and revisions of documents, given as numbers within the index."""
    starts = [layer.start for layer in layers]
    names = []
    for number in found:
        layer = layers[bisect_right(starts, number) - 1]
        names.append((layer.segment.ids[number - layer.start], layer.segment.revisions.item(number - layer.start)))
    return names


def _ends(layers: Sequence[Layer], found: NDArray[np.intp]) -> list[int]:
    """For each layer where its part of `found` ends."""
    ends: list[int] = found.searchsorted([layer.start + len(layer.segment) for layer in layers]).tolist()
    return ends


def _best_of_each(
    layers: Sequence[Layer], found: NDArray[np.intp], scores: NDArray[np.float64], limit: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """What can be among the best `limit`: the best of each segment, where thousands may be tied."""
    kept = []
    start = 0
    for layer, end in zip(layers, _ends(layers, found), strict=True):
        numbers, values = found[start:end], scores[start:end]
        kept.append(start + _best_of_segment(values, layer.segment.updated[numbers - layer.start], limit))
        start = end
    places = np.concatenate(kept)
    return found[places], scores[places]


def _best_of_segment(scores: NDArray[np.float64], updated: NDArray[np.int64], limit: int) -> NDArray[np.intp]:
    """Places of the `limit` best. Documents stand in the order of their ids, so the first of equals is the best."""
    if len(scores) <= limit:
        return np.arange(len(scores))
    lowest = largest(scores, limit)
    above = np.flatnonzero(scores > lowest)
    tied = np.flatnonzero(scores == lowest)
    wanted = limit - len(above)
    times = updated[tied]
    oldest = np.partition(times, len(times) - wanted)[len(times) - wanted]
    newer = tied[times > oldest]
    first = tied[times == oldest][: wanted - len(newer)]
    return np.concatenate((above, newer, first))


def place(layers: Sequence[Layer], values: NDArray[np.float64], node_id: str, score: float, updated: int) -> int:
    """The rank from 1 that a document with these properties has among the documents with `values`.

    Args:
        values: float64 [documents of the index].
        updated: microseconds since 1970.
    """
    rank = 1 + int(np.count_nonzero(values > score))
    for layer in layers:
        tied = np.flatnonzero(values[layer.start : layer.start + len(layer.segment)] == score)
        times = layer.segment.updated[tied]
        rank += int(np.count_nonzero(times > updated))
        rank += int(np.count_nonzero(tied[times == updated] < bisect_left(layer.segment.ids, node_id)))
    return rank
