"""Load on several namespaces of a cluster while it is broken, and everything that can be held against it after.

async with Traffic(stage.cluster, ["row1-a", "row1-b"], seed=7) as traffic:
    ...                                    # break things; `acknowledged` says whether it goes on
    await traffic.acknowledged(20)
    await stop_and_check(traffic, stage.found)
stage.result.operations.add(traffic.operations)
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from types import TracebackType
from typing import Protocol, Self

from durable_memory_client import MemoryClient
from tests.processes.polling import wait_until_async
from tests.qualification.checks import assumptions
from tests.qualification.checks.recall import is_by_meaning
from tests.qualification.checks.sessions import Restart
from tests.qualification.faults.processes import KILLED_AMID_COMMITS, EveryServerKilled, ServerDrained, ServerKilled
from tests.qualification.recorder.history import History, merged
from tests.qualification.recorder.operations import operations
from tests.qualification.recorder.recorder import Recorder
from tests.qualification.report.results import Finding, Operations
from tests.qualification.report.timeline import Event, Lane, Timeline
from tests.qualification.traffic.callers import Caller, ChangeSetter, Proposer, Rememberer, Reviser
from tests.qualification.traffic.judgement import Found, Kept, together
from tests.qualification.traffic.racers import CasRacer, Repeater
from tests.qualification.traffic.readers import Admitter, LastingRecaller, Recaller, SessionResumer
from tests.qualification.traffic.tenancy import Tenancy, all_of, in_turn

EVERYTHING: Sequence[type[Caller]] = (
    *(Rememberer, Reviser, Reviser, ChangeSetter, Proposer),
    *(Recaller, Recaller, Admitter, SessionResumer, CasRacer, Repeater),
)
"""One of each kind of caller at least."""

WRITERS: Sequence[type[Caller]] = (Rememberer, Reviser, ChangeSetter, Proposer, CasRacer, Repeater)

BY_MEANING: Sequence[type[Caller]] = (Rememberer, Reviser, Recaller, Recaller, LastingRecaller)
"""Few that write and many that recall, for namespaces whose vectors are to keep up; with `BY_MEANING_PAUSE_SECONDS`."""

LEAST_RATE = 0.5
"""Answers per second, of all callers of all namespaces together, below which a run proves too little."""

PAUSE_SECONDS = 0.2
"""How long a caller rests between two things on the average, so that it is not the machine that is tested."""

BY_MEANING_PAUSE_SECONDS = 0.8
"""A model makes some ten vectors per second on half a machine; who writes more is recalled by words alone."""

SETTLE_SECONDS = 300.0
"""For what is in doubt in a namespace, which is repeated one after the other."""

_RESTARTS = frozenset({ServerKilled.name, EveryServerKilled.name, KILLED_AMID_COMMITS, ServerDrained.name})
_ATTEMPT_SECONDS = 5.0
_REPEATED = 60


class Reachable(Protocol):
    """What traffic needs of a cluster, or of a deployment."""

    @property
    def canary(self) -> str:
        """A word that all texts and questions contain."""

    @property
    def timeline(self) -> Timeline: ...

    def client(self, tenant: str, *, principal: str = ..., scope: str = ...) -> MemoryClient:
        """A client with a connection of its own, which its user closes."""


class Traffic:
    """Callers of `kinds`, `callers` of each, in every namespace of `tenants` times `scopes`, from entry to `stop`.

    All that they do follows from `seed`, but for what happens at the same time. `timeout` is the deadline of an
    attempt in seconds. The figures of `least_rate` and `pause` are at their defaults above. Namespaces are to be
    fresh: what others have written is a finding.

    Tenants that are in `by_meaning` have the callers and the pause of that name instead. Then the others are indexed
    only when somebody asks for it, lest the model have no time, and `check` insists on recalls by meaning while every
    node had a vector.
    """

    def __init__(
        self,
        cluster: Reachable,
        tenants: Sequence[str],
        *,
        seed: int | str,
        scopes: Sequence[str] = ("default",),
        kinds: Sequence[type[Caller]] = EVERYTHING,
        callers: int = 1,
        connections: int = 2,
        timeout: float | None = _ATTEMPT_SECONDS,
        pause: float = PAUSE_SECONDS,
        least_rate: float = LEAST_RATE,
        by_meaning: Collection[str] = (),
    ) -> None:
        self._cluster = cluster
        self._by_meaning = frozenset(by_meaning)
        self._places = [(tenant, scope) for tenant in tenants for scope in scopes]
        self._seed = str(seed)
        self._kinds = tuple(kind for kind in kinds for _ in range(callers))
        self._connections = connections
        self._timeout = timeout
        self._pause = pause
        self._least_rate = least_rate
        self._stack = AsyncExitStack()
        self._kept: dict[int, Kept] = {}
        self.tenancies: list[Tenancy] = []
        """One for each namespace, in the order of tenants and scopes."""
        self.began = 0.0
        """When there began to be traffic, by the monotonic clock."""
        self.ended: float | None = None
        """When it was told to stop; None while there is any."""

    async def __aenter__(self) -> Self:
        self.began = time.monotonic()
        try:
            for tenant, scope in self._places:
                self.tenancies.append(await self._tenancy(tenant, scope))
                if self._by_meaning and tenant not in self._by_meaning:
                    await self.tenancies[-1].memory.set_schedule()
        except BaseException:
            await self._stack.aclose()
            raise
        for tenancy in self.tenancies:
            tenancy.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def histories(self) -> list[History]:
        """What the callers of each namespace know, in the order of `tenancies`."""
        return [tenancy.history for tenancy in self.tenancies]

    @property
    def history(self) -> History:
        """All of it together, for what does not depend on the namespace: availability, latencies, counts."""
        return merged(self.histories)

    @property
    def operations(self) -> Operations:
        """Attempts and how they ended; what became of the unknown ones is known after `check`."""
        counted = Operations()
        for place, history in enumerate(self.histories):
            counted.add(operations(history, self._kept[place].committed if place in self._kept else {}))
        return counted

    async def sent(self, more: int) -> None:
        """Return when `more` attempts have been started in each namespace."""
        await asyncio.gather(*(tenancy.recorder.sent(more) for tenancy in self.tenancies))

    async def acknowledged(self, more: int, timeout: float = 180.0) -> float:
        """Return when `more` further changes that began from now on have been acknowledged in each namespace, and how
        long that took in seconds. Repetitions are none. Raises: WaitTimeoutError, or what a caller did not expect."""
        began = time.monotonic()

        def are_there() -> bool:
            return all(_acknowledged_since(tenancy.recorder, began) >= more for tenancy in self.tenancies)

        def so_far() -> str:
            counts = [_acknowledged_since(tenancy.recorder, began) for tenancy in self.tenancies]
            return f"{more} more are acknowledged in each namespace; there are {counts}"

        await wait_until_async(are_there, timeout, what=so_far)
        return time.monotonic() - began

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """No caller begins anything while the block lasts."""
        for tenancy in self.tenancies:
            tenancy.rest()
        try:
            yield
        finally:
            for tenancy in self.tenancies:
                tenancy.go_on()

    async def check_so_far(self, found: Found) -> None:
        """Whether what the callers know by now is true, while they go on: the history alone."""
        wrong = [problem for tenancy in self.tenancies for problem in await tenancy.problems_so_far()]
        found("acknowledged so far is kept", sum(len(tenancy.recorder.calls) for tenancy in self.tenancies), wrong)

    async def stop(self) -> None:
        """Let every caller finish what it is doing, and do once more what is to be known of the time after the last
        fault. Raises in the end what one of them did not expect."""
        self.ended = time.monotonic()
        await in_turn(
            lambda: all_of(tenancy.stop() for tenancy in self.tenancies),
            lambda: all_of(tenancy.finish() for tenancy in self.tenancies),
        )

    async def settle(self, timeout: float = SETTLE_SECONDS) -> None:
        """Repeat what is in doubt, with the same request ids, until all of it is known; and some of what is known.

        Raises: WaitTimeoutError, if something cannot be known: then a server does not answer.
        """
        rng = random.Random(f"{self._seed}/settle")
        for tenancy in self.tenancies:
            await tenancy.settle(timeout)
            await tenancy.repeat(rng, _REPEATED, strict=False)

    async def check(self, found: Found) -> None:
        """Hold everything there is against everything that the callers know; after `stop` and `settle`.

        The assumptions of the harness come first. One finding for each check, over all namespaces.
        """
        assert self.ended is not None, "check after stop"
        history = self.history
        # Beside the event loop, which carries every line of the cluster. Nobody calls any more.
        problems = await asyncio.to_thread(self._assumptions, history)
        found("the harness did what it was to do", len(history.calls), problems)
        restarts = self._restarts()
        judged: list[Sequence[Finding]] = []

        async def judge(place: int) -> None:
            findings, self._kept[place] = await self.tenancies[place].findings(restarts)
            judged.append(findings)

        try:
            await in_turn(*(partial(judge, place) for place in range(len(self.tenancies))))
        finally:
            # Also if one of them cannot be read: what was found in the others is true.
            for finding in together(judged):
                found(finding.check, finding.looked_at, finding.problems)
        if self._by_meaning:
            found("recalls by meaning are among them", sum(map(is_by_meaning, history.answered)), [])

    def _assumptions(self, history: History) -> list[str]:
        assert self.ended is not None
        # Of what has to be of one namespace each has its own; the rate is that of all together.
        one_by_one = [
            problem
            for tenancy in self.tenancies
            for problem in assumptions.problems(
                tenancy.history,
                seconds=0.0,
                least_rate=0.0,
                last_fault=self._last_fault(),
                callers=[caller.name for caller in tenancy.callers],
            )
        ]
        rate = assumptions.too_little_traffic(history, self.ended - self.began, self._least_rate)
        return [*one_by_one, *rate]

    def _last_fault(self) -> float | None:
        """When the last fault of this traffic's time had been mended."""
        ends = [event.began if event.ended is None else event.ended for event in self._faults()]
        return max(ends, default=None)

    def _restarts(self) -> list[Restart]:
        """When servers were away to start again, in this traffic's time."""
        return [
            (event.began, event.ended)
            for event in self._faults()
            if event.label in _RESTARTS and event.ended is not None
        ]

    def _faults(self) -> list[Event]:
        assert self.ended is not None
        events = self._cluster.timeline.events
        return [event for event in events if event.lane is Lane.FAULT and self.began <= event.began < self.ended]

    async def _tenancy(self, tenant: str, scope: str) -> Tenancy:
        clients = []
        for _ in range(self._connections):
            client = self._cluster.client(tenant, scope=scope)
            self._stack.push_async_callback(client.close)
            clients.append(client)
        place = f"{tenant}/{scope}"
        recorder = Recorder(process="harness", seed=self._seed, timeline=self._cluster.timeline, namespace=place)
        tenancy = Tenancy(
            clients,
            seed=f"{self._seed}/{place}",
            kinds=BY_MEANING if tenant in self._by_meaning else self._kinds,
            timeout=self._timeout,
            recorder=recorder,
            canary=self._cluster.canary,
            pause=BY_MEANING_PAUSE_SECONDS if tenant in self._by_meaning else self._pause,
        )
        self._stack.push_async_callback(tenancy.close)
        return tenancy


async def stop_and_check(traffic: Traffic, found: Found, timeout: float = SETTLE_SECONDS) -> None:
    """`stop`, `settle` and `check`, each of them also when the one before it fails: what a caller did not expect, or
    what stays in doubt for ever, may be what was lost. Raises in the end what the first that failed raised."""
    await in_turn(traffic.stop, lambda: traffic.settle(timeout), lambda: traffic.check(found))


def _acknowledged_since(recorder: Recorder, began: float) -> int:
    ended_since = itertools.takewhile(lambda call: call.ended >= began, reversed(recorder.came_through))
    return sum(call.began >= began for call in ended_since)
