"""What a case is given: a real server, one behind a network that loses answers, or one that follows a script."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message

from clients.conformance.cases import Case
from durable_memory_client.methods import METHODS
from tests.clients.python.fake_service import Answer, FakeService, Forever, Refusal
from tests.processes.embedding_provider import EmbeddingProvider
from tests.processes.free_port import free_port
from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.processes.proxy import Fate, TcpProxy, Way
from tests.processes.server import ServerProcess

TOKENS: Final = {
    "reader": "token-of-a-reader",
    "writer": "token-of-a-writer",
    "everything": "token-of-somebody-who-may-do-everything",
}
_ROLES: Final = {
    "reader": ["reader"],
    "writer": ["writer"],
    "everything": ["reader", "writer", "activator", "operator", "administrator"],
}
_METHODS: Final = {method.name: method for method in METHODS.values()}
_FRAME_HEADER_BYTES: Final = 9
_ANSWER_FRAMES: Final = (0, 1)  # DATA and HEADERS of HTTP/2: the others keep the connection
_MAIN_ADDRESS: Final = "127.0.0.1"


class Conditions:
    """Starts each server when the first case needs it. What a case changes is seen in its own namespace alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = AsyncExitStack()
        self._servers: dict[str, ServerProcess] = {}

    async def __aenter__(self) -> Conditions:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    @asynccontextmanager
    async def of(self, case: Case) -> AsyncIterator[Surroundings]:
        """The address for the case, and afterwards what the service was asked."""
        match case.given:
            case "server" | "keys" | "semantic":
                yield Surroundings((await self._shared(case.given)).address)
            case "two_servers":
                other = await self._shared("other")
                yield Surroundings((await self._shared("server")).address, saved={"other_address": other.address})
            case "script":
                with FakeService() as service:
                    for method, answers in case.answers.items():
                        service.will_answer(method, *(_answer(method, answer) for answer in answers))
                    yield Surroundings(service.address, service)
            case "lost_answer":
                server = await self._shared("server")
                async with TcpProxy(_port(server)) as proxy:
                    proxy.rule = _Losing(case.drop or "")
                    yield Surroundings(f"{_MAIN_ADDRESS}:{proxy.port}", proxy=proxy)
            case "killed_server":
                async with self._killed(case.drop or "") as surroundings:
                    yield surroundings
            case "nothing":
                yield Surroundings(f"{_MAIN_ADDRESS}:{free_port()}")
            case unknown:
                raise ValueError(f"no such condition: {unknown}")

    async def _shared(self, kind: str) -> ServerProcess:
        if kind not in self._servers:
            environment = {}
            arguments: list[str] = []
            if kind == "keys":
                arguments = ["--credentials", str(self._keys())]
            if kind == "semantic":
                provider = await self._stack.enter_async_context(EmbeddingProvider())
                environment = {
                    "DURABLE_MEMORY_SERVER_EMBEDDING_PROVIDER": "openai",
                    "DURABLE_MEMORY_SERVER_EMBEDDING_BASE_URL": provider.base_url,
                    "DURABLE_MEMORY_SERVER_EMBEDDING_MODEL": "fixture",
                    "DURABLE_MEMORY_SERVER_EMBEDDING_QUERY_TIMEOUT_SECONDS": "60",
                }
            server = self._server(kind, arguments, environment)
            await asyncio.to_thread(self._stack.enter_context, server)
            self._servers[kind] = server
        return self._servers[kind]

    @asynccontextmanager
    async def _killed(self, needle: str) -> AsyncIterator[Surroundings]:
        """A server of its own that is killed when its answer leaves it, and is started again over the same file."""
        server = self._server(f"killed-{free_port()}", [], {})
        await asyncio.to_thread(server.start)
        restarts: list[asyncio.Task[None]] = []

        async def again() -> None:
            await asyncio.to_thread(server.restart)
            proxy.open.set()

        def killed() -> None:
            proxy.open.clear()
            server.kill9()
            restarts.append(asyncio.ensure_future(again()))

        try:
            async with _Door(_port(server)) as proxy:
                proxy.rule = _Losing(needle, killed)
                yield Surroundings(f"{_MAIN_ADDRESS}:{proxy.port}", proxy=proxy)
            await asyncio.gather(*restarts)
        finally:
            server.close()

    def _server(self, name: str, arguments: list[str], environment: Mapping[str, str]) -> ServerProcess:
        store = f"sqlite:///{self._folder / name}.db"
        return ServerProcess(store, self._folder / f"{name}.log", args=arguments, env=environment)

    def _keys(self) -> Path:
        path = self._folder / "keys.json"
        entries = [
            {"sha256": hashlib.sha256(token.encode()).hexdigest(), "name": name, "roles": _ROLES[name]}
            for name, token in TOKENS.items()
        ]
        path.write_text(json.dumps(entries))
        path.chmod(0o600)
        return path


class Surroundings:
    """Where the case calls; `service` if it follows a script, `proxy` if there is one on the way.

    `saved`: what the steps may name although no step saved it.
    """

    def __init__(
        self,
        address: str,
        service: FakeService | None = None,
        proxy: TcpProxy | None = None,
        saved: Mapping[str, str] | None = None,
    ) -> None:
        self.address = address
        self.saved = dict(saved or {})
        self._service = service
        self._proxy = proxy

    async def asked(self) -> None:
        """Return when the service has been asked something, or after a time in which any call would have come."""
        assert self._service is not None, "only a service that follows a script knows that it was asked"
        service = self._service
        with suppress(WaitTimeoutError):
            await wait_until_async(lambda: service.asked, what="the service was asked")

    def faults(self, case: Case) -> list[str]:
        """What is wrong with how the service was called."""
        found = []
        if self._proxy is not None and not self._proxy.struck:
            found.append("no answer was lost: the case did not make the call that it is about")
        for method, wanted in case.asked.items():
            assert self._service is not None, "only a service that follows a script knows what it was asked"
            found += _faults_of_calls(method, self._service, wanted)
        return found


class _Door(TcpProxy):
    """A proxy at which who comes while it is shut waits: so that no case hangs on how fast a server starts."""

    def __init__(self, upstream_port: int) -> None:
        super().__init__(upstream_port)
        self.open = asyncio.Event()
        self.open.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.open.wait()
        await super()._accept(reader, writer)


class _Losing:
    """Lets the request that has `needle` in it through, and loses the first answer that then comes back."""

    def __init__(self, needle: str, when_lost: Any = None) -> None:
        self._needle = needle.encode()
        self._when_lost = when_lost
        self._sent = False
        self._lost = False

    def __call__(self, way: Way, chunk: bytes) -> Fate:
        if way is Way.TO_SERVER:
            self._sent = self._sent or self._needle in chunk
        elif self._sent and not self._lost and _has_answer(chunk):
            self._lost = True
            if self._when_lost is not None:
                self._when_lost()
            return Fate.CUT_BEFORE
        return Fate.PASS


def _has_answer(chunk: bytes) -> bool:
    """Whether a chunk that begins with a frame of HTTP/2 has one of an answer in it."""
    place = 0
    while place + _FRAME_HEADER_BYTES <= len(chunk):
        if chunk[place + 3] in _ANSWER_FRAMES:
            return True
        place += _FRAME_HEADER_BYTES + int.from_bytes(chunk[place : place + 3], "big")
    return False


def _faults_of_calls(method: str, service: FakeService, wanted: Mapping[str, Any]) -> Iterable[str]:
    calls = service.calls(method)
    if "attempts" in wanted and len(calls) != wanted["attempts"]:
        yield f"{method} was called {len(calls)} times, not {wanted['attempts']}"
    if "most_attempts" in wanted and len(calls) > wanted["most_attempts"]:
        yield f"{method} was called {len(calls)} times, more than {wanted['most_attempts']}"
    if wanted.get("less_left_each_time"):
        left = [call.seconds_left or math.inf for call in calls]
        if not all(later < earlier for earlier, later in pairwise(left)):
            yield f"{method}: of its deadline the attempts had {left} s, and not less each time"
    if wanted.get("same_request_id"):
        ids = {call.request.request_id for call in calls}
        if len(ids) != 1 or ids == {""}:
            yield f"{method}: the attempts have the request ids {sorted(ids)}"
    for name, value in wanted.get("headers", {}).items():
        if any(call.headers.get(name) != value for call in calls):
            yield f"{method}: header {name} is not {value!r} in every attempt"
    if "seconds_left" in wanted:
        low, high = wanted["seconds_left"]
        if not all(call.seconds_left is not None and low <= call.seconds_left <= high for call in calls):
            yield f"{method}: a deadline of {[call.seconds_left for call in calls]} s, not {low} to {high}"
    if "namespace" in wanted and any(call.request.namespace.tenant_id != "conformance" for call in calls):
        yield f"{method}: not called in the namespace of the client"


def _answer(method: str, answer: Any) -> Any:
    if answer == "forever":
        return Forever()
    if "stream" in answer:
        return [_one(method, item) for item in answer["stream"]]
    return _one(method, answer)


def _one(method: str, answer: Mapping[str, Any]) -> Answer:
    if "refuse" in answer:
        refuse = answer["refuse"]
        return Refusal(
            code=grpc.StatusCode[refuse["code"]],
            reason=refuse.get("reason"),
            metadata=refuse.get("metadata", {}),
            retry_after_ms=refuse.get("retry_after_ms"),
            domain=refuse.get("domain", "durablememory.dev"),
            headers=tuple(refuse.get("headers", {}).items()),
        )
    reply: Message = _METHODS[method].response_type()
    return ParseDict(answer["reply"], reply)


def _port(server: ServerProcess) -> int:
    return int(server.address.rpartition(":")[2])
