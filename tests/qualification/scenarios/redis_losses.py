"""What row 4 does to Redis beside the plain faults: losses that are to be noticed, and failures amid a refresh."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Final

from durable_memory_client import IndexStatus, MemoryServiceError, RefreshReceipt
from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.qualification.checks import fencing
from tests.qualification.checks.index import Promotion
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.cluster.redis_group import RedisNode
from tests.qualification.faults.fault import Fault
from tests.qualification.observers.leases import LeaseObserver
from tests.qualification.observers.receipts import Floor, Record, Repository
from tests.qualification.report.timeline import Lane
from tests.qualification.scenarios.indexed_place import IndexedPlace, holding_passages

PUBLISHED_SECONDS: Final = 180.0
"""No promise, but the end of patience: the provider may be slow. Replicas that hear nothing wait for longer than three
of these: those that connect anew get what was to be lost."""

_STATUS_SECONDS: Final = 120.0
_CALL_SECONDS: Final = 10.0
_LEASE_SECONDS: Final = 180.0
_HELD_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.2


class PublicationLost:
    """A promotion that loses publications, and the grants they were made under, which the primary had acknowledged.

    `probed` is recalled from all the time, and indexed by itself, so that it is built again at once. `unattended` is
    indexed only when it is told to, and nobody recalls from it: between the promotion and the next publication there is
    time to ask what it is called.
    """

    name = "promotion in Redis that loses a publication"

    def __init__(self, probed: IndexedPlace, unattended: IndexedPlace, observer: LeaseObserver) -> None:
        self.promotions: list[Promotion] = []
        self.rebuilt: list[IndexStatus] = []
        """Of the unattended place, after it was refreshed again."""
        self._probed = probed
        self._unattended = unattended
        self._observer = observer
        self._published = 0

    def available(self, cluster: Cluster) -> bool:
        return all(node.is_running for node in cluster.redis.nodes)

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        # What survives is a sound index, only not the last: nothing but the record tells that it is behind.
        await self._publish(self._unattended)
        await cluster.redis.wait_settled()
        with ExitStack() as failing:

            async def publications() -> None:
                await self._publications()
                # Until here the primary is well, and who recalls by meaning has shown nothing.
                failing.enter_context(cluster.timeline.span(Lane.FAULT, self.name))

            old = await cluster.redis.promote_losing_writes(publications)
            new = await asyncio.to_thread(lambda: cluster.redis.primary)
            survived = await asyncio.to_thread(_published_at, new, self._unattended.partition)
            state = (await status_of(self._unattended)).state.name
            self.promotions.append(Promotion(published=self._published, survived=survived, state=state))
            await cluster.redis.rejoin(old)
        await self._publish(self._unattended)
        self.rebuilt.append(await status_of(self._unattended))
        return 1

    async def _publications(self) -> None:
        before = _revision(self._observer, self._probed)
        await self._probed.remember(1)
        self._published = (await self._publish(self._unattended)).index_revision
        await refreshed(self._probed)  # its schedule may be resting after what failed before
        await wait_until_async(
            lambda: _revision(self._observer, self._probed) > before, PUBLISHED_SECONDS, what="a publication"
        )

    async def _publish(self, place: IndexedPlace) -> RefreshReceipt:
        """Something new."""
        await place.remember(1)
        return await refreshed(place)


class AmidRefresh:
    """A fault that strikes while a lease is held: a text of the place is held on its way to the provider until then.

    The schedule may be resting after failures that came before: a refresh is asked for as well.
    """

    def __init__(self, fault: Fault, place: IndexedPlace, observer: LeaseObserver, amid: Counter[str]) -> None:
        """`amid` counts, by the fault's name, how often a live lease was seen before it."""
        self.name = fault.name
        self._fault = fault
        self._place = place
        self._observer = observer
        self._amid = amid
        amid[fault.name] += 0

    def available(self, cluster: Cluster) -> bool:
        return self._fault.available(cluster)

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        proxy = cluster.embedding.proxy
        proxy.rule = holding_passages(self._place)
        letting_go: asyncio.TimerHandle | None = None
        enough = asyncio.Event()
        asking = asyncio.create_task(self._ask_until(enough))
        try:
            await self._place.remember(1)
            with suppress(WaitTimeoutError):
                await wait_until_async(lambda: proxy.held and self._is_held(), _LEASE_SECONDS, what="a lease is held")
                self._amid[self.name] += 1
            enough.set()
            letting_go = asyncio.get_running_loop().call_later(_HELD_SECONDS, proxy.mend)
            return await self._fault.inject(cluster, rng)
        finally:
            if letting_go is not None:
                letting_go.cancel()
            proxy.mend()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _ask_until(self, enough: asyncio.Event) -> None:
        """For refreshes, one after the other. The last is not given up: it may be the one that the fault is to meet."""
        while not enough.is_set():
            with suppress(MemoryServiceError):
                await self._place.refresh(0)
            await asyncio.sleep(_LOOK_SECONDS)

    def _is_held(self) -> bool:
        one = self._observer.latest.get(self._place.partition)
        return one is not None and one.lease is not None and one.lease.is_live(time.time())


class Witnessed:
    """A fault before and after which the repository is read: what is on record may not go back."""

    def __init__(self, fault: Fault, record: OnRecord) -> None:
        self.name = fault.name
        self._fault = fault
        self._record = record

    def available(self, cluster: Cluster) -> bool:
        return self._fault.available(cluster)

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        before = await self._record.read(cluster)
        self._record.floors.append((time.monotonic(), before.floors))
        struck = await self._fault.inject(cluster, rng)
        after = await self._record.read(cluster)
        self._record.looks += 1
        self._record.problems += fencing.vanished_records(before.receipts, after.receipts)
        self._record.problems += fencing.fallen_floors(before.floors, after.floors)
        return struck


@dataclass(slots=True)
class OnRecord:
    """What the repository had of these namespaces around each fault."""

    keys: Sequence[bytes]
    looks: int = 0
    problems: list[str] = field(default_factory=list)
    floors: list[tuple[float, Mapping[str, Floor]]] = field(default_factory=list)

    async def read(self, cluster: Cluster) -> Record:
        return await Repository(cluster.postgres.direct_dsn()).read(self.keys)


def never_amid(amid: Mapping[str, int]) -> list[str]:
    """The faults that were to strike while a refresh ran, and never did."""
    return [f"no lease was held before any {name}" for name, times in amid.items() if not times]


def _revision(observer: LeaseObserver, place: IndexedPlace) -> int:
    one = observer.latest.get(place.partition)
    return 0 if one is None or one.published is None else one.published.index_revision


def _published_at(node: RedisNode, partition: str) -> int:
    """The index revision that this server has, 0 for none."""
    with node.client() as client:
        revision = client.hget(f"dm:{{{partition}}}:manifest", "index_revision")
    return int(revision) if isinstance(revision, bytes) else 0


async def refreshed(place: IndexedPlace) -> RefreshReceipt:
    """By hand, in the end: whoever found it lost may be at work at it, and servers may look for the primary."""
    receipts: list[RefreshReceipt] = []

    async def comes_through() -> bool:
        with suppress(MemoryServiceError):
            receipts.append(await place.refresh(0))
        return bool(receipts)

    async with asyncio.timeout(PUBLISHED_SECONDS):
        await wait_until_async(comes_through, PUBLISHED_SECONDS, what="a refresh comes through")
    return receipts[0]


async def status_of(place: IndexedPlace) -> IndexStatus:
    """The first that it answers: servers may still be looking for the new primary."""
    statuses: list[IndexStatus] = []

    async def answered() -> bool:
        with suppress(MemoryServiceError):
            statuses.append(await place.client.get_index_status(timeout=_CALL_SECONDS))
        return bool(statuses)

    await wait_until_async(answered, _STATUS_SECONDS, what="the status of the index is answered")
    return statuses[0]
