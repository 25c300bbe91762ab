"""A namespace whose index a scenario watches: clients by way of each server, its partition, and what it remembers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Self

import psutil

from durable_memory_client import IndexState, IndexStatus, MemoryClient, MemoryServiceError, RefreshReceipt
from durable_memory_client.errors import LeaseHeldError
from tests.processes.polling import wait_until_async
from tests.processes.proxy import Fate, Held, Rule, Way
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.cluster.server_node import ServerNode
from tests.qualification.observers.receipts import namespace_key, partition_name
from tests.qualification.recorder.operations import Tally
from tests.qualification.scenarios.stage import Stage
from tests.qualification.traffic.wording import text_of, word_of

PASSAGE: Final = b"passage: "
"""Before each text that the provider is given, and before no question."""

SESSION: Final = "assistant"
LEASE_TTL_SECONDS: Final = 3.0
"""Of a cluster's servers."""
_STATUS_SECONDS: Final = 60.0
_PATIENT_SECONDS: Final = 300.0
_CAUGHT_UP_SECONDS: Final = 300.0


@dataclass(slots=True)
class IndexedPlace:
    """`clients[i]` goes to server i alone, by its wire; `client` by the front door."""

    tenant: str
    canary: str
    client: MemoryClient
    clients: Sequence[MemoryClient]
    key: bytes
    partition: str
    tally: Tally
    """Takes the calls that are made here and by probes for the row's."""
    remembered: list[str] = field(default_factory=list)
    """The requests by which it remembered; each one's text follows from it."""
    words: set[bytes] = field(default_factory=set)
    """Of all texts that it has remembered or is about to: each has one that no other has."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @classmethod
    async def open(cls, stage: Stage, name: str, *, by_hand: bool = False) -> Self:
        """With an open session. `by_hand`: the index moves only when it is told to."""
        cluster, tenant = stage.cluster, f"{stage.prefix}{name}"
        client = cluster.client(tenant)
        tally = Tally(stage.result.operations, stage.timeline)
        await tally.of("OpenSession", client.open_session(SESSION, max_results=5))
        if by_hand:
            await tally.of("SetSchedule", client.set_schedule())
        status = await tally.of("GetIndexStatus", client.get_index_status())
        key = namespace_key(tenant, "user-1", "default")
        return cls(
            tenant=tenant,
            canary=cluster.canary,
            client=client,
            clients=[cluster.client(tenant, address=f"127.0.0.1:{wire.port}") for wire in cluster.wires],
            key=key,
            partition=partition_name(key, status.generation.authority_digest),
            tally=tally,
        )

    async def remember(self, count: int) -> None:
        """So many memories that nobody has remembered before."""
        for number in itertools.islice(self._numbers, count):
            request_id = f"{self.tenant}-{number}"
            self.words.add(word_of(request_id).encode())
            text = text_of(request_id, self.canary)
            remembering = self.client.remember(text, node_id=f"node-{number}", request_id=request_id)
            await self.tally.of("Remember", remembering)
            self.remembered.append(request_id)

    async def refresh(self, server: int) -> RefreshReceipt:
        """By that server. Raises: MemoryServiceError."""
        refreshing = self.clients[server].refresh_semantic_recall(SESSION)
        return await self.tally.of("RefreshSemanticRecall", refreshing.wait())

    async def refresh_when_free(self, server: int) -> RefreshReceipt:
        """As soon as nobody else holds the lease. Raises: MemoryServiceError for any other reason."""
        receipts: list[RefreshReceipt] = []

        async def refreshed() -> bool:
            with suppress(LeaseHeldError):
                receipts.append(await self.refresh(server))
            return bool(receipts)

        await wait_until_async(refreshed, _PATIENT_SECONDS, what="nobody holds the lease any more")
        return receipts[0]

    async def caught_up(self, timeout: float = _CAUGHT_UP_SECONDS) -> IndexStatus:
        """The status of an index that has all that is ACTIVE, or the last one when time is up."""
        statuses: list[IndexStatus] = []

        async def is_there() -> bool:
            with suppress(MemoryServiceError):
                asking = self.client.get_index_status(timeout=_STATUS_SECONDS)
                statuses.append(await self.tally.of("GetIndexStatus", asking))
                return _covers_all(statuses[-1])
            return False

        with suppress(AssertionError):
            await wait_until_async(is_there, timeout, what="the index has everything")
        return statuses[-1] if statuses else await self.client.get_index_status()


def _covers_all(status: IndexStatus) -> bool:
    return (
        status.state is IndexState.CURRENT
        and status.unindexed_active_count == 0
        and status.last_receipt is not None
        and status.last_receipt.source == status.change_token
    )


def passages(chunk: bytes, words: Iterable[bytes]) -> int:
    """How many texts with one of these words a chunk to the provider holds. Other namespaces' are none of them."""
    return sum(word in chunk for word in words) if PASSAGE in chunk else 0


def holding_passages(place: IndexedPlace) -> Rule:
    """Hold what has a text of this place embedded, and nothing else."""

    def rule(way: Way, chunk: bytes) -> Fate:
        return Fate.HOLD if way is Way.TO_SERVER and passages(chunk, place.words) else Fate.PASS

    return rule


async def sender_of(held: Held, cluster: Cluster) -> ServerNode:
    """The server whose message waits at the first proxy on its way. Raises: LookupError."""

    def find() -> ServerNode | None:
        for server in cluster.servers:
            with suppress(RuntimeError, psutil.Error):
                for connection in psutil.Process(server.pid).net_connections("tcp"):
                    if connection.laddr and connection.laddr.port == held.client_port:
                        return server
        return None

    server = await asyncio.to_thread(find)
    if server is None:
        raise LookupError("no server has sent what is held")
    return server


async def fence_of(refreshing: asyncio.Task[RefreshReceipt]) -> int:
    """Under which a refresh came through in the end; 0 if it failed. Clients repeat one whose outcome is unknown."""
    try:
        return (await refreshing).fence
    except MemoryServiceError:
        return 0
