"""Everything that a deployment has, as processes of this machine, and nothing of it left afterwards."""

from __future__ import annotations

import asyncio
import random
import secrets
import string
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx2

from durable_memory_client import MemoryClient
from tests.processes.envoy import EnvoyProcess
from tests.processes.otlp_receiver import OtlpReceiver
from tests.processes.polling import WaitTimeoutError
from tests.processes.proxy import TcpProxy, always
from tests.qualification.cluster.credentials import ISOLATED_TENANTS, Credentials
from tests.qualification.cluster.embedding_node import MODEL, EmbeddingNode
from tests.qualification.cluster.postgres_pair import PostgresNode, PostgresPair
from tests.qualification.cluster.redis_group import RedisGroup, RedisNode
from tests.qualification.cluster.role_watch import RoleWatch
from tests.qualification.cluster.server_node import SEMANTIC_SERVICE, WHOLE_SERVER, ServerNode
from tests.qualification.cluster.to_the_end import in_thread_to_the_end
from tests.qualification.report.timeline import Timeline

_HEALTHY_SECONDS: Final = 180.0
_LOOK_INTERVAL_SECONDS: Final = 0.1
_CANARY_LETTERS: Final = 12

# Every client has connections of its own, and finds a server that was killed as soon as it listens.
_CLIENT_OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
)


class Cluster:
    """Clients -> `front` -> Envoy -> `wires` -> servers -> PostgreSQL pair, Redis group, embedding provider.

    Every line between two of them is a `TcpProxy`, whose rule is free for faults; the proxies live on the event loop
    on which the cluster is opened, so nothing may block that loop for long. All processes have their folders, and their
    logs in `folder`. Open it as an asynchronous context manager: it is healthy at the beginning of the block.
    """

    def __init__(
        self,
        folder: Path,
        *,
        timeline: Timeline,
        service_root: Path | None = None,
        servers: int = 2,
        seed: int = 0,
        settings: Mapping[str, object] | None = None,
        telemetry: Path | None = None,
    ) -> None:
        """`service_root`: a folder with another package durable_memory, which the servers run instead of this one.

        The same `seed` gives the same canary. `settings` of the servers, by their name in lower case, win over those of
        this class. `telemetry`: the file for all that servers send, which may grow large; by default in `folder`.
        """
        self.folder = folder
        self.service_root = service_root
        self.further_logs: list[Path] = []
        """Of processes that a scenario starts beside the cluster's own: they are kept and scanned with the others."""
        self.timeline = timeline
        self.credentials = Credentials(folder / "credentials.json")
        letters = random.Random(f"canary/{seed}").choices(string.ascii_lowercase, k=_CANARY_LETTERS)
        self.canary = "q" + "".join(letters)
        """A word that every text and question of the traffic holds, so that one that leaked is found."""
        self.api_key = secrets.token_urlsafe(32)
        self.telemetry = OtlpReceiver(telemetry or folder / "otlp.bin")
        self.postgres = PostgresPair()
        self.redis = RedisGroup()
        self.embedding = EmbeddingNode(folder, timeline)
        self.servers: list[ServerNode] = []
        self.wires: list[TcpProxy] = []
        """Between Envoy and each server."""
        self.start_seconds = 0.0
        """How long it took until it was healthy."""
        self._count = servers
        self._settings = settings or {}
        self._envoy: EnvoyProcess | None = None
        self._front: TcpProxy | None = None
        self._clients: set[MemoryClient] = set()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        began = time.monotonic()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.telemetry)
            await _all(
                stack.enter_async_context(self.postgres),
                stack.enter_async_context(self.redis),
                stack.enter_async_context(self.embedding),
            )
            for index in range(self._count):
                server = ServerNode(
                    index,
                    self.postgres.dsn,
                    self.folder,
                    self.timeline,
                    settings=self._server_settings(),
                    service_root=self.service_root,
                )
                stack.push_async_callback(server.close)
                self.servers.append(server)
                self.wires.append(await stack.enter_async_context(TcpProxy(server.port)))
            self._envoy = EnvoyProcess([wire.port for wire in self.wires], self.folder)
            stack.push_async_callback(in_thread_to_the_end, self._envoy.close)
            await _all(in_thread_to_the_end(self._envoy.start), *(server.start() for server in self.servers))
            self._front = await stack.enter_async_context(TcpProxy(self._envoy.port))
            stack.push_async_callback(self._close_clients)
            await stack.enter_async_context(RoleWatch(self.timeline, self._roles))
            await self.wait_healthy(_HEALTHY_SECONDS)
            self._stack = stack.pop_all()
        self.start_seconds = time.monotonic() - began
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def envoy(self) -> EnvoyProcess:
        assert self._envoy is not None, "the cluster is not open"
        return self._envoy

    @property
    def front(self) -> TcpProxy:
        """Between clients and Envoy."""
        assert self._front is not None, "the cluster is not open"
        return self._front

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.front.port}"

    @property
    def secrets(self) -> list[str]:
        """All that no report, log, metric or span may hold."""
        return [*self.credentials.secrets, self.api_key]

    @property
    def proxies(self) -> dict[str, TcpProxy]:
        """Every line, by name."""
        return {
            "front": self.front,
            **{f"wire of {server.name}": wire for server, wire in zip(self.servers, self.wires, strict=True)},
            **{node.name: node.proxy for node in self.postgres.nodes},
            **{f"replication of {node.name}": node.replication for node in self.postgres.nodes},
            **{node.name: node.proxy for node in self.redis.nodes},
            "embedding": self.embedding.proxy,
        }

    @property
    def logs(self) -> list[Path]:
        """What processes have written; those that do not write yet have none."""
        own = [
            *(server.log for server in self.servers),
            *(self.envoy.log, self.folder / "embedding.log"),
            *(node.log for node in self.postgres.nodes),
            *(node.log for node in self.redis.nodes),
            *(sentinel.log for sentinel in self.redis.sentinels),
            *self.further_logs,
        ]
        return [log for log in own if log.exists()]

    def token(self, tenant: str) -> str:
        """The token that is bound to one of the isolated tenants; for every other tenant, the one for all."""
        return self.credentials.of_tenant.get(tenant, self.credentials.everything)

    def client(
        self,
        tenant: str,
        *,
        principal: str = "user-1",
        scope: str = "default",
        role: str | None = None,
        address: str | None = None,
    ) -> MemoryClient:
        """A client with a connection of its own, and a token for every tenant, with all roles or `role` alone.

        `address` is another way in: a server's wire. It is closed with the cluster at the latest.
        """
        token = self.credentials.everything if role is None else self.credentials.of_role[role]
        return self._connect(token, tenant, principal, scope, address)

    def tenant_client(self, tenant: str, *, principal: str = "user-1", scope: str = "default") -> MemoryClient:
        """The same with the token that is good for this one of the isolated tenants alone."""
        if tenant not in ISOLATED_TENANTS:
            raise ValueError(f"{tenant!r} has no token of its own; {', '.join(ISOLATED_TENANTS)} have")
        return self._connect(self.token(tenant), tenant, principal, scope, None)

    async def healthy(self) -> list[str]:
        """What is not as it should be; nothing: every part is there, in its role, and knows of the others."""
        found = await asyncio.gather(
            self._lines(),
            self._postgres_problems(),
            self.redis.problems(),
            self._embedding_problems(),
            self._envoy_problems(),
            *map(_server_problems, self.servers),
        )
        return [problem for problems in found for problem in problems]

    async def wait_healthy(self, timeout: float = _HEALTHY_SECONDS) -> float:
        """Return how many seconds it took until it was healthy. Raises: WaitTimeoutError with the last problems."""
        began = time.monotonic()
        while problems := await self.healthy():
            if time.monotonic() - began > timeout:
                raise WaitTimeoutError(f"not healthy within {timeout:g} s: {'; '.join(problems)}")
            await asyncio.sleep(_LOOK_INTERVAL_SECONDS)
        return time.monotonic() - began

    def _connect(self, token: str, tenant: str, principal: str, scope: str, address: str | None) -> MemoryClient:
        client = MemoryClient(
            address or self.address,
            token,
            tenant=tenant,
            principal=principal,
            scope=scope,
            channel_options=_CLIENT_OPTIONS,
        )
        self._clients.add(client)
        return client

    async def _close_clients(self) -> None:
        for client in self._clients:
            await client.close()

    def _server_settings(self) -> Mapping[str, object]:
        return {
            "credentials_file": self.credentials.path,
            "embedding_provider": "openai",
            "embedding_base_url": self.embedding.base_url,
            "embedding_api_key": self.api_key,
            "embedding_model": MODEL,
            "embedding_query_prefix": "query: ",
            "embedding_passage_prefix": "passage: ",
            "embedding_similarity_floor": 0.76,
            # The model does one text after the other, also for those who have given up: little at a time is in its way.
            "embedding_batch_texts": 16,
            "embedding_max_concurrent": 2,
            "vectors_redis_url": self.redis.url,
            "vectors_lease_ttl_seconds": 3,
            "vectors_poll_interval_seconds": 0.1,
            "vectors_refresh_delay_seconds": 0.2,
            "drain_delay_seconds": 0.3,
            "health_probe_interval_seconds": 0.5,
            "telemetry_otlp_endpoint": self.telemetry.endpoint,
            "telemetry_metrics_interval_seconds": 1,
            **self._settings,
        }

    def _roles(self) -> Mapping[str, str | None]:
        try:
            redis_primary = self.redis.primary
        except RuntimeError:
            redis_primary = None
        primaries = (self.postgres.primary, redis_primary)
        nodes: Sequence[PostgresNode | RedisNode] = (*self.postgres.nodes, *self.redis.nodes)
        return {
            node.name: None if not node.is_running else "primary" if node in primaries else "standby" for node in nodes
        }

    async def _lines(self) -> list[str]:
        return [
            f"{name}: the line is disturbed"
            for name, proxy in self.proxies.items()
            if proxy.rule is not always or proxy.delay_seconds
        ]

    async def _postgres_problems(self) -> list[str]:
        if not await self.postgres.in_sync():
            return [f"{self.postgres.standby.name} is no synchronous standby of {self.postgres.primary.name}"]
        return [] if self.postgres.waits_for_standby else ["commits do not wait for the standby"]

    async def _embedding_problems(self) -> list[str]:
        try:
            async with httpx2.AsyncClient(trust_env=False, timeout=2.0) as client:
                answer = await client.get(f"{self.embedding.base_url}/models")
        except httpx2.TransportError as error:
            return [f"the embedding provider does not answer: {type(error).__name__}"]
        return [] if answer.status_code == 200 else [f"the embedding provider says {answer.status_code}"]

    async def _envoy_problems(self) -> list[str]:
        try:
            ports = await asyncio.to_thread(self.envoy.healthy_ports)
        except httpx2.TransportError as error:
            return [f"Envoy does not answer: {type(error).__name__}"]
        return [
            f"Envoy does not see {server.name}"
            for server, wire in zip(self.servers, self.wires, strict=True)
            if wire.port not in ports
        ]


async def _server_problems(server: ServerNode) -> list[str]:
    if server.ended_by_itself:
        return [f"{server.name} ended by itself"]
    if not server.is_running or server.is_paused:
        return [f"{server.name} does not run"]
    answers = await asyncio.gather(server.health(WHOLE_SERVER), server.health(SEMANTIC_SERVICE))
    if answers[0] != "SERVING":
        return [f"{server.name} says {answers[0]}"]
    return [] if answers[1] == "SERVING" else [f"semantic recall of {server.name} says {answers[1]}"]


async def _all(*steps: Coroutine[Any, Any, object]) -> None:
    """Do all at once, and wait for all also if one fails: what began to start must be there to be ended."""
    for outcome in await asyncio.gather(*steps, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
