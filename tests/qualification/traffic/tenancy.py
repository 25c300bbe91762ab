"""One namespace under load: its callers, what they know, and looking at everything there is."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from durable_memory_client import (
    ChangeSet,
    ChangeToken,
    Citation,
    DurableMemoryError,
    MemoryClient,
    MemoryNamespace,
    WatchedChange,
)
from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.processes.server import ServerProcess
from tests.qualification.checks.kernel import problems
from tests.qualification.checks.sessions import Restart
from tests.qualification.recorder.history import AFTERWARDS, History, Key, Outcome
from tests.qualification.recorder.recorder import Recorder
from tests.qualification.report.results import Finding
from tests.qualification.traffic.callers import Caller, ChangeSetter, Proposer, Reach, Rememberer, Reviser
from tests.qualification.traffic.judgement import Kept, judge, read_all
from tests.qualification.traffic.racers import OF_A_RUN
from tests.qualification.traffic.readers import Admitter
from tests.qualification.traffic.wording import SHARED_WORD

ATTEMPT_SECONDS = 0.5
"""The deadline of an attempt: a call that a killed server leaves behind is in doubt, and not repeated unseen."""

BUSY: Sequence[type[Caller]] = (
    *(Rememberer, Rememberer, Reviser, Reviser),
    *(ChangeSetter, ChangeSetter, Proposer, Admitter),
)
QUIET: Sequence[type[Caller]] = (Rememberer, Admitter)
_PAGE_SIZE = 500
_READ_SECONDS = 60.0
_LOOKED_UP = 20

RECONNECT_AT_ONCE = (
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
)
"""Channel options: a server that was killed is found again as soon as it listens."""


def connect(server: ServerProcess, scope: str = "default", *, address: str | None = None) -> MemoryClient:
    """A client of a server, of one user's namespace; `address` is another way to the server."""
    return MemoryClient(
        address or server.address, tenant="acme", principal="user-1", scope=scope, channel_options=RECONNECT_AT_ONCE
    )


async def all_of(work: Iterable[Awaitable[None]]) -> None:
    """Let each of them end, whatever becomes of the others; then raise the first that failed."""
    for ended in await asyncio.gather(*work, return_exceptions=True):
        if ended is not None:
            raise ended


async def in_turn(*steps: Callable[[], Awaitable[None]]) -> None:
    """Take each step, whatever became of those before it; then raise the first that failed."""
    errors: list[Exception] = []
    for step in steps:
        try:
            await step()
        except Exception as error:  # noqa: BLE001 - the first is raised in the end; others may follow from it
            errors.append(error)
    if errors:
        raise errors[0]


class Follower:
    """Watches a namespace from its beginning, across everything, and keeps what it is told."""

    def __init__(self, memory: MemoryNamespace) -> None:
        self._watch = memory.watch(after=0, include_nodes=True)
        self._task = asyncio.create_task(self._follow())
        self.changes: list[WatchedChange] = []

    async def caught_up(self, revision: int, timeout: float = 120.0) -> None:
        """Return when it was told everything up to a revision. Raises what the watch raised."""

        def is_there() -> bool:
            if self._task.done():
                self._task.result()
            return bool(self.changes) and self.changes[-1].change_token.namespace_revision >= revision

        if revision:
            await wait_until_async(is_there, timeout, what=lambda: f"{revision} watched, {len(self.changes)} so far")

    async def left_behind(self, revision: int) -> list[str]:
        """What has kept it from being told everything up to a revision."""
        try:
            await self.caught_up(revision)
        except (DurableMemoryError, WaitTimeoutError) as error:
            told = self.changes[-1].change_token.namespace_revision if self.changes else 0
            return [f"told of {told}, with the namespace at {revision}, it got no further: {error}"]
        return []

    async def close(self) -> None:
        """End it. How it ended by itself `caught_up` has raised, or something worse has happened by now."""
        await self._watch.close()
        with suppress(DurableMemoryError):
            await self._task

    async def _follow(self) -> None:
        async for change in self._watch:
            self.changes.append(change)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a namespace stands, and what it recalls."""

    token: ChangeToken
    chain_digest: str | None
    snapshot_digest: str | None
    recalled: tuple[tuple[Citation, float], ...]


class Tenancy:
    """One namespace under load: its callers, its follower, and what they know.

    `prefix` begins the names of its callers, and so all ids that they make: each process that writes to the namespace
    has another. `follow`: whether it watches the namespace all the time. `recorder` and what its callers take
    (`canary`, `pause`, `sessions`) are told in traffic/callers.py and recorder/recorder.py.
    """

    def __init__(
        self,
        clients: Sequence[MemoryClient],
        *,
        seed: str,
        kinds: Sequence[type[Caller]] = BUSY,
        timeout: float | None = ATTEMPT_SECONDS,
        recorder: Recorder | None = None,
        canary: str = "",
        pause: float = 0.0,
        prefix: str = "",
        sessions: Mapping[str, str] | None = None,
        follow: bool = True,
    ) -> None:
        self.memory = clients[0]
        self.canary = canary
        self.recorder = Recorder() if recorder is None else recorder
        self._follower = Follower(self.memory) if follow else None
        self._reach = Reach(clients)
        self.callers: list[Caller] = [
            kind(
                f"{prefix}{kind.__name__.lower()}-{number}",
                clients,
                self.recorder,
                self._reach,
                seed=seed,
                timeout=timeout,
                canary=canary,
                pause=pause,
                sessions=sessions,
            )
            for number, kind in enumerate(kinds)
        ]
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._listed: list[ChangeSet] = []

    @property
    def follower(self) -> Follower:
        assert self._follower is not None, "it does not follow its namespace"
        return self._follower

    @property
    def history(self) -> History:
        return self.recorder.history

    def start(self) -> None:
        self._stopping.clear()
        self._tasks = [asyncio.create_task(caller.run(self._stopping)) for caller in self.callers]

    def rest(self) -> None:
        """Let no caller begin anything, until `go_on`."""
        self._reach.working.clear()

    def go_on(self) -> None:
        self._reach.working.set()

    async def stop(self) -> None:
        """Let every caller finish what it is doing. Raises in the end what one of them did not expect."""
        self._stopping.set()
        self.go_on()
        await all_of(self._tasks)

    async def finish(self) -> None:
        """Let every caller do what has to have been done after the last fault; after `stop`. Raises in the end what one
        of them did not expect."""
        await all_of(caller.finish() for caller in self.callers)

    async def check(self) -> None:
        """Whether everything that the callers know by now is true. They may go on meanwhile."""
        found = await self.problems_so_far()
        assert not found, "\n".join(found)

    async def problems_so_far(self) -> list[str]:
        """What is not true of what the callers know by now. They may go on meanwhile."""
        self._require_running()
        calls, readings = self.recorder.calls_so_far(), list(self.recorder.readings)
        known = self._listed[-1].namespace_revision if self._listed else 0
        token = await self.memory.get_change_token(timeout=_READ_SECONDS)
        self._listed += await self._list(after=known)
        listed, later = list(self._listed), self.recorder.calls_so_far()
        # Beside the event loop, which may carry every line of a cluster: it is not to look dead meanwhile.
        found = await asyncio.to_thread(problems, calls, listed, readings, later=later)
        if token.namespace_revision < known:
            found.append(f"{known} change sets were listed, and now the namespace is at {token.namespace_revision}")
        if len(listed) < token.namespace_revision:
            found.append(f"{len(listed)} change sets are listed at namespace revision {token.namespace_revision}")
        return found

    async def settle(self, timeout: float = 300.0) -> None:
        """Repeat what is in doubt until its outcome is known. Raises: WaitTimeoutError."""

        async def settled() -> bool:
            for command in await self.recorder.in_doubt():
                await self.recorder.attempt(command, by=AFTERWARDS)
            return not await self.recorder.in_doubt()

        await wait_until_async(settled, timeout, what="everything is known")

    async def repeat(self, rng: random.Random, most: int, *, strict: bool = True) -> None:
        """Send again some of what was acknowledged, however long ago. `strict`: raise what is not acknowledged again;
        else it is for the checks to find."""
        applied = [command for command in self.recorder.acknowledged if command.method not in OF_A_RUN]
        for command in rng.sample(applied, min(most, len(applied))):
            call, _ = await self.recorder.attempt(command, by=AFTERWARDS)
            assert not strict or call.outcome is Outcome.OK, self.recorder.errors[command.key]

    async def findings(self, restarts: Sequence[Restart] = ()) -> tuple[list[Finding], Kept]:
        """What every check finds in the whole of the namespace, and all of it. Nobody writes meanwhile. `restarts` are
        those of servers since it began.

        A watch that was told of what is not there any more has ended. That is a finding, and what is there is watched
        anew, lest the loss keep it from being judged.
        """
        watched, followed = None, []
        if self._follower is not None:
            token = await self.memory.get_change_token(timeout=_READ_SECONDS)
            problems = await self._follower.left_behind(token.namespace_revision)
            followed.append(Finding(check="a watch goes on", looked_at=1, problems=problems))
            watched = None if problems else list(self._follower.changes)
        kept = await read_all(self.memory, watched)
        found = await asyncio.to_thread(judge, self.history.copy(), kept, self.recorder.texts, restarts=restarts)
        return [*followed, *found], kept

    async def check_everything(self) -> None:
        """Whether the whole of the namespace is what its callers know. Nobody writes meanwhile."""
        await self.check()
        findings, kept = await self.findings()
        found = [f"{finding.check}: {problem}" for finding in findings for problem in finding.problems]
        assert not found, "\n".join(found)
        assert list(kept.changes) == self._listed, "what was listed earlier has changed"
        for named in kept.changes[:: max(1, len(kept.changes) // _LOOKED_UP)]:
            found_by_key = await self.memory.get_change_set(request_id=named.idempotency_key, method=named.method)
            assert found_by_key == named

    @property
    def committed(self) -> dict[Key, float]:
        """When each change set was committed, in seconds by the clock on the wall, as far as it was watched."""
        changes = [change.change_set for change in self.follower.changes]
        return {(one.method, one.idempotency_key): one.committed_at.timestamp() for one in changes}

    async def standing(self, memory: MemoryNamespace | None = None) -> Standing:
        """All that must be the same as long as nobody writes. `memory` is another way to the namespace."""
        memory = memory or self.memory
        token = await memory.get_change_token()
        changes = await self._list(after=token.namespace_revision - 1, memory=memory) if self._listed else []
        snapshot = memory.snapshot()
        await snapshot.all()
        recall = await memory.preview(" ".join(filter(None, [self.canary, SHARED_WORD])), max_results=100)
        return Standing(
            token=token,
            chain_digest=changes[0].chain_digest if changes else None,
            snapshot_digest=snapshot.digest,
            recalled=tuple((hit.citation, hit.score) for hit in recall),
        )

    async def check_copy(self, memory: MemoryNamespace) -> None:
        """Whether all that there is can be exported, verifies, and is the same in another store."""
        lines = [line async for line in self.memory.export_namespace()]
        await memory.import_namespace(lines)
        here, there = await self.standing(), await self.standing(memory)
        # It is a history of its own from now on.
        assert replace(there, token=here.token) == here
        assert there.token.namespace_revision == here.token.namespace_revision

    async def _list(self, after: int, memory: MemoryNamespace | None = None) -> list[ChangeSet]:
        pages = (memory or self.memory).list_change_sets(
            after_namespace_revision=after, page_size=_PAGE_SIZE, timeout=_READ_SECONDS
        )
        return [change async for change in pages]

    def _require_running(self) -> None:
        for task in self._tasks:
            if task.done() and not self._stopping.is_set():
                task.result()

    async def close(self) -> None:
        """End at once whatever still runs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._reach.close()
        if self._follower is not None:
            await self._follower.close()
