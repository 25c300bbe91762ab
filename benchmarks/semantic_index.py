"""What refreshes cost, cold and for one changed node, and what vectors take in Redis and in memory.

    python -m benchmarks.semantic_index [--nodes 1000 10000 100000] [--dimension 384] [--store sqlite|postgres] [--json]

The service's own refresh, whole: lease, diff, vectors, segments, intent, publication, receipt, over a real Redis and a
SQLite file, or PostgreSQL. Its embedder takes microseconds, and these are taken off, so that embedding is excluded.

"Delta" is the refresh after one node's text has changed. Namespaces of all sizes take turns, so that what else the
machine does weighs on all alike; its ratio is the median of the ratios to the smallest namespace in the same turn, and
should be 1 at every size. A process that has not had the partition in memory loads it first: "load".

Bytes in Redis are what it says of the partition's keys. Of the view, "counted" is what budgets are counted in, and
"measured" what the allocators hand out for it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import tempfile
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import truediv
from statistics import median
from typing import Any, Final

import redis
from rich.console import Console
from rich.table import Table

from benchmarks.corpus import Corpus
from benchmarks.semantic.process import WORDS_IN_A_NODE, Process, Width, namespace_of, process, texts_of
from durable_memory.adapters.redis.keys import manifest_key, segment_key
from durable_memory.telemetry import configure_logging
from tests.processes.postgres import PostgresProcess
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import system_redis

DELTAS: Final = 60
_WARM_UP: Final = 5


@dataclass(slots=True)
class Sample:
    """One namespace in one form; seconds and bytes."""

    nodes: int
    width: Width
    cold: float = 0.0
    load: float = 0.0
    deltas: list[float] = field(default_factory=list)
    redis_bytes: int = 0
    counted_bytes: int = 0
    measured_bytes: int = 0

    def summary(self, smallest: Sample) -> dict[str, float | int | str]:
        return {
            "nodes": self.nodes,
            "format": self.width,
            "cold_s": round(self.cold, 2),
            "cold_us_a_node": round(1e6 * self.cold / self.nodes),
            "load_ms": round(1e3 * self.load, 1),
            "delta_ms": round(1e3 * median(self.deltas), 1),
            "delta_ratio": round(median(map(truediv, self.deltas, smallest.deltas)), 2),
            "redis_B_a_node": round(self.redis_bytes / self.nodes),
            "view_B_counted": round(self.counted_bytes / self.nodes),
            "view_B_measured": round(self.measured_bytes / self.nodes),
        }


async def measure(
    store_url: str, server: RedisProcess, sizes: Sequence[int], dimension: int, width: Width
) -> list[Sample]:
    samples = [Sample(size, width) for size in sizes]
    async with process(store_url, server.url, dimension, width=width) as running:
        for sample in samples:
            await _cold(running, sample)
            await _memory(running, sample)
            with server.client() as client:
                sample.redis_bytes = await _redis_bytes(running, sample, client)
        corpus = Corpus(seed=11)
        for turn in range(_WARM_UP + DELTAS):
            for sample in samples:
                await running.revise(namespace_of(sample.nodes), turn, corpus.text(WORDS_IN_A_NODE))
                with _embedding_excluded(running) as taken:
                    receipt = await running.refresh(namespace_of(sample.nodes))
                if (receipt.work.replaced, receipt.work.provider_inputs) != (1, 1):
                    raise RuntimeError(f"one node has changed, and the refresh did {receipt.work}")
                if turn >= _WARM_UP:
                    sample.deltas += taken
    return samples


async def _cold(running: Process, sample: Sample) -> None:
    namespace = namespace_of(sample.nodes)
    await running.fill(namespace, texts_of(sample.nodes))
    with _embedding_excluded(running) as taken:
        await running.refresh(namespace)
    (sample.cold,) = taken


async def _memory(running: Process, sample: Sample) -> None:
    """A load of the published vectors, timed; and another one, counted by the allocators."""
    partition, vectors = running.partition(namespace_of(sample.nodes)), running.runtime.vectors
    manifest = await running.runtime.index.manifest(partition)
    if manifest is None:
        raise RuntimeError("the refresh has published nothing")
    vectors.drop(partition)
    started = time.perf_counter()
    view = await vectors.load(partition, manifest)
    sample.load = time.perf_counter() - started
    sample.counted_bytes = view.nbytes
    del view
    vectors.drop(partition)
    gc.collect()
    tracemalloc.start()
    await vectors.load(partition, manifest)
    gc.collect()
    sample.measured_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()


async def _redis_bytes(running: Process, sample: Sample, client: redis.Redis) -> int:
    partition = running.partition(namespace_of(sample.nodes))
    manifest = await running.runtime.index.manifest(partition)
    entries = () if manifest is None else manifest.segments
    keys = [manifest_key(partition.name), *(segment_key(partition.name, entry.segment_id) for entry in entries)]
    return sum(int(client.memory_usage(key, samples=0) or 0) for key in keys)  # type: ignore[arg-type]


@contextmanager
def _embedding_excluded(running: Process) -> Iterator[list[float]]:
    """Gets the seconds that the block took, without those of the embedder."""
    taken: list[float] = []
    embedded, started = running.embedder.seconds, time.perf_counter()
    yield taken
    taken.append(time.perf_counter() - started - (running.embedder.seconds - embedded))


def measure_all(sizes: Sequence[int], dimension: int, store: str) -> list[dict[str, Any]]:
    """All sizes in float32, and one of them in float16."""
    rows = []
    middle = sorted(sizes)[len(sizes) // 2]
    forms: tuple[tuple[Width, Sequence[int]], ...] = (("float32", sizes), ("float16", [middle]))
    for width, some in forms:
        with tempfile.TemporaryDirectory() as folder, RedisProcess(system_redis()) as server:
            if store == "sqlite":
                samples = asyncio.run(measure(f"sqlite:///{folder}/index.db", server, some, dimension, width))
            else:
                with PostgresProcess() as postgres:
                    samples = asyncio.run(measure(postgres.dsn(), server, some, dimension, width))
        rows += [sample.summary(samples[0]) for sample in samples]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.semantic_index", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="of each namespace")
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    configure_logging("error")
    rows = measure_all(arguments.nodes, arguments.dimension, arguments.store)
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(*rows[0], title=f"the semantic index on Redis, {arguments.dimension} dimensions, {arguments.store}")
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
