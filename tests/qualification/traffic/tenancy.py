"""What the tests of this folder share: connections that come back at once, traffic, and looking at everything."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from durable_memory_client import ChangeSet, ChangeToken, Citation, MemoryClient, MemoryNamespace, WatchedChange
from tests.processes.polling import wait_until_async
from tests.processes.server import ServerProcess
from tests.qualification.checks.kernel import mixed_up, problems, torn
from tests.qualification.recorder.history import Fate, Key, Outcome
from tests.qualification.recorder.recorder import Recorder
from tests.qualification.traffic.callers import (
    SHARED_WORD,
    Admitter,
    Caller,
    ChangeSetter,
    Proposer,
    Reach,
    Rememberer,
    Reviser,
)

ATTEMPT_SECONDS = 0.5
"""The deadline of an attempt: a call that a killed server leaves behind is in doubt, and not repeated unseen."""

BUSY: Sequence[type[Caller]] = (
    *(Rememberer, Rememberer, Reviser, Reviser),
    *(ChangeSetter, ChangeSetter, Proposer, Admitter),
)
QUIET: Sequence[type[Caller]] = (Rememberer, Admitter)
_PAGE_SIZE = 500
_LOOKED_UP = 20
# Whose arguments follow from where the run is now: they are repeated at once or never.
_OF_A_RUN = frozenset({"ActiveRecall", "RecordUse"})

# A server that was killed is found again as soon as it listens.
_RECONNECT_AT_ONCE = (
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
)


def connect(server: ServerProcess, scope: str = "default", *, address: str | None = None) -> MemoryClient:
    """A client of a server, of one user's namespace; `address` is another way to the server."""
    return MemoryClient(
        address or server.address, tenant="acme", principal="user-1", scope=scope, channel_options=_RECONNECT_AT_ONCE
    )


class Follower:
    """Watches a namespace from its beginning, across everything, and keeps what it is told."""

    def __init__(self, memory: MemoryNamespace) -> None:
        self._watch = memory.watch(after=0, include_nodes=True)
        self._task = asyncio.create_task(self._follow())
        self.changes: list[WatchedChange] = []

    async def caught_up(self, revision: int, timeout: float = 20.0) -> None:
        """Return when it was told everything up to a revision. Raises what the watch raised."""

        def is_there() -> bool:
            if self._task.done():
                self._task.result()
            return bool(self.changes) and self.changes[-1].change_token.namespace_revision >= revision

        if revision:
            await wait_until_async(is_there, timeout, what=lambda: f"{revision} watched, {len(self.changes)} so far")

    async def close(self) -> None:
        await self._watch.close()
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
    """One namespace under load: its callers, its follower, and what they know."""

    def __init__(
        self,
        clients: Sequence[MemoryClient],
        *,
        seed: str,
        kinds: Sequence[type[Caller]] = BUSY,
        timeout: float | None = ATTEMPT_SECONDS,
    ) -> None:
        self.memory = clients[0]
        self.recorder = Recorder()
        self.follower = Follower(self.memory)
        self._reach = Reach(clients)
        self.callers: list[Caller] = [
            kind(f"{kind.__name__.lower()}-{number}", clients, self.recorder, self._reach, seed=seed, timeout=timeout)
            for number, kind in enumerate(kinds)
        ]
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._listed: list[ChangeSet] = []

    def start(self) -> None:
        self._stopping.clear()
        self._tasks = [asyncio.create_task(caller.run(self._stopping)) for caller in self.callers]

    async def stop(self) -> None:
        """Let every caller finish what it is doing. Raises what one of them did not expect."""
        self._stopping.set()
        await asyncio.gather(*self._tasks)

    async def check(self) -> None:
        """Whether everything that the callers know by now is true. They may go on meanwhile."""
        self._require_running()
        calls, readings = self.recorder.calls_so_far(), list(self.recorder.readings)
        known = self._listed[-1].namespace_revision if self._listed else 0
        token = await self.memory.get_change_token()
        self._listed += await self._list(after=known)
        found = problems(calls, self._listed, readings, later=self.recorder.calls_so_far())
        found += [f"{error.method} {error.request_id}: {error}" for error in self.recorder.defects]
        assert not found, "\n".join(found)
        assert len(self._listed) >= token.namespace_revision

    async def settle(self) -> None:
        """Repeat what is in doubt until its outcome is known."""

        async def settled() -> bool:
            for command in self.recorder.with_fate(Fate.UNKNOWN):
                await self.recorder.attempt(command)
            return not self.recorder.with_fate(Fate.UNKNOWN)

        await wait_until_async(settled, 30.0, what="everything is known")

    async def repeat(self, rng: random.Random, most: int) -> None:
        """Send again some of what was acknowledged, however long ago."""
        applied = [command for command in self.recorder.with_fate(Fate.APPLIED) if command.method not in _OF_A_RUN]
        for command in rng.sample(applied, min(most, len(applied))):
            call, _ = await self.recorder.attempt(command)
            assert call.outcome is Outcome.OK, self.recorder.errors[command.key]

    async def check_everything(self) -> None:
        """Whether the whole of the namespace is what its callers know. Nobody writes meanwhile."""
        await self.check()
        assert await self._list(after=0) == self._listed, "what was listed earlier has changed"
        await self.follower.caught_up(len(self._listed))
        watched = self.follower.changes
        assert [change.change_set for change in watched] == self._listed
        found = [*torn(watched), *mixed_up(watched, self.recorder.texts)]
        assert not found, "\n".join(found)
        latest = {node.id: node.citation for change in watched for node in change.nodes}
        assert {node.id: node.citation for node in await self.memory.snapshot().all()} == latest
        for change in watched[:: max(1, len(watched) // _LOOKED_UP)]:
            named = change.change_set
            found_by_key = await self.memory.get_change_set(request_id=named.idempotency_key, method=named.method)
            assert found_by_key == named
        await self._check_counts()

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
        recall = await memory.preview(SHARED_WORD, max_results=100)
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

    async def _check_counts(self) -> None:
        usage = {one.node_revision: one async for one in self.memory.usage(page_size=_PAGE_SIZE)}
        admitters = [caller for caller in self.callers if isinstance(caller, Admitter)]
        admitted = sum((caller.admitted for caller in admitters), Counter())
        used = sum((caller.used for caller in admitters), Counter())
        assert {revision: one.admission_count for revision, one in usage.items()} == admitted
        assert {revision: one.use_count for revision, one in usage.items() if one.use_count} == used

    async def _list(self, after: int, memory: MemoryNamespace | None = None) -> list[ChangeSet]:
        pages = (memory or self.memory).list_change_sets(after_namespace_revision=after, page_size=_PAGE_SIZE)
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
        await self.follower.close()
