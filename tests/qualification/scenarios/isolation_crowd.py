"""A server that has room for the views of two namespaces, and is asked for those of many: what a small tenant gets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

from durable_memory_client import (
    Create,
    Draft,
    Evidence,
    EvidenceKind,
    MemoryClient,
    MemoryServiceError,
    NodeStatus,
    RecallMode,
)
from tests.processes.polling import wait_until_async
from tests.qualification.checks.isolation import Recalled
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.cluster.server_node import ServerNode
from tests.qualification.scenarios.isolation_skew import DEADLINE_SECONDS, MOST_HITS
from tests.qualification.traffic.wording import word_of

BUDGET_BYTES: Final = 1 << 20
"""For all views of the server, as little as it can be told. One of the crowd's takes about a third of it."""

DURING: Final = "evictions of views"
_EVICTIONS: Final = "durable_memory.views.evictions"
_CROWD: Final = 6
_MEMORIES: Final = 125
_WORDS: Final = 50
"""That each memory of the crowd has for itself: it is words that make a view large."""

_LEAST_ROUNDS: Final = 5
_METRIC_SECONDS: Final = 180.0


@dataclass(slots=True)
class Crowded:
    """What the small tenant got from that server, and how many views the server pushed out meanwhile."""

    recalls: list[Recalled] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    """Calls that were not answered."""
    calls: int = 0
    evicted: int = 0


class Crowd:
    """`small` and `others` are (tenant, principal), the others' with a number behind it; `own` is all that the small
    one has, and what its `question` finds."""

    def __init__(
        self, cluster: Cluster, *, small: tuple[str, str], others: tuple[str, str], own: Sequence[str], question: str
    ) -> None:
        self._cluster = cluster
        self._small = small
        self._others = [(others[0], f"{others[1]}-{number}") for number in range(_CROWD)]
        self._own = sorted(own)
        self._question = question

    async def run(self, seconds: float) -> Crowded:
        """Fill the others by way of the cluster, and recall from all by way of a further server with little room.

        In each round the others are asked for their views, one after the other and all of them, so that none of the
        small tenant is left; and the small tenant recalls while that goes on, and after it.
        """
        cluster, crowded = self._cluster, Crowded()
        server = ServerNode(
            len(cluster.servers),
            cluster.postgres.dsn,
            cluster.folder,
            cluster.timeline,
            settings={
                "credentials_file": cluster.credentials.path,
                "views_budget_bytes": BUDGET_BYTES,
                "telemetry_otlp_endpoint": cluster.telemetry.endpoint,
                "telemetry_metrics_interval_seconds": 1,
            },
            service_root=cluster.service_root,
        )
        if server.log not in cluster.further_logs:
            cluster.further_logs.append(server.log)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(server.close)
            filling = [self._connect(stack, cluster.address, *name) for name in self._others]
            await asyncio.gather(server.start(), *(self._fill(memory) for memory in filling))
            small = self._connect(stack, server.address, *self._small)
            others = [self._connect(stack, server.address, *name) for name in self._others]
            ends_at, rounds = time.monotonic() + seconds, 0
            while rounds < _LEAST_ROUNDS or time.monotonic() < ends_at:
                rounds += 1
                await asyncio.gather(self._ask_all(others, crowded), self._recall(small, crowded))
                await self._recall(small, crowded)
            crowded.evicted = await self._evicted(server, time.monotonic())
        return crowded

    def _connect(self, stack: AsyncExitStack, address: str, tenant: str, principal: str) -> MemoryClient:
        client = MemoryClient(address, self._cluster.token(tenant), tenant=tenant, principal=principal, scope="default")
        stack.push_async_callback(client.close)
        return client

    async def _fill(self, memory: MemoryClient) -> None:
        await memory.apply_change_set([self._create(number) for number in range(_MEMORIES)])

    def _create(self, number: int) -> Create:
        decided = Evidence(uri=f"import:{number}", kind=EvidenceKind.VERIFICATION, body=str(number).encode())
        words = " ".join(word_of(f"{number} {place}") for place in range(_WORDS))
        draft = Draft(content=f"{self._question}: {words}", evidence=[decided])
        return Create(memory=draft, node_id=f"crowd-{number}", status=NodeStatus.ACTIVE)

    async def _ask_all(self, others: Sequence[MemoryClient], crowded: Crowded) -> None:
        for memory in others:
            crowded.calls += 1
            try:
                await memory.preview(self._question, mode=RecallMode.LEXICAL, timeout=DEADLINE_SECONDS)
            except MemoryServiceError as error:
                crowded.late.append(f"a recall of the crowd came to {error.reason or error.code.name}")

    async def _recall(self, small: MemoryClient, crowded: Crowded) -> None:
        crowded.calls += 1
        began = time.monotonic()
        try:
            recall = await small.preview(
                self._question, mode=RecallMode.LEXICAL, max_results=MOST_HITS, timeout=DEADLINE_SECONDS
            )
        except MemoryServiceError as error:
            crowded.late.append(f"a recall of the small tenant came to {error.reason or error.code.name}")
            return
        crowded.seconds.append(time.monotonic() - began)
        crowded.recalls.append(
            Recalled(
                mode=RecallMode.LEXICAL.value,
                during=DURING,
                hits=[hit.node_id for hit in recall],
                expected=self._own,
                searched=recall.searched_node_count,
                own_least=len(self._own),
                own_most=len(self._own),
            )
        )

    async def _evicted(self, server: ServerNode, moment: float) -> int:
        """What it said after that moment."""

        def said() -> list[float]:
            values = self._cluster.telemetry.metric_values(_EVICTIONS, instance=server.name)
            return [one.value for one in values if one.arrived > moment]

        fresh = await wait_until_async(said, _METRIC_SECONDS, what="the server says how much was evicted")
        return round(fresh[-1])
