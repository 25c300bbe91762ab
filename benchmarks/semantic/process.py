"""One server of the service in the benchmark's own process, over a real store and a real Redis, filled by use cases."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

from benchmarks.corpus import Corpus
from benchmarks.semantic.embedder import WordSumEmbedder
from durable_memory.app.call import Call, Mutation
from durable_memory.app.semantic.refresh_progress import RefreshProgress
from durable_memory.app.semantic.runtime import SemanticRuntime
from durable_memory.app.sessions import PolicyRequest
from durable_memory.config import Settings
from durable_memory.domain.caller import Caller, Role
from durable_memory.domain.change_set import ChangeSet, Create, NodeDraft, Operation, Revise, ReviseMode
from durable_memory.domain.evidence import EvidenceInput, EvidenceKind, body_digest
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeKind, NodeStatus
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.session import RecallMode
from durable_memory.main import Application, build, migrate_store
from durable_memory.ports.semantic_records import Receipt
from durable_memory.ports.store import RequestKey
from durable_memory.ports.vector_index import Consistency

SESSION: Final = "benchmark"
SEED: Final = 7
WORDS_IN_A_NODE: Final = 30

Width = Literal["float16", "float32"]

_BATCH: Final = 128
_MEMORY: Final = 4 * 1024**3
_CALLER: Final = Caller(name="benchmark", roles=frozenset(Role))


def namespace_of(size: int) -> Namespace:
    return Namespace("benchmark", "semantic", str(size))


def texts_of(size: int) -> list[str]:
    """What `size` nodes say, the same in every process."""
    return list(Corpus(SEED).texts(size, WORDS_IN_A_NODE))


@dataclass
class Process:
    """A running server, and shorthands for what is measured."""

    application: Application
    runtime: SemanticRuntime
    embedder: WordSumEmbedder
    _requests: itertools.count[int] = field(default_factory=itertools.count)

    def partition(self, namespace: Namespace) -> Partition:
        return Partition(namespace, self.embedder.generation.authority_digest)

    async def fill(self, namespace: Namespace, texts: Sequence[str]) -> None:
        """ACTIVE nodes "node-0" and on, `_BATCH` to a change set, and an open session."""
        for start in range(0, len(texts), _BATCH):
            batch = enumerate(texts[start : start + _BATCH], start)
            await self._apply(namespace, *(_create(number, text) for number, text in batch))
        opening = self._mutation(namespace, "OpenSession")
        await self.application.services.sessions.open(opening, SESSION, PolicyRequest())

    async def revise(self, namespace: Namespace, number: int, text: str) -> None:
        """Another text for a node that was never revised."""
        await self._apply(
            namespace,
            Revise(
                node_id=f"node-{number}",
                expected_revision=1,
                mode=ReviseMode.CORRECTION,
                content=text,
                set_labels={},
                evidence=(_decision(f"revised:{number}", text),),
            ),
        )

    async def refresh(self, namespace: Namespace) -> Receipt:
        return await self.runtime.refresh.refresh(
            namespace, self.embedder.generation, requirement=Consistency.INDEX_REVISION_CAS, report=_unreported
        )

    async def recall(self, namespace: Namespace, query: str) -> None:
        """By words and meaning, for as long as it takes: the first one brings both views into memory."""
        call = Call(caller=_CALLER, namespace=namespace)
        await self.application.services.recall.active(call, SESSION, query, mode=RecallMode.HYBRID)

    async def _apply(self, namespace: Namespace, *operations: Operation) -> None:
        call = self._mutation(namespace, "ApplyChangeSet")
        await self.application.services.change_sets.apply(call, ChangeSet(operations=operations))

    def _mutation(self, namespace: Namespace, method: str) -> Mutation:
        request = RequestKey(method=method, key=f"benchmark-{next(self._requests)}", fingerprint="v1:benchmark")
        return Mutation(caller=_CALLER, namespace=namespace, request=request)


@asynccontextmanager
async def process(
    store_url: str, redis_url: str, dimension: int, *, width: Width = "float32", address: str = "127.0.0.1:0"
) -> AsyncIterator[Process]:
    """A server as it is wired for users, but for the embedder; it refreshes nothing by itself."""
    settings = Settings.model_validate(
        {
            "store": store_url,
            "address": address,
            "views": {"budget_bytes": _MEMORY, "max_view_bytes": _MEMORY},
            "vectors": {
                "redis_url": redis_url,
                "budget_bytes": _MEMORY,
                "max_partition_bytes": _MEMORY,
                "vector_format": width,
                "poll_interval_seconds": 3_600,
            },
            "calls": {"max_concurrent_per_caller": 1_000, "max_concurrent": 1_000},
        }
    )
    await migrate_store(settings)
    embedder = WordSumEmbedder(dimension)
    application = build(settings, embedder=embedder)
    await application.start()
    try:
        runtime = application.services.runtime
        if runtime is None or runtime.generation is None:
            raise RuntimeError("the server makes no vectors: is Redis there?")
        yield Process(application, runtime, embedder)
    finally:
        await application.stop()


def _create(number: int, text: str) -> Create:
    draft = NodeDraft(kind=NodeKind.SEMANTIC, content=text, evidence=(_decision(f"created:{number}", text),), labels={})
    return Create(node_id=f"node-{number}", status=NodeStatus.ACTIVE, draft=draft)


def _decision(name: str, text: str) -> EvidenceInput:
    return EvidenceInput(uri=f"benchmark:{name}", digest=body_digest(text.encode()), kind=EvidenceKind.VERIFICATION)


async def _unreported(_: RefreshProgress) -> None:
    """Nobody waits for it step by step."""
