"""Row 2: several processes write the same memories and their own, and several refresh their index, all at once.

First processes race for the same revisions by way of both replicas, while refreshes are asked for beside those of the
schedule; one of the processes is killed in the middle, and what it wrote down until then counts like everything else.
Then nobody writes but for the harness, so that a refresh that is asked for is not turned away because of changes: all
that race now could publish.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from durable_memory_client import MemoryServiceError
from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.qualification.checks import assumptions, availability, contention, fencing, index, partitions, publications
from tests.qualification.checks.publications import Asked
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.cluster.to_the_end import in_thread_to_the_end
from tests.qualification.observers.leases import LeaseObserver
from tests.qualification.observers.receipts import Repository
from tests.qualification.observers.stored_keys import stored_keys
from tests.qualification.recorder.history import Call, History, Outcome, by_command, came_through, merged
from tests.qualification.recorder.operations import operations
from tests.qualification.report.timeline import Lane
from tests.qualification.scenarios.indexed_place import LEASE_TTL_SECONDS, IndexedPlace
from tests.qualification.scenarios.stage import Stage
from tests.qualification.traffic.callers import ChangeSetter, Rememberer, Reviser
from tests.qualification.traffic.judgement import Kept
from tests.qualification.traffic.racers import CasRacer, Repeater
from tests.qualification.traffic.readers import Recaller
from tests.qualification.traffic.traffic import LEAST_RATE
from tests.qualification.traffic.worker_process import WorkerProcess, check_workers

_PROCESSES: Final = 4
_KINDS: Final = (*(Rememberer, Reviser, ChangeSetter, ChangeSetter), *(CasRacer, CasRacer), Repeater, Recaller)
_PAUSE_SECONDS: Final = 1.5
"""For a machine of few cores: what counts is that processes want the same thing at once, not how often."""

_REST_SECONDS: Final = 15.0
"""Of the scenario's time: for what comes after the writers."""

_LEAST_SECONDS: Final = 10.0
_BEGUN_SECONDS: Final = 180.0
"""No promise, but the end of patience: so many processes start slowly where there are few cores."""

_MOMENT_SECONDS: Final = 3.0
_ANSWER_SECONDS: Final = 30.0
_QUIET_ANSWER_SECONDS: Final = 180.0
"""When nobody writes any more: then no answer is a problem."""

_BETWEEN_REFRESHES_SECONDS: Final = 0.5
_LOOK_SECONDS: Final = 0.2
_CALLERS_PER_SERVER: Final = 2
_ROUNDS: Final = (6, 12)
"""At least, and at most until every replica has published."""


@dataclass(slots=True)
class _Course:
    """What is known on the way."""

    stage: Stage
    place: IndexedPlace
    workers: Sequence[WorkerProcess]
    asked: list[Asked] = field(default_factory=list)
    killed: str = ""
    killed_at: float = 0.0
    began: float = 0.0
    ended: float = 0.0

    async def ask(self, server: int, patience: float) -> None:
        """For a refresh, and note what came of it."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(patience):
                receipt, reason = await self.place.refresh(server), ""
        except TimeoutError:
            receipt, reason = None, publications.NO_ANSWER
        except MemoryServiceError as error:
            receipt, reason = None, str(error.reason or error.code.name)
        self.asked.append(Asked(server=server, began=began, ended=time.monotonic(), receipt=receipt, reason=reason))

    async def ask_all(self, first: int = 0, *, patience: float = _ANSWER_SECONDS) -> None:
        """Everybody at once, those of server number `first` a little before the others."""
        count = len(self.place.clients)
        servers = [(first + place) % count for place in range(count)]
        await asyncio.gather(*(self.ask(server, patience) for server in servers for _ in range(_CALLERS_PER_SERVER)))


class ConcurrentWriters:
    row = 2
    name = "concurrent_writers"
    promise = (
        "N processes on M replicas against one partition: exactly one CAS winner per revision, nobody's records lost, "
        "revisions rise by one per publication"
    )

    async def run(self, stage: Stage) -> None:
        cluster = stage.cluster
        place = await IndexedPlace.open(stage, "writers")
        nodes = {node.name: node.port for node in cluster.redis.nodes}
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="durable-memory-writers-")))
            observer = await stack.enter_async_context(LeaseObserver(nodes, stage.timeline))
            course = _Course(stage, place, _workers(stage, place, folder))
            cluster.further_logs += [worker.log for worker in course.workers]
            calls_before = await asyncio.to_thread(cluster.envoy.calls_by_port)
            with ExitStack() as processes:
                for worker in course.workers:
                    processes.enter_context(worker)
                await _write(course)
            calls_after = await asyncio.to_thread(cluster.envoy.calls_by_port)
            history, kept = await check_workers(course.workers, place.client, stage.found, timeline=stage.timeline)
            _judge_races(course, history, kept)
            _judge_places(course, {port: calls - calls_before.get(port, 0) for port, calls in calls_after.items()})
            await _refresh(course, observer)
            await _judge_index(course, observer)
        stage.result.caveats.append(
            "While processes write, few refreshes publish: how many is up to how fast the model of this machine is. "
            "Those that race to publish do so afterwards."
        )


def _workers(stage: Stage, place: IndexedPlace, folder: Path) -> list[WorkerProcess]:
    return [
        WorkerProcess(
            folder,
            logs=stage.cluster.folder,
            address=stage.cluster.address,
            token=stage.cluster.token(place.tenant),
            canary=stage.cluster.canary,
            tenant=place.tenant,
            name=f"writer-{number}",
            seed=stage.rng.random().hex(),
            kinds=_KINDS,
            pause=_PAUSE_SECONDS,
        )
        for number in range(_PROCESSES)
    ]


async def _write(course: _Course) -> None:
    """Let them write for the time there is, from when all of them do. Ask for refreshes, kill one, end the others."""
    stage, workers = course.stage, course.workers
    await wait_until_async(
        lambda: _all_have_begun(workers), _BEGUN_SECONDS, what="all processes write", interval=_LOOK_SECONDS
    )
    course.began = time.monotonic()
    seconds = max(_LEAST_SECONDS, stage.seconds - _REST_SECONDS)
    kill_at = course.began + seconds * stage.rng.uniform(0.3, 0.6)
    living = list(workers)
    while not course.killed or time.monotonic() < course.began + seconds:
        if not course.killed and time.monotonic() >= kill_at:
            await _kill(course, living.pop(stage.rng.randrange(len(living))))
        asking = asyncio.create_task(course.ask_all())
        try:
            await asyncio.sleep(stage.rng.uniform(0.0, 2 * _BETWEEN_REFRESHES_SECONDS))
        finally:
            await asking
        for worker in living:
            worker.check_running()
    await wait_until_async(
        lambda: _goes_on(course), _BEGUN_SECONDS, what="something new succeeds after it", interval=_LOOK_SECONDS
    )
    await _stop(living)
    course.ended = time.monotonic()


async def _stop(workers: Sequence[WorkerProcess]) -> None:
    """Return, or raise what the first of them ended with, when none is left: their journals go with their folder."""
    stopping = (in_thread_to_the_end(worker.stop) for worker in workers)
    for error in await asyncio.gather(*stopping, return_exceptions=True):
        if error is not None:
            raise error


async def _goes_on(course: _Course) -> bool:
    for worker in course.workers:
        worker.check_running()
    history = await asyncio.to_thread(lambda: merged([worker.history() for worker in course.workers]))
    return not assumptions.nothing_after(history, course.killed_at)


async def _all_have_begun(workers: Sequence[WorkerProcess]) -> bool:
    histories = await asyncio.to_thread(lambda: [worker.history() for worker in workers])
    return all(any(call.outcome is Outcome.OK for call in history.calls) for history in histories)


async def _kill(course: _Course, worker: WorkerProcess) -> None:
    """At a moment at which it waits for answers, if there is one soon."""

    async def waits() -> bool:
        history = await asyncio.to_thread(worker.history)
        return any(map(_is_under_way, history.calls))

    with suppress(WaitTimeoutError):
        await wait_until_async(waits, _MOMENT_SECONDS, what="something is under way")
    with course.stage.timeline.span(Lane.FAULT, "a writing process is killed", key=worker.name):
        course.stage.result.faults["writer_kill9"] += 1
        await asyncio.to_thread(worker.kill9)
    course.killed, course.killed_at = worker.name, time.monotonic()


async def _refresh(course: _Course, observer: LeaseObserver) -> None:
    """Ask by way of all replicas at once for what each of them, and the schedule, could publish."""
    least, most = _ROUNDS
    for number in range(most):
        if number >= least and len(_publishers(course, observer)) == len(course.stage.cluster.servers):
            break
        await course.place.caught_up()
        await course.place.remember(2)
        await course.ask_all(number % len(course.stage.cluster.servers), patience=_QUIET_ANSWER_SECONDS)


def _publishers(course: _Course, observer: LeaseObserver) -> Counter[str]:
    """How much each owner of a lease has published under it."""
    published = {
        one.published.nonce: one.lease.owner
        for one in observer.of(course.place.partition)
        if one.lease is not None and one.published is not None and one.published.fence == one.lease.fence
    }
    return Counter(published.values())


def _judge_races(course: _Course, history: History, kept: Kept) -> None:
    stage, names = course.stage, [worker.name for worker in course.workers]
    contested = contention.contests(history.calls)
    races = [contest for contest in contested if contest.is_race]
    assumed = [
        *assumptions.problems(
            history, seconds=course.ended - course.began, least_rate=LEAST_RATE, last_fault=course.killed_at
        ),
        *(
            f"{worker.name}: {one}"
            for worker in course.workers
            for one in assumptions.nothing_happened(worker.history())
        ),
    ]
    stage.found("the harness did what it was to do", len(history.calls), assumed)
    stage.found("processes race for the same revisions", len(races), contention.absent(races, kept.changes, names))
    winners = contention.winners_that_are_not_one(contested, kept.changes)
    stage.found("exactly one winner per revision", len(contested), winners)
    mine = publications.without_memories(_made_by(history), kept.nodes, names)
    stage.found("everybody's memories are kept", len(kept.nodes), mine)
    result, figures = stage.result, stage.result.figures
    result.operations.add(operations(history, kept.committed))
    result.distributions.update(availability.latencies(history))
    figures["processes"] = len(names)
    figures["replicas"] = len(stage.cluster.servers)
    figures["contested_revisions"] = len(contested)
    figures["contested_revisions_of_several_processes_at_once"] = len(races)
    figures["processes_that_won_a_race"] = len(contention.winners(races, kept.changes))
    figures["most_contenders_for_one_revision"] = max((len(one.contenders) for one in contested), default=0)
    seconds = _seconds_to_something_new(history, course.killed_at)
    if math.isfinite(seconds):
        figures["seconds_to_something_new_after_a_process_was_killed"] = round(seconds, 2)
    figures["under_way_in_the_process_that_was_killed"] = sum(
        call.process == course.killed and _is_under_way(call) for call in history.calls
    )


def _seconds_to_something_new(history: History, killed_at: float) -> float:
    """From then to the first answer to a change that nobody had asked for before; infinite if there is none."""
    later = (attempts for attempts in by_command(history.calls).values() if attempts[0].began > killed_at)
    return min((call.ended - killed_at for call in map(came_through, later) if call is not None), default=math.inf)


def _is_under_way(call: Call) -> bool:
    return math.isinf(call.ended)


def _made_by(history: History) -> dict[str, str]:
    """By node, the process that was told that it made its first revision."""
    return {
        made.node_id: call.process
        for call in history.calls
        if call.effect is not None
        for made in call.effect.made
        if made.revision == 1
    }


def _judge_places(course: _Course, calls: dict[int, int]) -> None:
    ports = {
        wire.port: server.name
        for server, wire in zip(course.stage.cluster.servers, course.stage.cluster.wires, strict=True)
    }
    idle = [f"{name} got no call" for port, name in ports.items() if not calls.get(port)]
    course.stage.found("all replicas serve", sum(calls.values()), idle)


async def _judge_index(course: _Course, observer: LeaseObserver) -> None:
    stage, place = course.stage, course.place
    status = await place.caught_up()
    record = await Repository(stage.cluster.postgres.direct_dsn()).read([place.key])
    nodes = await place.client.snapshot().all()
    seen = observer.of(place.partition)
    missed = [f"{observer.missed} times something had happened that was not told"] if observer.missed else []
    stage.found("the observer misses nothing", observer.compared, missed)
    fenced = fencing.problems(seen, record.receipts, ttl_seconds=LEASE_TTL_SECONDS)
    stage.found("one holder at a time, and fences that rise", len(seen), fenced)
    floors = fencing.records_above_the_floor(record.receipts, record.intents, record.floors)
    stage.found("what is on record is under fences on record", len(record.receipts), floors)
    published = {one.published.nonce for one in seen if one.published is not None}
    latest = {place.partition: observer.latest[place.partition]}
    moved = [
        *index.problems(seen),
        *publications.skipped_publications(record.receipts),
        *index.off_the_record(latest, record.receipts, record.intents),
        *index.never_seen(seen, record.receipts),
    ]
    stage.found("index revisions rise by one per publication", len(published), moved)
    answered = [one for one in course.asked if one.receipt is not None]
    told = [*publications.unrecorded(answered, record.receipts), *publications.shared_fences(answered)]
    stage.found("what a refresh answers is on record, and its alone", len(answered), told)
    failed = publications.failures(course.asked, quiet_since=course.ended)
    stage.found("refreshes fail for others alone", len(course.asked), failed)
    stage.found("the index catches up", 1, index.not_caught_up({place.tenant: status}))
    records = await _records(stage.cluster, place.partition)
    stage.found("nobody's records are lost", len(records), publications.records_and_memories(records, nodes))
    publishers = _publishers(course, observer)
    few = [] if len(publishers) == len(stage.cluster.servers) else [f"{len(publishers)} replicas published"]
    stage.found("every replica publishes", len(publishers), few)
    figures = stage.result.figures
    figures["publications"] = len(published)
    figures["records"] = len(records)
    figures["refreshes_asked_for"] = len(course.asked)
    for reason, count in sorted(Counter(one.reason or "answered" for one in course.asked).items()):
        figures[f"refreshes_{reason.lower()}"] = count


async def _records(cluster: Cluster, partition: str) -> list[partitions.SegmentRecord]:
    client = cluster.redis.client()
    try:
        keys = [key for key in await stored_keys(client) if partition in key.name]
    finally:
        await client.aclose()
    return partitions.records_of(keys).get(partition, [])


SCENARIO: Final = ConcurrentWriters()
