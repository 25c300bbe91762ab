"""An in-process server on a loopback port, and raw stubs over real channels to it."""

import functools
import hashlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2_grpc

from durable_memory.adapters.runtime import ManualClock
from durable_memory.config import PREFIX, Settings
from durable_memory.main import Application, build
from durable_memory.ports.store import Store
from durable_memory.store_url import parse_store_url
from durablememory.v1 import (
    candidate_service_pb2_grpc,
    memory_service_pb2_grpc,
    recall_service_pb2_grpc,
    repository_service_pb2_grpc,
    semantic_service_pb2_grpc,
    session_service_pb2_grpc,
    transfer_service_pb2_grpc,
)
from tests.rpc.semantic_parts import SemanticParts

CALL_SECONDS = 60.0
"""For an answer: how soon it comes is not what these tests judge."""
CHANNEL_OPTIONS = (("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1))

# One bearer token per kind of caller; the file holds their hashes.
KEYS: Mapping[str, Mapping[str, Any]] = {
    "full": {"roles": ["reader", "writer", "activator", "operator", "administrator"], "tenants": ["acme"]},
    "reader": {"roles": ["reader"], "tenants": ["acme"]},
    "writer": {"roles": ["reader", "writer"], "tenants": ["acme"]},
    "activator": {"roles": ["reader", "writer", "activator"], "tenants": ["acme"]},
    "bound": {
        "roles": ["reader", "writer", "activator"],
        "tenants": ["acme"],
        "principals": ["user-1"],
        "scopes": ["default"],
    },
    "foreign": {"roles": ["reader", "writer", "activator", "operator", "administrator"], "tenants": ["globex"]},
}


def token_of(key: str) -> str:
    """The bearer token of one of `KEYS`."""
    return f"token-of-{key}-{'x' * 32}"


class _Stub:
    """A generated stub whose calls carry the token and a deadline unless they state their own."""

    def __init__(self, stub: Any, metadata: tuple[tuple[str, str], ...]) -> None:
        self._stub = stub
        self._metadata = metadata

    def __getattr__(self, rpc: str) -> Any:
        call = getattr(self._stub, rpc)
        streaming = isinstance(call, grpc.aio.UnaryStreamMultiCallable | grpc.aio.StreamStreamMultiCallable)
        return functools.partial(call, metadata=self._metadata, timeout=None if streaming else CALL_SECONDS)


class Stubs:
    """Raw stubs of every service over one channel, for one caller."""

    def __init__(self, channel: grpc.aio.Channel, token: str | None) -> None:
        metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        self.channel = channel
        self.sessions = _Stub(session_service_pb2_grpc.SessionServiceStub(channel), metadata)
        self.recall = _Stub(recall_service_pb2_grpc.RecallServiceStub(channel), metadata)
        self.candidates = _Stub(candidate_service_pb2_grpc.CandidateServiceStub(channel), metadata)
        self.memories = _Stub(memory_service_pb2_grpc.MemoryServiceStub(channel), metadata)
        self.repository = _Stub(repository_service_pb2_grpc.RepositoryServiceStub(channel), metadata)
        self.semantic = _Stub(semantic_service_pb2_grpc.SemanticServiceStub(channel), metadata)
        self.transfer = _Stub(transfer_service_pb2_grpc.TransferServiceStub(channel), metadata)
        untyped: Any = channel  # the published types of this stub know only the synchronous kind
        self.reflection = _Stub(reflection_pb2_grpc.ServerReflectionStub(untyped), metadata)
        self.health = _Stub(health_pb2_grpc.HealthStub(channel), metadata)


class ServedApplication:
    """A started application. `stubs()` is a caller without a credential, `stubs("reader")` one with that key."""

    def __init__(self, application: Application, clock: ManualClock | None, resources: AsyncExitStack) -> None:
        self.application = application
        self.clock = clock
        self._resources = resources

    @property
    def address(self) -> str:
        return self.application.address

    async def stubs(self, key: str | None = None) -> Stubs:
        """Stubs over a channel of their own, which is closed with the test."""
        channel = grpc.aio.insecure_channel(self.address, options=CHANNEL_OPTIONS)
        await self._resources.enter_async_context(channel)
        return Stubs(channel, None if key is None else token_of(key))


ServeApplication = Callable[..., Awaitable[ServedApplication]]


@pytest.fixture
def credentials_file(tmp_path: Path) -> Path:
    """The hashes of the tokens of `KEYS`."""
    path = tmp_path / "credentials.json"
    hashed = [
        {"sha256": hashlib.sha256(token_of(name).encode()).hexdigest(), "name": name, **key}
        for name, key in KEYS.items()
    ]
    path.write_text(json.dumps(hashed))
    path.chmod(0o600)
    return path


@pytest.fixture
async def serve_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ServeApplication]:
    """Start applications: ``await serve_application(store="memory:", manual_clock=False, **settings)``.

    ``store`` is a store URL, or "sqlite" for one file per test; ``store_object`` is used in its place. With
    ``semantic`` the application recalls semantically, by these parts. ``settings`` are fields of the settings tree, to
    which the environment adds nothing; unless they name a provider, nothing makes vectors. All applications and
    channels are closed with the test.
    """
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    async with AsyncExitStack() as resources:

        async def serve(
            store: str = "memory:",
            *,
            manual_clock: bool = False,
            store_object: Store | None = None,
            semantic: SemanticParts | None = None,
            **settings: Any,
        ) -> ServedApplication:
            url = f"sqlite:///{tmp_path / 'memory.db'}" if store == "sqlite" else store
            values = {
                "address": "127.0.0.1:0",
                "drain": {"grace_seconds": 2.0},
                "embedding": {"provider": "none"},
                "vectors": {"search_budget_seconds": CALL_SECONDS},
                **settings,
            }
            clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC)) if manual_clock else None
            with monkeypatch.context() as patch:
                if semantic is not None:
                    patch.setattr("durable_memory.main.build_services", semantic.build_services)
                application = build(Settings(store=parse_store_url(url), **values), clock=clock, store=store_object)
            await application.start()
            resources.push_async_callback(application.stop)
            return ServedApplication(application, clock, resources)

        yield serve


@pytest.fixture(params=["memory:", "sqlite"])
async def server_app(request: pytest.FixtureRequest, serve_application: ServeApplication) -> ServedApplication:
    """A server without credentials over each embedded store."""
    return await serve_application(request.param)


@pytest.fixture
async def guarded_app(serve_application: ServeApplication, credentials_file: Path) -> ServedApplication:
    """A server that wants a token of `KEYS`."""
    return await serve_application(credentials_file=credentials_file)
