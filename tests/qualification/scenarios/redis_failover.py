"""Row 4: Redis fails over, loses what it acknowledged, comes back empty, or is away, while refreshes and recalls run.

First under traffic, whose callers hold every recall against what they know. Then with nobody writing, so that what it
costs to build everything again can be told to the last text.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from durable_memory_client import IndexState, IndexStatus, RecallMode
from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.processes.proxy import Fate, Way, always
from tests.qualification.checks import fencing, index, partitions, probes
from tests.qualification.checks.availability import by_fault
from tests.qualification.checks.doubts import Span
from tests.qualification.checks.recall import hits_by_meaning
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.faults.fault import Fault
from tests.qualification.faults.redis import (
    KILLED_OUTAGE,
    SILENT_OUTAGE,
    EmptyRestart,
    PrimaryFrozen,
    PrimaryKilled,
)
from tests.qualification.observers.leases import LeaseObserver
from tests.qualification.observers.receipts import Record, Repository, namespace_key
from tests.qualification.observers.stored_keys import stored_keys
from tests.qualification.report.results import distribution
from tests.qualification.report.timeline import Lane
from tests.qualification.scenarios.endurance import inject_all, judge, judged_all_the_same, spans_of
from tests.qualification.scenarios.indexed_place import LEASE_TTL_SECONDS, IndexedPlace, passages
from tests.qualification.scenarios.past_faults import LOST_INDEX_AND_SLOW_PROVIDER
from tests.qualification.scenarios.recall_probe import PATIENCE_SECONDS, RecallProbe
from tests.qualification.scenarios.redis_losses import (
    AmidRefresh,
    OnRecord,
    PublicationLost,
    Witnessed,
    never_amid,
    refreshed,
    status_of,
)
from tests.qualification.scenarios.stage import Stage
from tests.qualification.traffic.callers import Rememberer, Reviser
from tests.qualification.traffic.readers import Admitter, Recaller
from tests.qualification.traffic.traffic import Traffic
from tests.qualification.traffic.wording import SHARED_WORD

_ALWAYS_ANSWERED: Final = frozenset({"AUTO", "LEXICAL"})
_USUAL_RECALL_SECONDS: Final = 3.5
"""AUTO waits 2 s for vectors before it goes without them. How many take longer than this is told, and not judged."""

_CALLERS: Final = (Rememberer, Reviser, Recaller, Recaller, Admitter)
_PAUSE_SECONDS: Final = 0.6
"""Slow enough for the model to keep up: what has no vector yet cannot be recalled wrongly by one."""

_BACK_SECONDS: Final = 180.0
_CAUGHT_UP_SECONDS: Final = 300.0
_AFTER_SECONDS: Final = 1.0
"""A gap that begins up to then is the fault's, however long it lasts; a later one may be the next one's."""

_REGRESSED: Final = "INDEX_REGRESSED"


class RedisFailover:
    row = 4
    name = "redis_failover"
    promise = (
        "Sentinel promotes a replica while refreshes run; also a promotion that loses acknowledged Redis writes, a "
        "restart with empty memory, and a full outage: fences stay monotonic, regress is detected, recall never serves "
        "a wrong item, rebuild costs zero provider calls"
    )

    async def run(self, stage: Stage) -> None:
        cluster = stage.cluster
        tenants = [f"{stage.prefix}a", f"{stage.prefix}b"]
        place = await IndexedPlace.open(stage, "probed")
        await place.remember(8)
        await place.caught_up()
        unattended = await IndexedPlace.open(stage, "unattended", by_hand=True)
        record = OnRecord(
            [place.key, unattended.key, *(namespace_key(tenant, "user-1", "default") for tenant in tenants)]
        )
        nodes = {node.name: node.port for node in cluster.redis.nodes}
        async with LeaseObserver(nodes, stage.timeline) as observer:
            losing, amid = PublicationLost(place, unattended, observer), Counter[str]()
            faults: list[Fault] = [
                *(AmidRefresh(fault, place, observer, amid) for fault in (PrimaryKilled(), PrimaryFrozen())),
                *(losing, EmptyRestart(), SILENT_OUTAGE, KILLED_OUTAGE),
            ]
            seed = stage.rng.random().hex()
            async with Traffic(cluster, tenants, seed=seed, kinds=_CALLERS, pause=_PAUSE_SECONDS) as traffic:
                async with judged_all_the_same(stage, traffic), RecallProbe(place) as probe:
                    await inject_all(stage, traffic, [Witnessed(fault, record) for fault in faults])
                # Only now: judging takes the processor that recalls need, and would be taken for slowness of theirs.
                await judge(stage, traffic)
            spans = spans_of(stage, traffic, {fault.name for fault in faults})
            by_meaning = hits_by_meaning(traffic.history.answered)
            amid_faults = sum(_amid(spans, one.began, one.ended) for one in by_meaning)
            stage.found("recalls by meaning go on while Redis fails", amid_faults, [])
            stage.result.figures["traffic_recalled_by_meaning"] = len(by_meaning)
            places = [place, *(await _places(stage, tenants))]
            stage.found("primaries fail while refreshes run", sum(amid.values()), never_amid(amid))
            _judge_losses(stage, losing)
            await _rebuilt(stage, places, unattended)
            await _conclude(stage, observer, record, [*places, unattended])
        _judge_probes(stage, place, probe.probes, spans)
        stage.result.caveats.append(
            "The sentinels call a primary down after 2 s, which is about half of the time without recall by meaning; "
            "a deployment's own setting comes in its place."
        )


async def _places(stage: Stage, tenants: Sequence[str]) -> list[IndexedPlace]:
    return [await IndexedPlace.open(stage, tenant.removeprefix(stage.prefix)) for tenant in tenants]


def _judge_losses(stage: Stage, losing: PublicationLost) -> None:
    promotions = losing.promotions
    stage.found("the promotion lost a publication", len(promotions), index.lost_nothing(promotions))
    stage.found("an index that lost a publication is known as such", len(promotions), index.unnoticed(promotions))
    behind = [problem for status in losing.rebuilt for problem in index.not_caught_up({"unattended": status})]
    stage.found("an index that lost a publication is built again", len(losing.rebuilt), behind)


async def _rebuilt(stage: Stage, attended: Sequence[IndexedPlace], unattended: IndexedPlace) -> None:
    """Everything is lost when nobody writes: what comes back is what was there, and no text is sent anywhere."""
    cluster, proxy, places = stage.cluster, stage.cluster.embedding.proxy, [*attended, unattended]
    await refreshed(unattended)  # what the faults before took from it is nobody else's to bring back
    before_status = [await place.caught_up(_CAUGHT_UP_SECONDS) for place in places]
    stage.found("the index catches up with what was written meanwhile", len(places), _behind(places, before_status))
    before = await _vectors(cluster)
    known = {(one.partition, one.position) for one in (await _read(cluster, places)).receipts}
    words = [word for place in places for word in await _words(place)]
    sent = 0

    def count(way: Way, chunk: bytes) -> Fate:
        nonlocal sent
        if way is Way.TO_SERVER:
            sent += passages(chunk, words)
        return Fate.PASS

    proxy.rule = count
    try:
        with stage.timeline.span(Lane.FAULT, "restart of Redis without data, nobody writes"):
            await lose_everything(stage, attended)
            await judge_detection(stage, unattended)
        after_status = [await place.caught_up() for place in places]
    finally:
        proxy.rule = always
    after = await _vectors(cluster)
    own = {place.partition for place in places}
    receipts = [one for one in (await _read(cluster, places)).receipts if (one.partition, one.position) not in known]
    stage.found("a rebuild costs nothing", len(receipts), index.paid_rebuilds(receipts, sent))
    stage.found(
        "vectors are the same, bit for bit",
        sum(len(vectors) for name, vectors in before.items() if name in own),
        index.changed_vectors({name: one for name, one in before.items() if name in own}, after),
    )
    generations = [[one.generation.authority_digest for one in statuses] for statuses in (before_status, after_status)]
    stage.found("the generation is the same", len(generations), index.changed_identity(map(set, generations)))
    stage.found("the index catches up with what was lost", len(places), _behind(places, after_status))


async def lose_everything(stage: Stage, attended: Sequence[IndexedPlace]) -> None:
    """Until all places are recalled by meaning again; what recalls find meanwhile is right."""
    async with RecallProbe(attended[0]) as probe:
        await stage.cluster.redis.restart_empty_everywhere()
        stage.result.faults["restart of Redis without data, nobody writes"] += 1
        began = time.monotonic()
        # What nobody asks for is nobody's loss: it is found lost when it is asked for.
        await asyncio.gather(*(_found_again(place) for place in attended))
        stage.result.figures["seconds_to_hybrid_after_all_was_lost"] = round(time.monotonic() - began, 2)
    for reason, times in probes.reasons(probe.probes).items():
        stage.result.figures[f"recalls_without_vectors_when_all_was_lost: {reason}"] = times
    wrong = probes.wrongly_answered(probe.probes, "node-0", _own(attended[0]))
    stage.found("recall finds what it was asked for while all is lost and built again", len(probe.probes), wrong)


async def judge_detection(stage: Stage, unattended: IndexedPlace) -> None:
    """Of an index that is lost: what recalls and its status call it, for as long as nobody builds it again. Then do.

    Elsewhere whoever finds it lost builds it again at once, and there may be no recall in between.
    """
    async with RecallProbe(unattended, [RecallMode.AUTO]) as probe:
        with suppress(WaitTimeoutError):
            await wait_until_async(
                lambda: not probes.unsaid(probe.probes, _REGRESSED), _BACK_SECONDS, what=f"a recall says {_REGRESSED}"
            )
    called = (await status_of(unattended)).state.name
    other = [] if called == IndexState.REGRESSED.name else [f"the index was called {called} when all was lost"]
    stage.found("regress is detected", len(probe.probes), [*probes.unsaid(probe.probes, _REGRESSED), *other])
    wrong = probes.wrongly_answered(probe.probes, "node-0", _own(unattended))
    stage.found("recall from a lost index finds what it was asked for", len(probe.probes), wrong)
    await refreshed(unattended)


def _own(place: IndexedPlace) -> set[str]:
    return {f"node-{number}" for number in range(len(place.remembered))}


async def _words(place: IndexedPlace) -> list[bytes]:
    """Of all texts that it has: each begins with one that no other has."""
    return [node.content.split(maxsplit=1)[0].encode() for node in await place.client.snapshot().all()]


def _behind(places: Sequence[IndexedPlace], statuses: Sequence[IndexStatus]) -> list[str]:
    return index.not_caught_up({place.tenant: status for place, status in zip(places, statuses, strict=True)})


async def _found_again(place: IndexedPlace) -> None:
    async with RecallProbe(place, [RecallMode.AUTO], question=f"{place.canary} {SHARED_WORD}") as probe:
        await wait_until_async(
            lambda: bool(probe.probes) and probe.probes[-1].is_by_meaning,
            _BACK_SECONDS,
            what="recall by meaning is back",
        )


async def _vectors(cluster: Cluster) -> Mapping[str, index.Vectors]:
    async with cluster.redis.client() as client:
        return partitions.vectors_of(await stored_keys(client))


async def _read(cluster: Cluster, places: Sequence[IndexedPlace]) -> Record:
    return await Repository(cluster.postgres.direct_dsn()).read([place.key for place in places])


async def _conclude(stage: Stage, observer: LeaseObserver, record: OnRecord, places: Sequence[IndexedPlace]) -> None:
    """What the store of leases and index did in all its histories, against what is on record."""
    kept = await record.read(stage.cluster)
    own = {place.partition for place in places}
    seen = [one for one in observer.seen if one.partition in own]
    primary = await asyncio.to_thread(lambda: stage.cluster.redis.primary.name)
    latest = {name: one for name, one in observer.latest_at(primary).items() if name in own}
    below = [problem for at, floors in record.floors for problem in fencing.granted_below_the_floor(seen, floors, at)]
    stage.found("fences are monotonic", len(seen), fencing.problems(seen, kept.receipts, ttl_seconds=LEASE_TTL_SECONDS))
    stage.found("fences are above what was on record before each fault", len(record.floors), below)
    stage.found("what is on record stays", record.looks, record.problems)
    stage.found(
        "what is on record is under fences on record",
        len(kept.receipts),
        fencing.records_above_the_floor(kept.receipts, kept.intents, kept.floors),
    )
    publications = len({one.published.nonce for one in seen if one.published is not None})
    stage.found("index revisions rise by one", publications, index.problems(seen))
    stage.found(
        "what is published is on record", len(latest), index.off_the_record(latest, kept.receipts, kept.intents)
    )
    paid, cached = await _paid(stage.cluster, kept, places)
    stage.found(
        "no text is paid for twice",
        cached,
        [f"{paid} texts were given to the provider, and {cached} vectors came of it"] if paid > cached else [],
    )
    figures = stage.result.figures
    figures["histories_of_the_store"] = len(observer.reigns)
    figures["grants"] = len({one.lease.nonce for one in seen if one.lease is not None})
    figures["publications"] = publications
    figures["publications_lost_by_the_store"] = index.lost_publications(seen)
    figures["moments_missed_by_the_observer"] = observer.missed


async def _paid(cluster: Cluster, kept: Record, places: Sequence[IndexedPlace]) -> tuple[int, int]:
    """Texts that receipts say were embedded, and vectors that are cached."""
    repository = Repository(cluster.postgres.direct_dsn())
    cached = [len(await repository.vectors(place.key)) for place in places]
    return sum(one.work.get("provider_inputs", 0) for one in kept.receipts), sum(cached)


def _amid(spans: Sequence[Span], began: float, ended: float) -> bool:
    """Whether it happened from its beginning to its end while one of these lasted."""
    return any(since <= began and ended <= until for since, until in spans)


def _judge_probes(stage: Stage, place: IndexedPlace, asked: Sequence[probes.Probe], spans: Sequence[Span]) -> None:
    own = _own(place)
    stage.found(
        "recall goes on, by words if need be",
        len(asked),
        probes.unanswered(asked, modes=_ALWAYS_ANSWERED, patience_seconds=PATIENCE_SECONDS),
    )
    stage.found("recall says why it goes without vectors", len(asked), probes.wrongly_refused(asked))
    stage.found("recall finds what it was asked for", len(asked), probes.wrongly_answered(asked, "node-0", own))
    amid = [one for one in asked if one.is_by_meaning and _amid(spans, one.began, one.ended)]
    wrong = probes.wrongly_answered(amid, "node-0", own)
    stage.found("recall by meaning finds what it was asked for while Redis fails", len(amid), wrong)
    began, ended = asked[0].began, asked[-1].ended
    faults = [event for event in stage.timeline.events if event.lane is Lane.FAULT and began <= event.began < ended]
    figures = stage.result.figures
    for what, successes in (
        ("recall", probes.answered(asked, _ALWAYS_ANSWERED)),
        ("recall_by_meaning", probes.by_meaning(asked)),
    ):
        for label, gaps in by_fault(successes, faults, after=_AFTER_SECONDS, until=ended).items():
            figures[f"worst_seconds_without_{what}: {label}"] = round(max(gaps), 2)
    for mode in sorted(_ALWAYS_ANSWERED):
        took = probes.seconds_taken(asked, mode)
        figures[f"recalls_that_took_more_than_{_USUAL_RECALL_SECONDS:g}_s: {mode}"] = sum(
            one > _USUAL_RECALL_SECONDS for one in took
        )
        if (distributed := distribution(took, "seconds")) is not None:
            stage.result.distributions[f"probing_recalls: {mode}"] = distributed
    for reason, count in probes.reasons(asked).items():
        figures[f"recalls_without_vectors: {reason}"] = count


SCENARIO: Final = RedisFailover()
REGRESSIONS: Final = (LOST_INDEX_AND_SLOW_PROVIDER,)
