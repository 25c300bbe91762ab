"""Row 6: half a year in a minute, and what has become of every memory at the end of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeVar

from durable_memory.adapters.postgres.migrations import migrate
from durable_memory_client import (
    Citation,
    MemoryClient,
    MemoryServiceError,
    Node,
    NodeStatus,
    RecallFilter,
    RecallMode,
    WatchedChange,
)
from durable_memory_client.values.transfer import record_of_line
from tests.processes.polling import wait_until_async
from tests.qualification.checks import horizon, kernel
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.observers.receipts import Repository
from tests.qualification.recorder.operations import operations
from tests.qualification.scenarios.horizon_hosts import Notes
from tests.qualification.scenarios.horizon_life import DAYS, INTERVAL, SILENCE, Ground, Life, covered
from tests.qualification.scenarios.stage import Stage

_KILLS: Final = (38, 121)
_RESTARTS: Final = (60,)
_JUMP_DAY: Final = 90
_BACK_DAY: Final = 75
_SET_BACK: Final = timedelta(seconds=100)
_AT_ONCE: Final = 8
"""How many readings are under way at a time."""

_SECONDS_PER_HOST: Final = 20.0
_SECONDS_OF_BUSY_DAYS: Final = 120.0
"""From how many seconds on hosts do something every day."""

_LEAST_ACTIVITY: Final = 0.2
"""However little time there is: months in which hosts do next to nothing show nothing."""

_CITATIONS_READ: Final = 250
_WAIT_SECONDS: Final = 180.0
_MOST_PER_RECALL: Final = 100
_CAVEATS: Final = (
    "The service does not consolidate, decay or prune by itself yet: consolidation, decay by a half-life and retention "
    "are done here by hosts, through change sets, as hosts do them today. What is shown is that none of these, and no "
    "passing of time, ends a memory that nobody named.",
    "Time passes in jumps of hours, days and a month. Redis and PostgreSQL keep clocks of their own: a lease's expiry "
    "in Redis was not sped up, the holder's distrust of its own lease was.",
    "The vectors are a stand-in's, which mean nothing: what is shown is that each ACTIVE memory has one, and is found "
    "by recalls that search them, not how well. Rows 7 and 8 have a real model.",
    "Half a year of two to four hosts is some thousand revisions, not the size of a large namespace.",
)

_T = TypeVar("_T")
_Asked = TypeVar("_Asked")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Everything of the hosts' namespace, read in every way that there is."""

    watched: Sequence[WatchedChange]
    snapshot: Sequence[Node]
    listed: Sequence[Node]
    exported: Sequence[Node]
    exported_chain: str
    cited: Mapping[Citation, Node | None]
    found: Mapping[str, Sequence[str]]
    by_lot: Mapping[str, Mapping[str, Sequence[str]]]
    """For each mode with vectors: by lot of memories, the ids of all hits."""
    digests: Mapping[int, str]

    @property
    def current(self) -> Mapping[str, Node]:
        return {node.id: node for node in self.snapshot}

    @property
    def active(self) -> Sequence[Node]:
        return [node for node in self.snapshot if node.status is NodeStatus.ACTIVE]


class LongHorizon:
    """See `Scenario`."""

    row = 6
    name = "long horizon"
    promise = (
        "simulated months by a manual clock: whatever hosts merge, let decay or prune, no ACTIVE node "
        "that they did not name is lost"
    )

    async def run(self, stage: Stage) -> None:
        """Half a year of hosts over a database of its own, then everything is read and judged."""
        cluster = stage.cluster
        tenant = f"{stage.prefix}horizon-{stage.rng.getrandbits(32):08x}"
        database = tenant.replace("-", "_")
        dsn = await cluster.postgres.primary.create_database(database)
        await migrate(dsn)
        try:
            life = Life(
                _ground(cluster, dsn),
                rng=stage.rng,
                tenant=tenant,
                canary=cluster.canary,
                hosts=_hosts(stage.seconds),
                activity=_activity(stage.seconds),
                timeline=stage.timeline,
            )
            cluster.further_logs.append(life.log)
            async with life:
                await _live(life)
                await _judge(stage, life, await _read(life, cluster.canary))
        finally:
            await _forget(cluster, dsn)
            await cluster.postgres.primary.drop_database(database)
        stage.result.caveats += _CAVEATS


def _hosts(seconds: float) -> int:
    return min(4, max(2, round(seconds / _SECONDS_PER_HOST)))


def _activity(seconds: float) -> float:
    """On which share of the days a host does something."""
    return min(1.0, max(_LEAST_ACTIVITY, seconds / _SECONDS_OF_BUSY_DAYS))


async def _forget(cluster: Cluster, dsn: str) -> None:
    """Take out of the index what a database that is about to go has there: nobody else would know whose it is."""
    partitions = await Repository(dsn).partitions()
    client = cluster.redis.client()
    try:
        for name in partitions:
            if keys := [key async for key in client.scan_iter(f"dm:{{{name}}}:*")]:
                await client.delete(*keys)
    finally:
        await client.aclose()


def _ground(cluster: Cluster, dsn: str) -> Ground:
    return Ground(
        settings={
            "store": dsn,
            "vectors_redis_url": cluster.redis.url,
            "vectors_lease_ttl_seconds": 3,
            "vectors_poll_interval_seconds": 0.1,
            "vectors_refresh_delay_seconds": 0.2,
            "health_probe_interval_seconds": 0.5,
        },
        folder=cluster.folder,
        service_root=cluster.service_root,
    )


async def _live(life: Life) -> None:
    await life.begin()
    for day in range(1, DAYS + 1):
        if day == _JUMP_DAY:
            await life.jump_under_refresh()
        if day == _BACK_DAY:
            life.set_back(_SET_BACK)
        await life.live(day, kill=day in _KILLS, restart=day in _RESTARTS)
    await life.keep_silent()
    await life.repeat(4 * _AT_ONCE)
    await life.reuse_first_request()
    await wait_until_async(lambda: covered(life.memory), _WAIT_SECONDS, what="the index covers everything")


async def _read(life: Life, canary: str) -> _Reading:
    memory = life.memory
    watched = await _history(memory)
    snapshot = await memory.snapshot().all()
    exported, chain = await _export(memory)

    async def cited(citation: Citation) -> Node | None:
        try:
            return (await memory.get(citation)).node
        except MemoryServiceError:
            return None

    async def hits(node_id: str) -> Sequence[str]:
        recall = await memory.preview(life.notes.words[node_id], mode=RecallMode.LEXICAL, max_results=5)
        return [hit.node_id for hit in recall]

    async def digest(revision: int) -> str:
        past = memory.snapshot(at_namespace_revision=revision)
        await past.all()
        return past.digest or ""

    lots = sorted({node.labels["batch"] for node in snapshot})

    async def lot(key: tuple[RecallMode, str]) -> Sequence[str]:
        recall = await memory.preview(
            f"{canary} note", mode=key[0], filter=RecallFilter(labels={"batch": key[1]}), max_results=_MOST_PER_RECALL
        )
        return [hit.node_id for hit in recall]

    modes = (RecallMode.SEMANTIC, RecallMode.HYBRID)
    lots_found = await _each(lot, [(mode, name) for mode in modes for name in lots])
    return _Reading(
        watched=watched,
        snapshot=snapshot,
        listed=await memory.list_nodes(page_size=200).all(),
        exported=exported,
        exported_chain=chain,
        cited=await _each(cited, _some(life)),
        found=await _each(hits, life.notes.held),
        by_lot={mode.value: {name: lots_found[mode, name] for name in lots} for mode in modes},
        digests=await _each(digest, life.account.digests),
    )


def _some(life: Life) -> Iterable[Citation]:
    """Citations to read: the first that hosts were ever given, and more of all times."""
    given = life.notes.cited
    return [*given[:_CITATIONS_READ], *life.rng.sample(given, min(_CITATIONS_READ, len(given)))]


async def _history(memory: MemoryClient) -> Sequence[WatchedChange]:
    """All changes there were, with the revisions that they made."""
    last = (await memory.get_change_token()).namespace_revision
    watched: list[WatchedChange] = []
    async with asyncio.timeout(_WAIT_SECONDS), memory.watch(after=0, include_nodes=True) as changes:
        async for change in changes:
            watched.append(change)
            if change.change_token.namespace_revision >= last:
                break
    return watched


async def _export(memory: MemoryClient) -> tuple[list[Node], str]:
    """The last revision of each node of an export, and the chain digest in its header."""
    nodes: dict[str, Node] = {}
    chain = ""
    async for line in memory.export_namespace():
        record = record_of_line(line)
        if record.HasField("header"):
            chain = record.header.chain_digest
        elif record.HasField("node_revision"):
            node = Node.from_proto(record.node_revision)
            nodes[node.id] = node
    return list(nodes.values()), chain


async def _judge(stage: Stage, life: Life, reading: _Reading) -> None:
    watched, current, notes, account = reading.watched, reading.current, life.notes, life.account
    changes = [change.change_set for change in watched]
    revisions = [node for change in watched for node in change.nodes]
    replayed = {node.id: node for node in revisions}
    active = [node.id for node in reading.active]
    ever = horizon.ever_active(watched)
    stage.found("no ACTIVE memory ended unasked", len(ever), horizon.lost_silently(watched, current, notes.endings))
    stage.found("hosts are never refused", len(notes.asked_at), notes.refused)
    stage.found("acknowledged, once, in one chain", len(changes), kernel.problems(life.recorder.calls, changes))
    stage.found("no change set is torn", len(changes), kernel.torn(watched))
    stage.found("each move is one of the status machine", len(changes), horizon.forbidden_moves(watched))
    superseded = [node for node in current.values() if node.status is NodeStatus.SUPERSEDED]
    stage.found("what was merged leads to what it became", len(superseded), horizon.without_successor(current))
    views = {
        "snapshot": reading.snapshot,
        "listing": reading.listed,
        "replay of the history": replayed.values(),
        "export": reading.exported,
    }
    stage.found("every view is the same", len(current), horizon.different_views(views))
    same_chain = changes and changes[-1].chain_digest == reading.exported_chain
    stage.found("an export ends where the chain does", 1, [] if same_chain else ["its header has another chain digest"])
    stage.found("every citation is citable", len(reading.cited), horizon.uncitable(watched, reading.cited))
    stage.found(
        "a past revision is what it was", len(account.digests), horizon.changed_past(account.digests, reading.digests)
    )
    stage.found("its own word finds each ACTIVE memory", len(active), horizon.not_recalled(active, reading.found))
    stage.found(
        "no recall returns what ended", len(reading.found), horizon.recalled_all_the_same(active, reading.found)
    )
    for mode, lots in reading.by_lot.items():
        stage.found(f"{mode} recall has every ACTIVE memory", len(active), _lots(mode, lots, reading.active))
    dates = horizon.shifted_dates(revisions, notes.stated, notes.evidence)
    stage.found("dates are the instants that were stated", len(notes.stated) + len(notes.evidence), dates)
    stage.found("times of a memory never go back", len(revisions), horizon.gone_back(watched))
    drift = horizon.drifted(account.baseline, await life.recalls())
    stage.found("time alone changes no recall", len(account.baseline), drift)
    done = _done(notes)
    stage.found("hosts consolidate, decay and retire", sum(done.values()), horizon.never_happened(done))
    await _judge_sessions(stage, life)
    await _judge_refreshes(stage, life)
    _figures(stage, life, reading, ever)


def _done(notes: Notes) -> Mapping[str, int]:
    """How often hosts did what the row is about."""
    return {
        "memory was merged into another": notes.merged,
        "memory decayed": notes.decayed,
        "memory was retired by its rule": notes.retired_by_rule,
    }


async def _judge_sessions(stage: Stage, life: Life) -> None:
    account = life.account
    done = account.done
    usage = {one.node_revision: one async for one in life.memory.usage(page_size=200)}
    counts = [
        f"{revision} was {verb} {counted} times, and {known} times by what its host knows"
        for verb, known_counts, counted_of in (
            ("admitted", account.admitted, lambda one: one.admission_count),
            ("used", account.used, lambda one: one.use_count),
        )
        for revision in usage.keys() | known_counts.keys()
        if (counted := counted_of(usage[revision]) if revision in usage else 0) != (known := known_counts[revision])
    ]
    stage.found("admissions of months are counted", sum(account.admitted.values()), counts)
    stage.found("sessions resume, runs end", done["assemblies"] + done["sessions resumed"], account.sessions)
    stage.found("old requests get their first answer", done["requests repeated"], account.repeats)
    listings = done["listings that took hours"] + done["old page tokens"]
    stage.found("listings go on for hours, not for days", listings, account.pages)


async def _judge_refreshes(stage: Stage, life: Life) -> None:
    runs = (await life.quiet.get_maintenance_health()).runs
    problems = [*life.account.schedule, *horizon.replayed_ticks(runs, INTERVAL)]
    stage.found("missed refreshes are skipped", len(runs), problems)
    receipts = [receipt async for receipt in life.memory.list_receipts(page_size=200)]
    backwards = horizon.refreshed_backwards(reversed(receipts))
    stage.found("fences and index revisions rise", len(receipts), backwards)
    fenced = life.account.done["refreshes fenced"]
    stage.found("the jump fences the refresh under it", fenced, [])
    stage.result.figures["refreshes_whose_lease_ran_out_in_a_jump"] = fenced
    stage.result.figures["index_publications"] = receipts[0].index_revision if receipts else 0


def _figures(stage: Stage, life: Life, reading: _Reading, ever: set[str]) -> None:
    done, statuses = life.account.done, [node.status for node in reading.snapshot]
    # When a change was made tells nothing here: the clock on the wall and the service's are years apart.
    stage.result.operations.add(operations(life.recorder.history, {}))
    stage.result.faults["kill -9 of a server"] += done["kills"]
    stage.result.faults["restart of a server"] += done["restarts"]
    stage.result.faults["clock jumps by a day under a refresh"] += done["jumps under a refresh"]
    stage.result.faults["clock set back"] += done["clock set back"]
    stage.result.figures |= {
        "simulated_days": DAYS + SILENCE.days,
        "change_sets": len(reading.watched),
        "node_revisions": sum(len(change.nodes) for change in reading.watched),
        "nodes_ever_active": len(ever),
        "nodes_active_at_the_end": statuses.count(NodeStatus.ACTIVE),
        "nodes_merged_into_others": life.notes.merged,
        "nodes_retired_by_rule": life.notes.retired_by_rule,
        "decays": life.notes.decayed,
        "oldest_repeated_request_days": life.account.oldest_repeat.days,
        "citations_read": len(reading.cited),
    }


def _lots(mode: str, lots: Mapping[str, Sequence[str]], active: Iterable[Node]) -> list[str]:
    """Every recall of a whole lot of memories has exactly those that are ACTIVE."""
    expected: dict[str, set[str]] = {name: set() for name in lots}
    for node in active:
        expected[node.labels["batch"]].add(node.id)
    return [
        f"the {mode} recall of lot {name} differs by node {node_id}"
        for name, hits in lots.items()
        for node_id in sorted(expected[name] ^ set(hits))
    ]


async def _each(read: Callable[[_Asked], Awaitable[_T]], asked: Iterable[_Asked]) -> dict[_Asked, _T]:
    """The answers, by what was asked for, some at a time."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(item: _Asked) -> tuple[_Asked, _T]:
        async with room:
            return item, await read(item)

    return dict(await asyncio.gather(*map(one, dict.fromkeys(asked))))


SCENARIO: Final = LongHorizon()
