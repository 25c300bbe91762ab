"""Row 3: leases are renewed for as long as the work takes, and whoever was overtaken publishes nothing.

That a holder's own clock stops it is one thing. That the store refuses it all the same is another, and is tried by
itself: its publication is held on the wire until a successor has been granted a higher fence and has published nothing
yet, so that of all comparisons only that of owner and fence stands between it and the index.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from durable_memory_client import RefreshReceipt
from durable_memory_client.errors import LeaseHeldError
from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.processes.proxy import Fate, Held, Rule, Way, always
from tests.qualification.checks import fencing, index
from tests.qualification.observers.leases import LeaseObserver
from tests.qualification.observers.partition_seen import PartitionSeen, Published
from tests.qualification.observers.receipts import Repository
from tests.qualification.report.results import distribution
from tests.qualification.report.timeline import Lane
from tests.qualification.scenarios.indexed_place import (
    LEASE_TTL_SECONDS,
    IndexedPlace,
    fence_of,
    holding_passages,
    sender_of,
)
from tests.qualification.scenarios.stage import Stage

_OF_A_PUBLICATION: Final = b"source_history_id"
"""A word that only the publishing script is given."""

_TTLS_HELD: Final = 4
_FENCED: Final = b"*2\r\n:3\r\n"
"""How that script's refusal begins: {3, highest fence}."""

_STEP_SECONDS: Final = 180.0
"""No promise, but the end of patience: on a busy machine a step takes long."""

_ROUND_SECONDS: Final = 40.0
"""Where less than this is left of the scenario's time, no round is begun."""


def publication_to(partition: str) -> Rule:
    """Hold what publishes to this partition."""
    lease = f"dm:{{{partition}}}:lease".encode()

    def rule(way: Way, chunk: bytes) -> Fate:
        publishes = way is Way.TO_SERVER and lease in chunk and _OF_A_PUBLICATION in chunk
        return Fate.HOLD if publishes else Fate.PASS

    return rule


@dataclass(slots=True)
class _Course:
    """What is known on the way."""

    stage: Stage
    observer: LeaseObserver
    renewals: int = 0
    turned_away: int = 0
    held: list[str] = field(default_factory=list)
    slept: list[str] = field(default_factory=list)
    sleeps: int = 0
    late: list[str] = field(default_factory=list)
    lates: int = 0
    refused: int = 0
    orphans: list[index.Orphan] = field(default_factory=list)
    picked_up: list[float] = field(default_factory=list)
    not_picked_up: list[str] = field(default_factory=list)
    places: list[IndexedPlace] = field(default_factory=list)
    tasks: list[asyncio.Task[RefreshReceipt]] = field(default_factory=list)
    """Of refreshes that were begun: none of them goes on when the scenario is over, however it ends."""

    def begin(self, refresh: Coroutine[Any, Any, RefreshReceipt]) -> asyncio.Task[RefreshReceipt]:
        self.tasks.append(asyncio.create_task(refresh))
        return self.tasks[-1]

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def place(self, name: str, *, by_hand: bool = True) -> IndexedPlace:
        place = await IndexedPlace.open(self.stage, name, by_hand=by_hand)
        self.places.append(place)
        return place

    def latest(self, place: IndexedPlace) -> PartitionSeen | None:
        return self.observer.latest.get(place.partition)

    def fence(self, place: IndexedPlace) -> int:
        """Of the lease that is held; 0 if none is."""
        one = self.latest(place)
        return 0 if one is None or one.lease is None else one.lease.fence

    def published(self, place: IndexedPlace) -> Published | None:
        one = self.latest(place)
        return None if one is None else one.published


class LeaseLife:
    row = 3
    name = "lease_life"
    promise = (
        "renewal over many TTLs; a holder paused past its TTL and woken: its publication is refused; at most one "
        "holder at any time by the store's clock; fences strictly rise"
    )

    async def run(self, stage: Stage) -> None:
        cluster = stage.cluster
        ends_at = time.monotonic() + stage.seconds
        async with LeaseObserver({node.name: node.port for node in cluster.redis.nodes}, stage.timeline) as observer:
            course = _Course(stage, observer)
            try:
                await self._renewed(course)
                place, rounds = await course.place("overtaken"), 0
                while not rounds or time.monotonic() < ends_at - _ROUND_SECONDS:
                    rounds += 1
                    await self._late_publication(course, place, rounds % 2)
                    await self._slept(course, place, rounds % 2)
                await self._killed(course)
                await self._orphaned(course)
            finally:
                cluster.embedding.proxy.mend()
                for node in cluster.redis.nodes:
                    node.proxy.mend()
                for server in cluster.servers:
                    if server.is_paused:
                        server.wake()
                await course.end()
            await self._conclude(course)

    async def _renewed(self, course: _Course) -> None:
        """A refresh that takes many TTLs keeps its lease, and everybody else is turned away."""
        place, proxy = await course.place("renewed"), course.stage.cluster.embedding.proxy
        await place.remember(3)
        with course.stage.timeline.span(Lane.FAULT, "the provider takes many TTLs"):
            course.stage.result.faults["slow_provider"] += 1
            proxy.rule = holding_passages(place)
            refreshing = course.begin(place.refresh(0))
            await wait_until_async(lambda: proxy.held and course.fence(place), _STEP_SECONDS, what="a lease is held")
            fence = course.fence(place)
            ends_at = time.monotonic() + _TTLS_HELD * LEASE_TTL_SECONDS
            while time.monotonic() < ends_at:
                try:
                    await place.refresh(1)
                    course.held.append("another server refreshed while the lease was held")
                except LeaseHeldError:
                    course.turned_away += 1
                await asyncio.sleep(LEASE_TTL_SECONDS / 4)
            proxy.mend()
        receipt = await refreshing
        if receipt.fence != fence:
            course.held.append(f"the lease had fence {fence}, and the receipt has {receipt.fence}")
        ends = [
            one.lease.expires_at
            for one in course.observer.of(place.partition)
            if one.lease is not None and one.lease.fence == fence and one.lease.expires_at is not None
        ]
        course.renewals = len(set(ends)) - 1
        if ends[-1] - ends[0] < (_TTLS_HELD - 1) * LEASE_TTL_SECONDS:
            course.held.append(f"the lease was prolonged by {ends[-1] - ends[0]:.1f} s alone")

    async def _late_publication(self, course: _Course, place: IndexedPlace, holder: int) -> None:
        """A publication arrives when a successor has a higher fence, and the index is still the one it expects."""
        cluster = course.stage.cluster
        proxy = (await asyncio.to_thread(lambda: cluster.redis.primary)).proxy
        server, successor = cluster.servers[holder], 1 - holder
        await place.remember(2)
        proxy.rule = publication_to(place.partition)
        course.stage.result.faults["publication_held_and_holder_paused"] += 1
        refreshing = course.begin(place.refresh(holder))
        await wait_until_async(lambda: proxy.held, _STEP_SECONDS, what="a publication is held")
        fence = course.fence(place)
        server.pause()
        own = list(proxy.held)
        succeeding = course.begin(place.refresh_when_free(successor))
        await wait_until_async(
            lambda: course.fence(place) > fence and _of_others(proxy.held, own), _STEP_SECONDS, what="a successor"
        )
        before = course.published(place)
        for held in own:
            held.let_go()
            answer = await asyncio.wait_for(held.answer, _STEP_SECONDS)
            course.lates += 1
            if answer.startswith(_FENCED):
                course.refused += 1
            else:
                said = f"was answered {answer[:8]!r}"
                course.late.append(f"a publication under fence {fence}, after a higher one, {said}")
        if course.published(place) != before:
            course.late.append(f"the index has changed when a publication under fence {fence} arrived late")
        proxy.mend()
        succeeded = await fence_of(succeeding)
        server.wake()
        came_through = await fence_of(refreshing)
        if came_through == fence:
            course.late.append(f"a refresh under fence {fence} came through although it was overtaken")
        if succeeded <= fence:
            course.late.append(f"the successor of fence {fence} came through under fence {succeeded}, or not at all")

    async def _slept(self, course: _Course, place: IndexedPlace, holder: int) -> None:
        """A holder that was stopped past its TTL wakes, and has its vectors by then: it publishes nothing."""
        cluster = course.stage.cluster
        proxy, server = cluster.embedding.proxy, cluster.servers[holder]
        await place.remember(2)
        proxy.rule = holding_passages(place)
        course.stage.result.faults["holder_paused"] += 1
        refreshing = course.begin(place.refresh(holder))
        await wait_until_async(lambda: proxy.held and course.fence(place), _STEP_SECONDS, what="a lease is held")
        fence = course.fence(place)
        server.pause()
        proxy.rule = always
        succeeded = await fence_of(course.begin(place.refresh_when_free(1 - holder)))
        after = course.published(place)
        server.wake()
        proxy.mend()
        came_through = await fence_of(refreshing)
        course.sleeps += 1
        if came_through == fence:
            course.slept.append(f"a refresh under fence {fence} came through although it was overtaken")
        if succeeded <= fence:
            course.slept.append(f"the successor of fence {fence} came through under fence {succeeded}, or not at all")
        if course.published(place) != after:
            course.slept.append(f"the index has changed after the holder of fence {fence} woke")

    async def _killed(self, course: _Course) -> None:
        """A server dies with the lease and with work to do; another one does it."""
        place, cluster = await course.place("killed", by_hand=False), course.stage.cluster
        proxy = cluster.embedding.proxy
        for _ in cluster.servers:
            proxy.rule = holding_passages(place)
            await place.remember(2)
            await wait_until_async(lambda: proxy.held and course.fence(place), _STEP_SECONDS, what="a lease is held")
            fence, server = course.fence(place), await sender_of(proxy.held[0], cluster)
            await server.kill9()
            killed_at = time.monotonic()
            course.stage.result.faults["server_kill9"] += 1
            proxy.mend()
            try:
                overtaken = partial(_is_overtaken, course, place, fence)
                await wait_until_async(overtaken, _STEP_SECONDS, what="another holder")
                course.picked_up.append(time.monotonic() - killed_at)
            except WaitTimeoutError:
                course.not_picked_up.append(f"nobody took the work of fence {fence} up within {_STEP_SECONDS:g} s")
            await place.caught_up()
            await server.start()

    async def _orphaned(self, course: _Course) -> None:
        """A holder dies when it has published and has not heard of it: nobody is left who would write the receipt.

        It stands still from before its publication arrives: no answer has to be kept from it, and nobody else's is.
        """
        place, cluster = await course.place("orphaned"), course.stage.cluster
        proxy = (await cluster.redis.find_primary()).proxy
        for server in cluster.servers:
            await place.remember(2)
            proxy.rule = publication_to(place.partition)
            refreshing = course.begin(place.refresh(server.index))
            await wait_until_async(lambda: proxy.held, _STEP_SECONDS, what="a publication is held")
            fence, before = course.fence(place), course.published(place)
            server.pause()
            proxy.mend()
            await wait_until_async(partial(_has_moved, course, place, before), _STEP_SECONDS, what="it is published")
            await server.kill9()
            course.stage.result.faults["server_kill9"] += 1
            published = course.published(place)
            assert published is not None
            course.orphans.append(index.Orphan(partition=place.partition, fence=fence, published=published))
            # The next holder is another: a client asks the one that died again as soon as it is back.
            await fence_of(course.begin(place.refresh_when_free(1 - server.index)))
            await server.start()
            await fence_of(refreshing)

    async def _conclude(self, course: _Course) -> None:
        stage, observer = course.stage, course.observer
        statuses = {place.tenant: await place.caught_up() for place in course.places if place.tenant.endswith("killed")}
        repository = Repository(stage.cluster.postgres.direct_dsn())
        record = await repository.read([place.key for place in course.places])
        own = {place.partition for place in course.places}
        seen = [one for one in observer.seen if one.partition in own]
        latest = {name: one for name, one in observer.latest.items() if name in own}
        publications = len({one.published.nonce for one in seen if one.published is not None})
        missed = [f"{observer.missed} times something had happened that was not told"] if observer.missed else []
        stage.found("the observer misses nothing", observer.compared, missed)
        stage.found("a lease lives as long as its holder's work", course.renewals, course.held)
        stage.found("a late publication is refused by its fence", course.lates, course.late)
        stage.found("a holder that slept publishes nothing", course.sleeps, course.slept)
        stage.found("a dead holder's work is taken up", len(course.picked_up), course.not_picked_up)
        completed = index.not_completed(course.orphans, record.receipts)
        stage.found("a dead holder's publication is put on record", len(course.orphans), completed)
        fenced = fencing.problems(seen, record.receipts, ttl_seconds=LEASE_TTL_SECONDS)
        stage.found("one holder at a time, and fences that rise", len(seen), fenced)
        floors = fencing.records_above_the_floor(record.receipts, record.intents, record.floors)
        stage.found("what is on record is under fences on record", len(record.receipts), floors)
        moved = [
            *index.problems(seen),
            *index.off_the_record(latest, record.receipts, record.intents),
            *index.never_seen(seen, record.receipts),
        ]
        stage.found("index revisions rise by one, and are on record", publications, moved)
        stage.found("the index catches up", len(statuses), index.not_caught_up(statuses))
        figures = stage.result.figures
        figures["grants"] = len({one.lease.nonce for one in seen if one.lease is not None})
        figures["publications"] = publications
        figures["renewals_of_one_lease"] = course.renewals
        figures["late_publications_refused"] = course.refused
        figures["others_turned_away"] = course.turned_away
        if (taken_up := distribution(course.picked_up, "seconds")) is not None:
            stage.result.distributions["work_of_a_dead_holder_taken_up_after"] = taken_up
        stage.result.caveats.append(
            "The store's clock is one machine's: clocks that differ between a primary and its replica are not tried."
        )


def _has_moved(course: _Course, place: IndexedPlace, before: Published | None) -> bool:
    return course.published(place) != before


def _is_overtaken(course: _Course, place: IndexedPlace, fence: int) -> bool:
    return course.fence(place) > fence


def _of_others(held: list[Held], own: list[Held]) -> bool:
    return any(one not in own for one in held)


SCENARIO: Final = LeaseLife()
