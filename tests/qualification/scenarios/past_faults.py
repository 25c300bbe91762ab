"""Faults that a qualification has found, each as the shortest course in which it was seen. `README.md` lists them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from durable_memory_client import IndexState, MemoryClient, MemoryRun, MemoryServiceError, RecallMode, RefreshReceipt
from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.qualification.checks import index, probes
from tests.qualification.cluster.postgres_pair import PostgresPair
from tests.qualification.faults.postgres import StandbyPromoted
from tests.qualification.observers.receipts import Repository, namespace_key
from tests.qualification.recorder.operations import Tally
from tests.qualification.scenarios.indexed_place import IndexedPlace, holding_passages
from tests.qualification.scenarios.recall_probe import RecallProbe
from tests.qualification.scenarios.stage import Stage
from tests.qualification.traffic.tenancy import Follower
from tests.qualification.traffic.wording import text_of

_SECONDS: Final = 60.0
_WRITES_AGAIN_SECONDS: Final = 120.0
_BACK_SECONDS: Final = 180.0
_STALL_SECONDS: Final = 8.0
"""Less than the service waits for a commit: after that it begins no other, and none is repeated."""
_COURSES: Final = 3
_AGAIN_SECONDS: Final = 0.1


class WatchThroughProxy:
    """A proxy resets a stream whose server has died with INTERNAL: a watch ended with an error instead of going on."""

    row = 1
    name = "a watch goes on when the server behind its proxy is killed"
    promise = "a watch tells every change once, in order, whichever server it was on"

    async def run(self, stage: Stage) -> None:
        cluster, problems, tally = stage.cluster, [], Tally(stage.result.operations, stage.timeline)
        async with cluster.client(f"{stage.prefix}-watch") as memory:
            follower = Follower(memory)

            async def unheard(name: str) -> list[str]:
                remembering = memory.remember(text_of(name, cluster.canary), timeout=_SECONDS)
                remembered = await tally.of("Remember", remembering)
                return await follower.left_behind(remembered.citation.namespace_revision)

            try:
                for round_number, server in enumerate(cluster.servers):
                    # It is heard of, so the stream's answer has begun when its server dies.
                    problems = await unheard(f"before-{round_number}")
                    if not problems:
                        await server.kill9()
                        stage.result.faults["kill -9 of a server"] += 1
                        await server.start()
                        await cluster.wait_healthy()
                        problems = await unheard(f"after-{round_number}")
                    if problems:
                        break
            finally:
                await follower.close()
            told = [change.change_token.namespace_revision for change in follower.changes]
            if told != list(range(1, 2 * len(cluster.servers) + 1)):
                problems.append(f"the watch told of the revisions {told}")
        stage.found("the watch goes on without gap or repetition", len(told), problems)


class ReadsWithoutStandby:
    """Commits that waited for a dead standby, given up one by one, took every connection that the primary has."""

    row = 5
    name = "reads go on while commits wait for a standby that is gone"
    promise = "without its standby a primary acknowledges nothing, and everything can be read"

    async def run(self, stage: Stage) -> None:
        cluster, tally = stage.cluster, Tally(stage.result.operations, stage.timeline)
        problems: list[str] = []
        async with cluster.client(f"{stage.prefix}-standby") as memory:
            await tally.of("Remember", memory.remember(text_of("first", cluster.canary)))
            before = await tally.of("GetChangeToken", memory.get_change_token())
            await cluster.postgres.kill9_standby()
            stage.result.faults["loss of the PostgreSQL standby"] += 1
            writing = (_write(tally, memory, cluster.canary, place) for place in range(120))
            acknowledged = sum(await asyncio.gather(*writing))
            slow = 0.0
            for _ in range(20):
                began = time.monotonic()
                token = await tally.of("GetChangeToken", memory.get_change_token(timeout=_SECONDS))
                slow = max(slow, time.monotonic() - began)
                if token != before:
                    problems.append("a change that was not acknowledged is read")
            stage.result.figures["slowest_read_seconds_without_standby"] = round(slow, 3)
            await cluster.postgres.restart_standby()
            await wait_until_async(
                lambda: _write(tally, memory, cluster.canary, -1, timeout=_SECONDS),
                _WRITES_AGAIN_SECONDS,
                what="writes come through again",
            )
        if acknowledged:
            problems.append(f"{acknowledged} writes were acknowledged without the standby")
        stage.found("nothing is acknowledged, and everything can be read", 20, problems)


class RepetitionsWithoutStandby:
    """What a crash of the primary let be seen before the standby had it was given as the answer to a repetition."""

    row = 5
    name = "a repetition vouches for nothing that the standby lacks"
    promise = "whatever is acknowledged is on the standby, also what was there to be seen when it was asked for again"

    async def run(self, stage: Stage) -> None:
        problems, unknown, looked_at = [], [], 0
        for number in range(1, _COURSES + 1):
            commands = await _commands(stage, number)
            course = await self._course(stage, commands)
            looked_at += len(commands)
            problems += course.problems
            unknown += await _left_in_doubt(commands, course.acknowledged)
            if course.problems or not course.unseen:
                break
        else:
            problems.append(f"in {_COURSES} tries it was never seen; in the last, {course.unseen}")
        stage.found("no repetition vouches for what the standby lacks", looked_at, problems)
        stage.found("what was in doubt is settled by the same request id", looked_at, unknown)

    async def _course(self, stage: Stage, commands: Sequence[_Command]) -> _Course:
        """Once; the standby is back after it. A machine may be too slow for all of it to wait at one moment."""
        pair, course = stage.cluster.postgres, _Course()
        await pair.kill9_standby()
        stage.result.faults["loss of the PostgreSQL standby"] += 1
        try:
            async with _under_way([command.first() for command in commands]) as sent:
                # Each is in the primary's log, where its recovery finds it, and in nobody's answer.
                if not await _all_wait(pair, commands, sent, course):
                    return course
                await pair.kill9_primary()
                stage.result.faults["crash of the PostgreSQL primary"] += 1
            await pair.recover_primary()
            recorded = Repository(pair.direct_dsn())
            course.problems += [
                f"{command.name} is not on the primary's record, so nothing was repeated"
                for command in commands
                if (command.method, command.request_id) not in await recorded.requests(command.namespace)
            ]
            async with _under_way([_acknowledged(command.again) for command in commands]) as repeated:
                await _all_wait(pair, commands, repeated, course)
            return course
        finally:
            if not pair.primary.is_running:
                await pair.recover_primary()
            await pair.restart_standby()


class LostIndexAndSlowProvider:
    """An index that was lost was published again only when everything new had been embedded: recall by meaning waited
    for a provider that was too slow for those who wrote, or away."""

    row = 4
    name = "a lost index is back before what is new has been embedded"
    promise = "to publish again what was lost takes no provider"

    async def run(self, stage: Stage) -> None:
        cluster = stage.cluster
        place = await IndexedPlace.open(stage, "lost")
        await place.remember(4)
        before = await place.caught_up()
        assert before.last_receipt is not None
        line = cluster.embedding.proxy
        line.rule = holding_passages(place)
        try:
            await place.remember(1)
            await cluster.redis.restart_empty_everywhere()
            stage.result.faults["restart of Redis without data"] += 1
            async with RecallProbe(place, [RecallMode.AUTO]) as probe:
                again = await _published_as_it_was(place, before.last_receipt)
            stage.result.figures["texts_that_waited_for_the_provider"] = len(line.held)
        finally:
            line.mend()
        own = {f"node-{number}" for number in range(len(place.remembered))}
        problems = [*probes.wrongly_refused(probe.probes, ()), *probes.wrongly_answered(probe.probes, "node-0", own)]
        if again is None:
            problems.append(f"it was not back in {_BACK_SECONDS:.0f} s")
        elif again.indexed_count != before.last_receipt.indexed_count or again.work.provider_inputs:
            work = f"{again.work.provider_inputs} texts were embedded"
            problems.append(f"{again.indexed_count} of {before.last_receipt.indexed_count} were back, and {work}")
        stage.found("what was lost is back before the provider has answered", len(probe.probes), problems)
        status = await place.caught_up()
        stage.found("what was new follows", 1, index.not_caught_up({place.tenant: status}))


async def _published_as_it_was(place: IndexedPlace, last: RefreshReceipt) -> RefreshReceipt | None:
    """The receipt of a later publication of the same state, as soon as it is served; None if that takes too long."""
    found: list[RefreshReceipt] = []

    async def is_served() -> bool:
        with suppress(MemoryServiceError):
            status = await place.tally.of("GetIndexStatus", place.client.get_index_status(timeout=_SECONDS))
            receipt = status.last_receipt
            if status.state is IndexState.CURRENT and receipt is not None and receipt.fence > last.fence:
                found.append(receipt)
        return bool(found)

    with suppress(WaitTimeoutError):
        await wait_until_async(is_served, _BACK_SECONDS)
    return found[0] if found else None


class SilentHost:
    """A host that takes connections and says nothing, named first, took all the time there was to find the primary."""

    row = 9
    name = "a silent host does not hide the primary"
    promise = "whichever host of the database is silent, a server that starts finds the one that takes writes"

    async def run(self, stage: Stage) -> None:
        cluster, problems = stage.cluster, []
        if cluster.postgres.standby is not cluster.postgres.nodes[0]:
            await StandbyPromoted().inject(cluster, stage.rng)
            await cluster.wait_healthy()
        server = cluster.servers[0]
        async with cluster.client(f"{stage.prefix}-silent", address=server.address) as memory:
            cluster.postgres.nodes[0].proxy.go_silent()
            try:
                stage.result.faults["silence of the first PostgreSQL host"] += 1
                await server.kill9()
                began = time.monotonic()
                await server.start(_SECONDS)
                remembering = memory.remember(text_of("found", cluster.canary), timeout=_SECONDS)
                await Tally(stage.result.operations, stage.timeline).of("Remember", remembering)
                stage.result.figures["seconds_to_the_first_write"] = round(time.monotonic() - began, 2)
            except (MemoryServiceError, WaitTimeoutError) as error:
                problems.append(f"the primary was not found: {type(error).__name__}")
            finally:
                cluster.postgres.nodes[0].proxy.mend()
        stage.found("a server finds the primary behind a silent host", 1, problems)


async def _write(tally: Tally, memory: MemoryClient, canary: str, place: int, timeout: float = 2.0) -> bool:
    try:
        await tally.of("Remember", memory.remember(text_of(f"waiting-{place}", canary), timeout=timeout))
    except MemoryServiceError:
        return False
    return True


Send: TypeAlias = Callable[[], Coroutine[Any, Any, object]]
Named: TypeAlias = Callable[[str], Coroutine[Any, Any, object]]
"""Sends it under this request id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    """Something to be acknowledged, in a namespace of its own: nothing in there waits for anything else."""

    name: str
    namespace: bytes
    method: str
    request_id: str
    first: Send
    again: Send


@dataclass(slots=True, kw_only=True)
class _Course:
    """What came of it. `unseen`: why it does not show what it is there for, if it does not."""

    problems: list[str] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    unseen: str = ""


async def _commands(stage: Stage, number: int) -> list[_Command]:
    """One of each kind that is answered in its own way when its request id, or what it says, is there already. Their
    namespaces are this try's alone."""
    tenant, canary = f"{stage.prefix}-repeated", stage.cluster.canary
    tally = Tally(stage.result.operations, stage.timeline)

    def command(scope: str, method: str, send: Named, again: str = "first") -> _Command:
        return _Command(
            name=f"{method} ({scope})",
            namespace=namespace_key(tenant, "user-1", f"{scope}-{number}"),
            method=method,
            request_id="first",
            first=lambda: tally.of(method, send("first")),
            again=lambda: tally.of(method, send(again)),
        )

    async def place(scope: str) -> MemoryClient:
        """Indexed by nobody, so that nobody else's commits wait."""
        memory = stage.cluster.client(tenant, scope=f"{scope}-{number}")
        await memory.set_schedule()
        return memory

    async def run_in(memory: MemoryClient, name: str) -> MemoryRun:
        await memory.remember(text_of(name, canary))
        run = (await memory.open_session("assistant", max_results=3)).run("turn-1")
        await run.begin()
        return run

    said, known, recalling, admitting, using = [
        await place(scope) for scope in ("said", "known", "recalling", "admitting", "using")
    ]
    recalled, admitted, used = [
        await run_in(memory, name)
        for memory, name in ((recalling, "recalled"), (admitting, "admitted"), (using, "used"))
    ]
    to_admit = (await admitted.recall(canary, mode=RecallMode.LEXICAL)).hits
    to_use = (await used.recall(canary, mode=RecallMode.LEXICAL, admit=True)).hits
    imported = stage.cluster.client(tenant, scope=f"imported-{number}")
    export = [line async for line in imported.export_namespace()]
    return [
        command("said", "Remember", lambda name: said.remember(text_of("said", canary), request_id=name)),
        command("known", "Remember", lambda name: known.remember(text_of("known", canary), request_id=name), "second"),
        command(
            "recalling",
            "ActiveRecall",
            lambda name: recalled.recall(canary, mode=RecallMode.LEXICAL, admit=True, request_id=name),
        ),
        command("admitting", "AdmitMemories", lambda name: admitted.admit(to_admit, request_id=name)),
        command("using", "RecordUse", lambda name: used.record_use(to_use, request_id=name)),
        command("imported", "ImportNamespace", lambda name: imported.import_namespace(export, request_id=name)),
    ]


async def _left_in_doubt(commands: Sequence[_Command], acknowledged: Collection[str]) -> list[str]:
    """Those that are not acknowledged with the standby back, however often they are repeated."""
    async with _under_way([_acknowledged(command.again) for command in commands]) as repeated:
        await asyncio.wait(repeated, timeout=_SECONDS)
        done = {*acknowledged, *_done(commands, repeated)}
    return [f"{one.name} is still in doubt with the standby back" for one in commands if one.name not in done]


async def _acknowledged(send: Send) -> None:
    """Return when it is acknowledged, however often it takes."""
    while True:
        with suppress(MemoryServiceError):
            await send()
            return
        await asyncio.sleep(_AGAIN_SECONDS)


async def _all_wait(
    pair: PostgresPair, commands: Sequence[_Command], tasks: Sequence[asyncio.Task[object]], course: _Course
) -> bool:
    """Whether all of them wait for the standby at one moment. One that is acknowledged does not, and is wrong."""
    with suppress(WaitTimeoutError):
        await wait_until_async(lambda: _wait_for_standby(pair, len(commands)), _STALL_SECONDS)
    waiting = await pair.waiting_commits()
    acknowledged = _done(commands, tasks)
    course.acknowledged |= set(acknowledged)
    course.problems += [f"{name} was acknowledged without the standby" for name in acknowledged]
    if waiting >= len(commands):
        return True
    ended = [f"{one.name}: {task.exception()!r}" for one, task in zip(commands, tasks, strict=True) if task.done()]
    course.unseen = f"{waiting} commits waited for the standby, of {len(commands)}; these had ended: {ended}"
    return False


async def _wait_for_standby(pair: PostgresPair, commits: int) -> bool:
    return await pair.waiting_commits() >= commits


def _done(commands: Sequence[_Command], tasks: Sequence[asyncio.Task[object]]) -> list[str]:
    """The names of those that are acknowledged. Raises what nobody expects of one."""
    done = []
    for one, task in zip(commands, tasks, strict=True):
        if not task.done():
            continue
        error = task.exception()
        if error is None:
            done.append(one.name)
        elif not isinstance(error, MemoryServiceError):
            raise error
    return done


@asynccontextmanager
async def _under_way(work: Sequence[Coroutine[Any, Any, object]]) -> AsyncIterator[Sequence[asyncio.Task[object]]]:
    """Tasks that have ended when the block is left: what is not done by then is given up."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


WATCH_THROUGH_PROXY: Final = WatchThroughProxy()
READS_WITHOUT_STANDBY: Final = ReadsWithoutStandby()
REPETITIONS_WITHOUT_STANDBY: Final = RepetitionsWithoutStandby()
LOST_INDEX_AND_SLOW_PROVIDER: Final = LostIndexAndSlowProvider()
SILENT_HOST: Final = SilentHost()
