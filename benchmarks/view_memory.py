"""Memory of a namespace view for each node, estimated and measured, and what a load, a delta and searches cost.

    python -m benchmarks.view_memory

A node has 30 words and two surroundings of 30 words. "Estimated" is what the view says of itself and its budget is
counted in; "measured" is what the allocator hands out for it. The delta is one changed node: it must not grow with the
namespace. Every search has a query of its own; sixteen that wait are answered together.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.corpus import Corpus
from durable_memory.app.views.index import LexicalIndex, Search
from durable_memory.domain.lexical.document import IndexedDocument
from durable_memory.domain.lexical.profiles import DEFAULT_LEXICAL_PROFILE

SIZES: Final = (1_000, 10_000, 100_000)
DELTAS: Final = 200
SEARCHES: Final = 1_600
TOGETHER: Final = 16
WORDS: Final = 30
WORDS_IN_A_QUERY: Final = 8
_START: Final = datetime(2026, 1, 1, tzinfo=UTC)


def documents(size: int) -> list[IndexedDocument]:
    texts = list(Corpus(seed=7).texts(size, WORDS))
    return [
        IndexedDocument(
            node_id=f"node-{place}",
            revision=1,
            kind=2,
            content=text,
            surroundings=tuple(reversed(texts[max(0, place - 2) : place])),
            occurred_at=_START + timedelta(minutes=place),
            updated_at=_START + timedelta(minutes=place),
        )
        for place, text in enumerate(texts)
    ]


def measured(size: int) -> tuple[float, ...]:
    """(estimated bytes a node, measured bytes a node, load ms, delta us, search us, search us among others)."""
    held = documents(size)
    started = time.perf_counter()
    LexicalIndex.build(held)
    load = time.perf_counter() - started
    gc.collect()
    tracemalloc.start()
    index = LexicalIndex.build(held)
    gc.collect()
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    deltas = []
    for place in range(DELTAS):
        started = time.perf_counter()
        index.apply([held[place * size // DELTAS]])
        deltas.append(time.perf_counter() - started)
    corpus = Corpus(seed=11)
    searches = [
        Search(
            query=corpus.query(held[place * size // SEARCHES].content, WORDS_IN_A_QUERY),
            profile=DEFAULT_LEXICAL_PROFILE,
            limit=5,
        )
        for place in range(SEARCHES)
    ]
    return (
        index.nbytes / size,
        allocated / size,
        1e3 * load,
        1e6 * median(deltas),
        1e6 * seconds_each(index, searches, 1),
        1e6 * seconds_each(index, searches, TOGETHER),
    )


def seconds_each(index: LexicalIndex, searches: Sequence[Search], together: int) -> float:
    """The median time of a search, with so many answered at once."""
    times = []
    for start in range(0, len(searches), together):
        some = searches[start : start + together]
        started = time.perf_counter()
        index.search_all(some)
        times.append((time.perf_counter() - started) / len(some))
    return median(times)


def main() -> None:
    table = Table(
        "nodes",
        "estimated B/node",
        "measured B/node",
        "load ms",
        "delta of 1, us (median)",
        "search, us (median)",
        "search of 16, us each",
        title="namespace views, both lexical profiles",
    )
    for size in SIZES:
        table.add_row(f"{size:,}", *(f"{value:,.0f}" for value in measured(size)))
        print(f"{size} done", file=sys.stderr)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
