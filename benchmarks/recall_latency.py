"""Latency and rate of lexical recall next to an empty unary RPC, on one server, from one client, in one run.

    python -m benchmarks.recall_latency [--nodes 1000 10000] [--store sqlite:///...] [--seconds 4] [--json]

The empty RPC is a health check: what the library itself costs here. GetChangeToken beside it is the cheapest call that
goes through everything a call of the contract goes through. Kinds of call take turns in short slices, so that what
else the machine does weighs on all alike; a ratio is the median of the ratios of all turns. Compare ratios; absolute
figures belong to the machine.

Every recall has a query of its own, so nothing that is kept for a query would help. Recalls run for a while before they
are measured: then the texts of most hits are in the server's memory, as they are in a server that has been up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from operator import truediv
from pathlib import Path
from statistics import median
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from rich.console import Console
from rich.table import Table

from benchmarks.corpus import Corpus
from durable_memory_client import Create, Decision, Draft, Evidence, MemoryClient, NodeStatus
from durablememory.v1 import (
    namespace_pb2,
    recall_service_pb2,
    recall_service_pb2_grpc,
    repository_service_pb2,
    repository_service_pb2_grpc,
)
from tests.processes.server import ServerProcess

CALLERS: Final = (1, 64)
SLICES: Final = 8
WORDS_IN_A_NODE: Final = 30
WORDS_IN_A_QUERY: Final = 8
QUERIES: Final = 20_000
WARM_UP_SECONDS: Final = 5.0
BATCH: Final = 128

Call = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class Sample:
    """Latencies in seconds of calls of one kind by so many callers, and the calls a second of each slice."""

    nodes: int
    kind: str
    callers: int
    latencies: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        return sorted(self.latencies)[int(share * (len(self.latencies) - 1))]

    def summary(self, empty: Sample) -> dict[str, float | int | str]:
        return {
            "nodes": self.nodes,
            "call": self.kind,
            "callers": self.callers,
            "calls": len(self.latencies),
            "per_second": round(median(self.rates)),
            "rate_to_empty": round(median(map(truediv, self.rates, empty.rates)), 2),
            "p50_ms": round(1e3 * self.percentile(0.5), 2),
            "p99_ms": round(1e3 * self.percentile(0.99), 2),
            "p99_to_p50": round(self.percentile(0.99) / self.percentile(0.5), 1),
        }


async def fill(memory: MemoryClient, scope: str, texts: Sequence[str]) -> None:
    """ACTIVE nodes, `BATCH` to a change set."""
    namespace = memory.namespace(scope=scope)
    for start in range(0, len(texts), BATCH):
        drafts = [
            Create(
                node_id=f"node-{start + place}",
                status=NodeStatus.CANDIDATE,
                memory=Draft(
                    content=text,
                    surroundings=texts[max(0, start + place - 2) : start + place],
                    evidence=[Evidence.artifact(f"corpus:{start + place}", text)],
                ),
            )
            for place, text in enumerate(texts[start : start + BATCH])
        ]
        created = await namespace.apply_change_set(drafts)
        await namespace.activate_many(
            [change.citation for change in created.changes], Decision.by_rule("made-up-text", 1)
        )


def calls_of(channel: grpc.aio.Channel, scope: str, queries: Sequence[str]) -> dict[str, Call]:
    namespace = namespace_pb2.NamespaceRef(tenant_id="benchmark", principal_id="latency", scope_id=scope)
    recall = recall_service_pb2_grpc.RecallServiceStub(channel)
    repository = repository_service_pb2_grpc.RepositoryServiceStub(channel)
    health = health_pb2_grpc.HealthStub(channel)
    token = repository_service_pb2.GetChangeTokenRequest(namespace=namespace)
    recalls = cycle(
        [
            recall_service_pb2.ActiveRecallRequest(namespace=namespace, session_id="latency", query=query)
            for query in queries
        ]
    )
    return {
        "empty": lambda: health.Check(health_pb2.HealthCheckRequest()),  # type: ignore[attr-defined]
        "GetChangeToken": lambda: repository.GetChangeToken(token),
        "ActiveRecall": lambda: recall.ActiveRecall(next(recalls)),
    }


async def run_slice(sample: Sample, call: Call, seconds: float) -> None:
    start = time.perf_counter()
    end = start + seconds
    before = len(sample.latencies)

    async def caller() -> None:
        while (begun := time.perf_counter()) < end:
            await call()
            sample.latencies.append(time.perf_counter() - begun)

    await asyncio.gather(*(caller() for _ in range(sample.callers)))
    sample.rates.append((len(sample.latencies) - before) / (time.perf_counter() - start))


async def measure(address: str, sizes: Sequence[int], seconds: float) -> list[Sample]:
    corpus = Corpus(seed=7)
    samples: list[Sample] = []
    async with MemoryClient(address, tenant="benchmark", principal="latency", scope="all") as memory:
        for size in sizes:
            texts = list(corpus.texts(size, WORDS_IN_A_NODE))
            await fill(memory, str(size), texts)
            await memory.namespace(scope=str(size)).open_session("latency")
            queries = [corpus.query(texts[place % size], WORDS_IN_A_QUERY) for place in range(QUERIES)]
            async with grpc.aio.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
                calls = calls_of(channel, str(size), queries)
                for call in calls.values():
                    await call()  # connect, and load the view
                await run_slice(Sample(size, "warm-up", CALLERS[-1]), calls["ActiveRecall"], WARM_UP_SECONDS)
                held = {(kind, callers): Sample(size, kind, callers) for callers in CALLERS for kind in calls}
                for _ in range(SLICES):
                    for (kind, _), sample in held.items():
                        await run_slice(sample, calls[kind], seconds / SLICES)
                samples += held.values()
    return samples


def summaries(samples: Sequence[Sample]) -> list[dict[str, float | int | str]]:
    empty = {(sample.nodes, sample.callers): sample for sample in samples if sample.kind == "empty"}
    return [sample.summary(empty[sample.nodes, sample.callers]) for sample in samples]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall_latency", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000], help="ACTIVE nodes in a namespace")
    parser.add_argument("--store", help="a store URL; default: a SQLite file of its own")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each kind of call and number of callers")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        ServerProcess(arguments.store or f"sqlite:///{folder}/latency.db", Path(folder, "server.log")) as server,
    ):
        rows = summaries(asyncio.run(measure(server.address, arguments.nodes, arguments.seconds)))
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(*rows[0], title="recall next to an empty unary RPC")
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
