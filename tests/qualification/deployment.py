"""A deployment that others use: what may be tried with it, in namespaces that nobody else has.

Nothing is broken. Every scope's name begins with a random mark, so that nothing of anybody else is read or written.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import grpc

from durable_memory_client import Decision, MemoryClient, MemoryServiceError, NodeStatus, Tls
from tests.qualification.checks import availability
from tests.qualification.report.results import Finding, RowResult
from tests.qualification.report.timeline import Timeline
from tests.qualification.traffic.callers import Caller
from tests.qualification.traffic.racers import CasRacer
from tests.qualification.traffic.traffic import EVERYTHING, WRITERS, Traffic, stop_and_check

_ATTEMPT_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.3
_LEAST_RATE: Final = 0.5
_SETTLE_SECONDS: Final = 120.0
_AT_ONCE: Final = 8
_LETTERS: Final = "bcdfghjklmnpqrstvwxz"
_RACING: Final[Sequence[type[Caller]]] = (*WRITERS, CasRacer, CasRacer, CasRacer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who calls. `tenant` and `principal`: None for the credential's own."""

    token: str | None = field(default=None, repr=False)
    tenant: str | None = None
    principal: str | None = None


class Deployment:
    """`address` as the client takes it. `other`: an identity of another tenant, for what must stay apart."""

    def __init__(
        self,
        address: str,
        identity: Identity,
        *,
        timeline: Timeline,
        tls: bool | Tls | None = None,
        other: Identity | None = None,
    ) -> None:
        self.timeline = timeline
        self.identity = identity
        self.other = other
        self.mark = f"qualify-{secrets.token_hex(4)}"
        """What the names of its scopes begin with."""
        self.canary = "q" + "".join(secrets.choice(_LETTERS) for _ in range(12))
        self.scopes: list[str] = []
        """Those that were used, by the first identity."""
        self._address = address
        self._tls = tls

    @property
    def secrets(self) -> Sequence[str]:
        tokens = (self.identity.token, self.other.token if self.other else None)
        return [token for token in tokens if token]

    def client(self, tenant: str, *, principal: str = "", scope: str = "default") -> MemoryClient:
        """A client of a scope with the mark; its tenant and principal are always the identity's."""
        name = f"{self.mark}-{scope}"
        if name not in self.scopes:
            self.scopes.append(name)
        return self.connect(self.identity, name)

    def connect(self, identity: Identity, scope: str, *, tenant: str | None = None) -> MemoryClient:
        """A client with this identity, of the scope by its whole name."""
        return MemoryClient(
            self._address,
            identity.token,
            tenant=tenant or identity.tenant,
            principal=identity.principal,
            scope=scope,
            tls=self._tls,
            channel_options=(("grpc.use_local_subchannel_pool", 1),),
        )


async def use(deployment: Deployment, result: RowResult, seconds: float, seed: int) -> None:
    """Everything that agents' hosts do, in two namespaces, held against what its callers know."""
    await _loaded(deployment, result, seconds, seed, scopes=("use-a", "use-b"), kinds=EVERYTHING, connections=2)


async def race(deployment: Deployment, result: RowResult, seconds: float, seed: int) -> None:
    """Many writers on many connections, in one namespace."""
    await _loaded(deployment, result, seconds, seed, scopes=("race",), kinds=_RACING, connections=4)


async def _loaded(
    deployment: Deployment,
    result: RowResult,
    seconds: float,
    seed: int,
    *,
    scopes: Sequence[str],
    kinds: Sequence[type[Caller]],
    connections: int,
) -> None:
    traffic = Traffic(
        deployment,
        [deployment.identity.tenant or ""],
        seed=seed,
        scopes=scopes,
        kinds=kinds,
        connections=connections,
        timeout=_ATTEMPT_SECONDS,
        pause=_PAUSE_SECONDS,
        least_rate=_LEAST_RATE,
    )

    def found(check: str, looked_at: int, problems: Iterable[str]) -> None:
        result.findings.append(Finding(check=check, looked_at=looked_at, problems=list(problems)))

    async with traffic:
        await asyncio.sleep(seconds)
        await stop_and_check(traffic, found, _SETTLE_SECONDS)
    result.operations.add(traffic.operations)
    result.distributions |= availability.latencies(traffic.history)
    successes, ended = availability.writes(traffic.histories), traffic.ended
    assert ended is not None
    result.figures["worst_seconds_without_writes"] = round(availability.worst_gap(successes, traffic.began, ended), 2)


async def isolate(deployment: Deployment, result: RowResult) -> None:
    """What one tenant has, the other can neither read nor change, whether it names the namespace or the ids in it.

    The identity states its tenant: without it, the other one would be at home.
    """
    other = deployment.other
    assert other is not None
    assert deployment.identity.tenant
    text = f"{deployment.canary} is of one tenant alone"
    scope = f"{deployment.mark}-apart"
    async with (
        deployment.client("", scope="apart") as mine,
        deployment.connect(other, scope, tenant=deployment.identity.tenant) as trespasser,
        deployment.connect(other, scope) as beside,
    ):
        memory = await mine.remember(text)
        session = await mine.open_session()
        node_id = memory.citation.node_id
        before = await mine.get_change_token()
        named = [
            _outcome(call, grpc.StatusCode.PERMISSION_DENIED)
            for call in (
                *(trespasser.get_change_token, trespasser.snapshot().all, trespasser.get_index_status),
                *(lambda: trespasser.preview(text), lambda: trespasser.get_node(node_id)),
                *(lambda: trespasser.get(memory), lambda: trespasser.remember(f"{text}, too")),
                *(lambda: trespasser.retire(memory), lambda: trespasser.open_session()),
                *(lambda: trespasser.get_session(session.session_id), lambda: trespasser.set_schedule()),
            )
        ]
        inside = [
            _outcome(call, grpc.StatusCode.NOT_FOUND)
            for call in (
                *(lambda: beside.get_node(node_id), lambda: beside.get(memory), lambda: beside.retire(memory)),
                lambda: beside.get_session(session.session_id),
            )
        ]
        denied = [problem for problem in await asyncio.gather(*named) if problem]
        unknown = [problem for problem in await asyncio.gather(*inside) if problem]
        recalled = [hit.citation.node_id for hit in await beside.preview(text, max_results=100)]
        after = await mine.get_change_token()
    result.operations.attempts["various", "refused"] += len(named) + len(inside)
    result.findings += [
        Finding(check="another tenant's namespace is denied", looked_at=len(named), problems=denied),
        Finding(check="another tenant's ids are unknown", looked_at=len(inside), problems=unknown),
        Finding(
            check="recall returns nothing of another tenant",
            looked_at=1,
            problems=["it returned the other's memory"] if node_id in recalled else [],
        ),
        Finding(
            check="nothing was changed from outside",
            looked_at=1,
            problems=[] if before == after else ["the namespace has moved"],
        ),
    ]


async def _outcome(call: Callable[[], Awaitable[Any]], wanted: grpc.StatusCode) -> str:
    """What is wrong with how a call ended; nothing if it was refused as it must be."""
    try:
        await call()
    except MemoryServiceError as error:
        return "" if error.code is wanted else f"{error.method} was refused with {error.code.name}, not {wanted.name}"
    return f"a call was answered that {wanted.name} was due to"


@dataclass(slots=True)
class Left:
    """What was put away, and what could not be."""

    retired: int = 0
    rejected: int = 0
    closed: int = 0
    failures: int = 0


async def clean_up(deployment: Deployment) -> Left:
    """Retire every memory, reject every candidate and close every session in the scopes that were used."""
    left = Left()
    decision = Decision.manual("qualification")
    for scope in deployment.scopes:
        async with deployment.connect(deployment.identity, scope) as client:
            try:
                nodes = await client.snapshot().all()
                sessions = [one.session_id async for one in client.list_sessions() if one.closed_at is None]
            except MemoryServiceError:
                left.failures += 1
                continue
            active = [node for node in nodes if node.status is NodeStatus.ACTIVE]
            candidates = [node for node in nodes if node.status is NodeStatus.CANDIDATE]
            left.retired += await _each(left, (partial(client.retire, node) for node in active))
            left.rejected += await _each(left, (partial(client.reject, node, decision) for node in candidates))
            left.closed += await _each(left, (partial(client.close_session, one) for one in sessions))
    return left


async def _each(left: Left, calls: Iterable[Callable[[], Awaitable[Any]]]) -> int:
    """Make the calls, some at a time; how many succeeded."""
    done = 0
    remaining = iter(calls)
    while some := list(itertools.islice(remaining, _AT_ONCE)):
        for outcome in await asyncio.gather(*(call() for call in some), return_exceptions=True):
            if isinstance(outcome, MemoryServiceError):
                left.failures += 1
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                done += 1
    return done
