"""Row 10: two tenants that must not notice each other, through the front, each with a token of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from durable_memory_client import MemoryClient
from tests.processes.polling import wait_until_async
from tests.qualification.checks import isolation
from tests.qualification.checks.isolation import Said
from tests.qualification.checks.partitions import decode
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.cluster.credentials import ISOLATED_TENANTS
from tests.qualification.observers.receipts import namespace_key, partition_name
from tests.qualification.observers.stored_keys import stored_keys
from tests.qualification.report.results import distribution
from tests.qualification.scenarios import isolation_names, isolation_rpcs
from tests.qualification.scenarios.isolation_crowd import Crowd
from tests.qualification.scenarios.isolation_names import Names
from tests.qualification.scenarios.isolation_rpcs import EveryRpc, Tried
from tests.qualification.scenarios.isolation_skew import MOST_OWN, QUIET, Skew
from tests.qualification.scenarios.stage import Stage
from tests.qualification.scenarios.table import BY_NUMBER

_SMALL_COUNT: Final = 5
_SECONDS_PER_MEMORY: Final = 60.0
_SHARE_OF_A_PHASE: Final = 0.12
_TIMES: Final = 7
_EVICTIONS: Final = "durable_memory.views.evictions"
_LOADS: Final = "durable_memory.views.loads"
_METRIC_SECONDS: Final = 180.0
_CAVEATS: Final = (
    "How long refusals and recalls take is a figure and no verdict: on a busy machine it says little.",
    "The big tenant's memories are a few texts, many times over: a model would not embed as many different ones in the "
    "time of a run. To indexes and views they are as many.",
    "At the server that has little room recalls are by words alone: its views are evicted, and no vectors are.",
    "Operators see figures of a whole process, by design: a credential with that role is not a tenant's alone.",
)


class Isolation:
    """See `Scenario`."""

    row = 10
    name = "isolation"
    promise = BY_NUMBER[10].promise

    async def run(self, stage: Stage) -> None:
        """Every RPC first, names that are like others, then the skew, and at last what is stored."""
        mark = f"{stage.prefix}{stage.rng.getrandbits(32):08x}"
        await _every_rpc(stage, mark)
        await _names(stage, mark)
        await _skew(stage, mark)
        stage.result.caveats += _CAVEATS


async def _every_rpc(stage: Stage, mark: str) -> None:
    cluster = stage.cluster
    intruder, owner = ISOLATED_TENANTS
    trial = EveryRpc(
        cluster.address,
        intruder=(intruder, cluster.token(intruder)),
        owner=(owner, cluster.token(owner)),
        owner_client=cluster.tenant_client(owner, principal=f"{mark}-owner", scope="kept"),
    )
    tried = await trial.run(_TIMES)
    _judge_rpcs(stage, tried)
    ratios = sorted(tried.ratios.values())
    stage.result.figures |= {
        "rpcs_tried": len(tried.rpcs),
        "refusal_time_ratio_median": round(ratios[len(ratios) // 2], 3),
        "refusal_time_ratio_highest": round(ratios[-1], 3),
        "refusal_time_ratio_lowest": round(ratios[0], 3),
    }
    _count(stage, [said for kinds in (*tried.denied.values(), *tried.own.values()) for said in kinds])


def _judge_rpcs(stage: Stage, tried: Tried) -> None:
    rpcs = len(tried.rpcs)
    stage.found("every RPC was tried", rpcs, isolation.unasked(tried.rpcs, tried.asked))
    stage.found("and in the other's namespace", rpcs, isolation.unasked(tried.rpcs, tried.denied))
    foreign = {f"{name} {number}": said for name, kinds in tried.denied.items() for number, said in enumerate(kinds)}
    stage.found("a foreign namespace is denied", len(foreign), isolation.let_in(foreign))
    stage.found("whatever is in it, alike", len(tried.denied), isolation.told_apart(tried.denied))
    stage.found("another's id is nobody's", len(tried.own), isolation.told_apart(tried.own))
    missing = {name: kinds[0] for name, kinds in tried.own.items() if kinds[0].status != "OK"}
    not_found = [
        f"{name} is refused with {said.status} {said.reason}"
        for name, said in missing.items()
        if said.status != "NOT_FOUND"
    ]
    stage.found("and is not found", len(missing), not_found)
    stage.found(
        "another's export is refused", 1, isolation.let_in({"ImportNamespace": tried.imported}, ["INVALID_FIELD"])
    )
    answers = tried.everything
    stage.found("no answer gives away a text", len(answers), isolation.given_away(answers, isolation_rpcs.SECRETS))
    stage.found("the other's namespace is what it was", len(tried.before), isolation.moved(tried.before, tried.after))


async def _names(stage: Stage, mark: str) -> None:
    cluster = stage.cluster
    intruder, owner = ISOLATED_TENANTS
    kept = cluster.tenant_client(owner, principal=f"{mark}-owner", scope="kept")
    own = cluster.tenant_client(intruder, principal=f"{mark}-names", scope="strange")
    everybody = cluster.client(f"{mark}-everybody")
    applied = next(one for one in await kept.list_change_sets().all() if one.method == "ApplyChangeSet").idempotency_key
    before = (await kept.get_change_token(), await kept.list_sessions().all())
    trials: Sequence[tuple[str, Names]] = (
        ("no tenant by a name like it", await isolation_names.foreign_tenants(own, kept.ref)),
        ("no namespace by a name like it", await isolation_names.near_namespaces(everybody, kept.ref)),
        ("names that join alike stay apart", await isolation_names.meeting(everybody, f"{mark}-everybody", mark)),
        ("no id by an id like it", await isolation_names.near_ids(kept, "secret", "theirs", applied)),
        ("strange ids are ids", await isolation_names.strange_ids(own, "secret")),
    )
    for check, names in trials:
        stage.found(check, names.tried, names.problems)
    after = (await kept.get_change_token(), await kept.list_sessions().all())
    stage.found("names have moved nothing", 1, isolation.moved({"the namespace": before}, {"the namespace": after}))


async def _skew(stage: Stage, mark: str) -> None:
    cluster = stage.cluster
    intruder, owner = ISOLATED_TENANTS
    small = cluster.tenant_client(intruder, principal=f"{mark}-small")
    big = cluster.tenant_client(owner, principal=f"{mark}-big")
    evictions, loads = cluster.telemetry.total(_EVICTIONS), cluster.telemetry.total(_LOADS)
    skew = Skew(small, big, count=_count_of_small(stage.seconds), canary=cluster.canary, rng=stage.rng)
    await skew.run(stage.seconds * _SHARE_OF_A_PHASE)
    noticed = skew.noticed
    recalls = noticed.recalls
    stage.found("the small tenant is always answered", noticed.calls, noticed.late)
    stage.found("and finds all of its own", len(recalls), isolation.starved(recalls))
    stage.found("and nothing else", len(recalls), isolation.strange(recalls, skew.small_ids))
    stage.found("only its own is searched", len(recalls), isolation.overcounted(recalls))
    await _metrics_since(cluster, time.monotonic())
    evicted = cluster.telemetry.total(_EVICTIONS) - evictions
    loaded = cluster.telemetry.total(_LOADS) - loads
    await _stored(stage, small, big, skew)
    await _cached(stage, skew, mark)
    _latencies(stage, skew)
    await _crowded(stage, skew, mark)
    stage.result.figures |= {
        "small_tenant_memories": len(skew.small_ids),
        "big_tenant_memories": len(skew.big_ids),
        "big_tenant_recalls": skew.big_recalls,
        "views_loaded": int(loaded),
        "views_evicted": int(evicted),
        "small_tenant_indexed_beside_big_refresh_seconds": round(noticed.indexed_after, 3),
    }


def _count_of_small(seconds: float) -> int:
    """How many memories the small tenant begins with."""
    return min(MOST_OWN, max(_SMALL_COUNT, round(seconds / _SECONDS_PER_MEMORY)))


async def _crowded(stage: Stage, skew: Skew, mark: str) -> None:
    """The small tenant at a server that has no room for all that is asked for."""
    intruder, owner = ISOLATED_TENANTS
    crowd = Crowd(
        stage.cluster,
        small=(intruder, f"{mark}-small"),
        others=(owner, f"{mark}-crowd"),
        own=sorted(skew.small_ids),
        question=skew.question,
    )
    crowded = await crowd.run(stage.seconds * _SHARE_OF_A_PHASE)
    own = [
        *isolation.starved(crowded.recalls),
        *isolation.strange(crowded.recalls, skew.small_ids),
        *isolation.overcounted(crowded.recalls),
    ]
    few = [] if crowded.evicted else ["no view was evicted, whatever was asked for"]
    stage.found("a server without room for all evicts views", crowded.evicted, few)
    stage.found("and answers everybody all the same", crowded.calls, crowded.late)
    stage.found("the small tenant with all of its own", len(crowded.recalls), own)
    stage.result.figures["views_evicted_where_there_is_little_room"] = crowded.evicted
    if (spread := distribution(crowded.seconds, "seconds")) is not None:
        stage.result.distributions["small tenant's recalls while views are evicted"] = spread


async def _metrics_since(cluster: Cluster, moment: float) -> int:
    """Wait until each server has said once more how much was evicted; how many said so."""

    def arrived() -> int:
        fresh = {one.instance for one in cluster.telemetry.metric_values(_EVICTIONS) if one.arrived > moment}
        return len(fresh) if len(fresh) >= len(cluster.servers) else 0

    return await wait_until_async(arrived, _METRIC_SECONDS, what="the servers say how much was evicted")


async def _stored(stage: Stage, small: MemoryClient, big: MemoryClient, skew: Skew) -> None:
    """What is in the index of each, by the keys there."""
    client = stage.cluster.redis.client()
    try:
        stored = await stored_keys(client)
    finally:
        await client.aclose()
    keys: dict[str, set[str]] = {}
    records: dict[str, tuple[set[str], set[str]]] = {}
    for name, memory, own in (("the small tenant", small, skew.small_ids), ("the big tenant", big, skew.big_ids)):
        generation = (await memory.get_index_status()).generation
        ref = memory.ref
        assert ref.tenant is not None
        assert ref.principal is not None
        assert ref.scope is not None
        partition = partition_name(namespace_key(ref.tenant, ref.principal, ref.scope), generation.authority_digest)
        mine = [key for key in stored if f"{{{partition}}}" in key.name]
        keys[name] = {key.name for key in mine}
        segments = [key for key in mine if ":seg:" in key.name]
        records[name] = ({record.node_id for key in segments for record in decode(key.data)}, own)
    looked_at = sum(len(node_ids) for node_ids, _ in records.values())
    stage.found("each has its own partition", looked_at, isolation.partitions_shared(keys, records))


async def _cached(stage: Stage, skew: Skew, mark: str) -> None:
    """A tenant remembers what another one has had embedded already."""
    intruder, _ = ISOLATED_TENANTS
    memory = stage.cluster.tenant_client(intruder, principal=f"{mark}-cache")
    await memory.set_schedule()
    await memory.open_session("assistant")
    await memory.remember(skew.big_text(0))
    work = (await memory.refresh_semantic_recall("assistant").wait()).work
    found = isolation.paid_by_others({"the small tenant": (work.cache_hits, work.provider_inputs)})
    stage.found("no vector of another is there before", 1, found)


def _latencies(stage: Stage, skew: Skew) -> None:
    quiet = skew.noticed.seconds[QUIET]
    for during, seconds in skew.noticed.seconds.items():
        if not seconds:
            continue
        label = during.removesuffix(" of the other").removeprefix("a ").replace(" ", "_")
        spread = distribution(seconds, "seconds")
        assert spread is not None
        stage.result.distributions[f"small tenant's recalls during {during}"] = spread
        if during != QUIET and quiet:
            slower = isolation.ratio(seconds, quiet)
            stage.result.figures[f"small_tenant_slower_during_{label}_ratio"] = round(slower, 2)


def _count(stage: Stage, answers: Sequence[Said]) -> None:
    for said in answers:
        outcome = "ok" if said.status == "OK" else "refused"
        stage.result.operations.attempts["every RPC", outcome] += 1
        if outcome == "refused":
            stage.result.operations.refusals[said.reason or said.status] += 1


SCENARIO: Final = Isolation()
