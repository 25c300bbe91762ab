"""The composition root: from settings to a running server, and back to nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog

from durable_memory import __version__
from durable_memory.adapters.memory import MemoryStore
from durable_memory.adapters.opentelemetry import ProcessGauges
from durable_memory.adapters.postgres import PostgresSettings, PostgresStore
from durable_memory.adapters.postgres.hosts import parse_target
from durable_memory.adapters.postgres.migrations import MigrationRefusedError
from durable_memory.adapters.postgres.migrations import migrate as migrate_postgres
from durable_memory.adapters.postgres.tls import tls_file_faults
from durable_memory.adapters.runtime import SystemClock, SystemIds
from durable_memory.adapters.sqlite import SqliteStore
from durable_memory.adapters.static_keys import InvalidKeysError, StaticKeys
from durable_memory.app.semantic.health import SemanticHealth
from durable_memory.app.services import AppServices, build_services
from durable_memory.certificate_files import is_pair
from durable_memory.config import PREFIX, Settings, SettingsError, default_store
from durable_memory.domain.errors import DomainError, Reason, not_serving
from durable_memory.domain.session import NO_PROVIDER
from durable_memory.embedding import chosen_provider, why_lexical
from durable_memory.observation import observe
from durable_memory.page_token_keys import PageTokenKeys
from durable_memory.ports.embedder import Embedder
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.ports.store import Store
from durable_memory.rpc.authentication import Authenticator, BearerAuthenticator, DevelopmentAuthenticator
from durable_memory.rpc.options import CallOptions, ConnectionOptions, ServerOptions, TlsFiles
from durable_memory.rpc.paging import PageTokens
from durable_memory.rpc.server import RpcServer
from durable_memory.rpc.servicers import servicers
from durable_memory.semantic_parts import build_semantic_parts
from durable_memory.store_url import MemoryUrl, PostgresUrl, SqliteUrl
from durable_memory.tasks import end
from durable_memory.telemetry import Telemetry, build_telemetry

_FIRST_RETRY_SECONDS: Final = 0.2
_LAST_RETRY_SECONDS: Final = 1.0
_RECOVERY_PROBE_SECONDS: Final = 0.5
"""While the store is away it is asked this often at least: what refuses at once costs nothing, and callers wait."""

_log = structlog.stdlib.get_logger(__name__)


class MigrationError(Exception):
    """The store cannot be migrated; the text says why."""


class StartError(Exception):
    """The server cannot start, and trying again would not help; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may call, and how the wire is protected: what the settings name by file, read and checked."""

    authenticator: Authenticator
    tls: TlsFiles | None
    description: str
    """One phrase for people."""


def read_access(settings: Settings) -> Access:
    """Raises: SettingsError with every fault of the credentials and TLS files, those that URLs name too."""
    faults: list[str] = []
    keys: StaticKeys | None = None
    if settings.credentials_file is not None:
        try:
            keys = StaticKeys.load(settings.credentials_file)
        except InvalidKeysError as error:
            faults += [f"{PREFIX}CREDENTIALS_FILE: {fault}" for fault in error.faults]
    contents: list[bytes] = []
    for name in ("certificate_file", "key_file"):
        path = getattr(settings.tls, name)
        if path is not None:
            try:
                contents.append(path.read_bytes())
            except OSError as error:
                faults.append(f"{PREFIX}TLS_{name.upper()}: {path} cannot be read: {error.strerror}")
    certificate, key = settings.tls.certificate_file, settings.tls.key_file
    if certificate is not None and len(contents) > 1 and not is_pair(certificate, key):
        faults.append(
            f"{PREFIX}TLS_CERTIFICATE_FILE: {certificate} and {key} are not a certificate and its private key as PEM, "
            "without a password"
        )
    faults += _store_file_faults(settings)
    if settings.vectors.redis_url is not None and chosen_provider(settings) != "none":  # else nobody connects to it
        from durable_memory.adapters.redis import parse_redis_url  # who has no Redis has no need of the driver

        url = parse_redis_url(settings.vectors.redis_url.get_secret_value())
        faults += [f"{PREFIX}VECTORS_REDIS_URL: {fault}" for fault in url.tls_file_faults()]
    if faults:
        raise SettingsError(faults)
    tls = TlsFiles(certificate=contents[0], key=contents[1]) if len(contents) > 1 else None
    if keys is not None:
        described = f"credentials from {settings.credentials_file} ({len(keys)})"
        return Access(authenticator=BearerAuthenticator(keys), tls=tls, description=described)
    reach = "this machine" if settings.is_loopback else "EVERY MACHINE THAT REACHES THE ADDRESS"
    described = f"no credentials: anybody on {reach} may do everything"
    return Access(authenticator=DevelopmentAuthenticator(), tls=tls, description=described)


def _store_file_faults(settings: Settings) -> list[str]:
    """What is wrong with the files that the store's URL names."""
    if not isinstance(settings.store, PostgresUrl):
        return []
    target = parse_target(settings.store.dsn)
    faults = tls_file_faults(target.options, os.environ, [host.name for host in target.hosts])
    return [f"{PREFIX}STORE: {fault}" for fault in faults]


class Application:
    """One server process: the store, the use cases over it, and the gRPC server in front.

    `start`, then `stop`, on one event loop. While the store of a shared deployment cannot be opened the server is
    alive and answers NOT_SERVING with the reason, and tries again; an embedded store that cannot be opened ends it.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store,
        services: AppServices,
        server: RpcServer,
        page_tokens: PageTokens,
        telemetry: Telemetry,
        access: Access,
        gauges: ProcessGauges | None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._services = services
        self._server = server
        self._page_tokens = page_tokens
        self._page_token_keys = PageTokenKeys(store, page_tokens)
        self._telemetry = telemetry
        self._access = access
        self._gauges = gauges
        self._ready = asyncio.Event()
        self._stopped = False
        self._supervisors: list[asyncio.Task[None]] = []
        self._probing: asyncio.Task[bool] | None = None

    @property
    def address(self) -> str:
        """Where the server listens; the real port if the settings said 0."""
        return self._server.address

    @property
    def refusal(self) -> DomainError | None:
        """Why calls are refused now; None while they are served."""
        return self._server.refusal

    @property
    def page_tokens(self) -> PageTokens:
        return self._page_tokens

    @property
    def services(self) -> AppServices:
        return self._services

    @property
    def description(self) -> str:
        """What it is, where, over what, for whom: one line for people."""
        wire = "TLS, " if self._access.tls is not None else ""
        return (
            f"Durable Memory {__version__} is ready on {self.address}, store {self._settings.store}, "
            f"recall by {self._recall()}, {wire}{self._access.description}"
        )

    def _recall(self) -> str:
        generation, health = self._services.defaults.current.value, self._semantic_health
        if health is None:
            return "words"
        if generation is None or not health.embedder_available:
            return "words until the embedding provider answers"
        meaning = f"words and meaning ({generation.model})"
        return meaning if health.index_available else f"words until the vector index answers, then {meaning}"

    async def start(self) -> None:
        """Listen, and try to open the store. Returns when it is ready, or not ready but trying.

        Raises: StartError.
        """
        try:
            await self._server.start()
        except OSError as error:
            await self.stop()
            raise StartError(str(error)) from error
        shared = isinstance(self._settings.store, PostgresUrl)
        try:
            await self._open()
        except (DomainError, OSError, ValueError) as error:
            if not shared or not isinstance(error, DomainError):
                await self.stop()
                # A driver's own words about its URL may quote it.
                cause = type(error).__name__ if shared else str(error)
                raise StartError(f"the store {self._settings.store} cannot be opened: {cause}") from error
            self._not_ready(error)
        except BaseException:
            await self.stop()
            raise
        self._supervisors.append(asyncio.create_task(self._supervise(), name="durable-memory-supervisor"))

    async def wait_ready(self) -> None:
        """Return when calls are served for the first time."""
        await self._ready.wait()

    async def stop(self) -> None:
        """Drain, then let go of everything. Idempotent."""
        if self._stopped:
            return
        self._stopped = True
        _log.info("draining")
        await end(self._supervisors)
        if self._probing is not None:
            await end([self._probing])
        drain = self._settings.drain
        try:
            await self._server.drain(delay_seconds=drain.delay_seconds, grace_seconds=drain.grace_seconds)
        finally:
            await self._let_go()
        _log.info("stopped")

    async def _let_go(self) -> None:
        steps: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = (
            self._services.close,
            self._store.close,
            lambda: asyncio.to_thread(self._telemetry.shutdown),
        )
        async with contextlib.AsyncExitStack() as stack:
            for step in reversed(steps):
                stack.push_async_callback(step)

    async def _open(self) -> None:
        try:
            await self._store.open()
            await self._page_token_keys.load()
            await self._services.start()
        except BaseException:
            await self._store.close()
            raise
        if isinstance(self._store, SqliteStore):
            self._store.publish_address(self.address if self._access.tls is None else f"https://{self.address}")
        health = self._semantic_health
        if health is not None:
            # What is said when it is ready, and to whoever asks at once, is what was found and not what is hoped.
            self._server.report_semantic(serving=await self._semantic_serving(health))
            watch = self._watch_semantic_recall(health)
            self._supervisors.append(asyncio.create_task(watch, name="durable-memory-semantic-health"))
        keep = self._page_token_keys.keep()
        self._supervisors.append(asyncio.create_task(keep, name="durable-memory-page-token-keys"))
        self._server.ready()
        self._ready.set()
        _log.info("ready", address=self.address, store=str(self._settings.store), version=__version__)

    def _not_ready(self, error: DomainError) -> None:
        reason = error
        if error.reason is not Reason.NOT_SERVING:
            reason = not_serving(
                "starting", f"the store cannot be reached yet: {error.message}", cause=error.reason.value
            )
        previous = self._server.refusal
        self._server.not_ready(reason)
        if previous is None or previous.message != reason.message:  # once per cause, not once per attempt
            _log.warning("not_ready", reason=error.reason.value, problem=error.message, **error.metadata)

    async def _supervise(self) -> None:
        """Open the store if that has not worked yet, then keep health true."""
        interval = self._settings.health.probe_interval_seconds
        pause = min(_FIRST_RETRY_SECONDS, interval)
        while not self._ready.is_set():
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LAST_RETRY_SECONDS, interval)
            try:
                await self._open()
            except DomainError as error:
                self._not_ready(error)
            except Exception as error:  # noqa: BLE001 - the supervisor must outlive whatever a driver raises
                self._not_ready(not_serving("starting", f"the store cannot be opened: {type(error).__name__}"))
        healthy = True
        while True:
            await asyncio.sleep(interval if healthy else min(interval, _RECOVERY_PROBE_SECONDS))
            was, healthy = healthy, await self._probe()
            if self._gauges is not None:
                self._gauges.show(self._services.state())
            if healthy != was:
                self._server.report(healthy=healthy)
                _log.log(_LEVELS[healthy], "health", healthy=healthy)

    async def _watch_semantic_recall(self, health: SemanticHealth) -> None:
        """Keep the health of SemanticService true. All else is served whatever becomes of it."""
        settings = self._settings.health
        serving = health.serving
        while True:
            was, serving = serving, await self._semantic_serving(health)
            if serving != was:
                _log.log(_LEVELS[serving], "semantic_health", serving=serving)
            self._server.report_semantic(serving=serving)
            await health.wait(settings.probe_interval_seconds)

    async def _semantic_serving(self, health: SemanticHealth) -> bool:
        """Look, and say whether it is well."""
        try:
            await health.check(timeout_seconds=self._settings.health.probe_timeout_seconds)
        except Exception as error:  # noqa: BLE001 - as above; what cannot be looked at is not well
            _log.warning("semantic_probe_failed", exception=type(error).__qualname__)
            return False
        return health.serving

    @property
    def _semantic_health(self) -> SemanticHealth | None:
        return None if self._services.runtime is None else self._services.runtime.health

    async def _probe(self) -> bool:
        """Whether the store answers in time. A probe that it leaves waiting is given up; nobody waits for its end."""
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._store_answers(), name="durable-memory-probe")
        done, _ = await asyncio.wait({self._probing}, timeout=self._settings.health.probe_timeout_seconds)
        if not done:
            self._probing.cancel()
            return False
        return not self._probing.cancelled() and self._probing.result()

    async def _store_answers(self) -> bool:
        try:
            await self._store.check()
        except DomainError:
            return False
        except Exception as error:  # noqa: BLE001 - as above; whatever it is, the store did not answer
            _log.warning("probe_failed", exception=type(error).__qualname__)
            return False
        return True


_LEVELS: Final = {True: 20, False: 30}


def build(
    settings: Settings,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    telemetry: Telemetry | None = None,
    store: Store | None = None,
    embedder: Embedder | None = None,
) -> Application:
    """Wire everything; nothing runs yet. Call it on the event loop that will serve.

    What is given is used instead of what the settings say.

    Raises: SettingsError for files that cannot be read or do not hold what they should.
    """
    access = read_access(settings)
    clock = clock or SystemClock()
    ids = ids or SystemIds()
    telemetry = telemetry or build_telemetry(settings.telemetry)
    store = store or build_store(settings, ids)
    views = settings.views
    observation = observe(build_semantic_parts(settings, store, clock, ids, embedder), telemetry, clock)
    services = build_services(
        store,
        clock,
        ids,
        view_budget_bytes=views.budget_bytes,
        view_max_bytes=views.max_view_bytes,
        revision_cache_bytes=views.revision_cache_bytes,
        semantic_parts=observation.semantic_parts,
        no_vectors=why_lexical(settings) or NO_PROVIDER,
        observer=observation.observer,
    )
    page_tokens = PageTokens(clock)
    options = _server_options(settings, access)
    server = RpcServer(
        options,
        access.authenticator,
        servicers(services, page_tokens, options.calls, __version__),
        clock=clock,
        ids=ids,
        tracer=telemetry.tracer,
        meter=telemetry.meter,
    )
    return Application(
        settings,
        store=store,
        services=services,
        server=server,
        page_tokens=page_tokens,
        telemetry=telemetry,
        access=access,
        gauges=observation.gauges,
    )


def build_store(settings: Settings, ids: Ids) -> Store:
    """The store that the settings name, not open yet.

    Raises: SettingsError if the default store's folder cannot be made.
    """
    match settings.store:
        case MemoryUrl():
            return MemoryStore(ids)
        case SqliteUrl(path):
            if "store" not in settings.model_fields_set and settings.store == default_store():
                try:
                    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                except OSError as error:
                    raise SettingsError([f"{PREFIX}STORE: {path.parent} cannot be made: {error.strerror}"]) from error
            return SqliteStore(path, ids)
        case PostgresUrl(dsn):
            bounds = settings.postgres
            return PostgresStore(
                dsn,
                ids=ids,
                settings=PostgresSettings(
                    write_connections=bounds.write_connections, read_connections=bounds.read_connections
                ),
            )


async def migrate_store(settings: Settings) -> Sequence[str]:
    """Bring the store to the schema of this version and return the names of what was applied, in order.

    Raises: MigrationError; SettingsError as `build_store`, and for files that the store's URL names.
    """
    if faults := _store_file_faults(settings):
        raise SettingsError(faults)
    try:
        if isinstance(settings.store, PostgresUrl):
            return await migrate_postgres(settings.store.dsn)
        store = build_store(settings, SystemIds())
        try:
            await store.open()  # an embedded store migrates itself
        finally:
            await store.close()
    except (DomainError, MigrationRefusedError, OSError, ValueError) as error:
        # A driver's own words about its URL may quote it.
        cause = type(error).__name__ if isinstance(error, ValueError) else error
        raise MigrationError(f"{settings.store} cannot be migrated: {cause}") from error
    return ()


def _server_options(settings: Settings, access: Access) -> ServerOptions:
    calls, connections = settings.calls, settings.connections
    return ServerOptions(
        address=settings.address,
        calls=CallOptions(
            default_deadline_seconds=calls.default_deadline_seconds,
            maximum_deadline_seconds=calls.maximum_deadline_seconds,
            maximum_upload_seconds=calls.maximum_upload_seconds,
            max_calls=calls.max_concurrent,
            max_calls_per_caller=calls.max_concurrent_per_caller,
            max_streams=calls.max_streams,
            max_streams_per_caller=calls.max_streams_per_caller,
            max_request_bytes=calls.max_request_bytes,
            max_response_bytes=calls.max_response_bytes,
        ),
        connections=ConnectionOptions(
            max_age_seconds=connections.max_age_seconds,
            max_age_grace_seconds=connections.max_age_grace_seconds,
            keepalive_interval_seconds=connections.keepalive_interval_seconds,
            keepalive_timeout_seconds=connections.keepalive_timeout_seconds,
            reuse_port=settings.reuse_port,
        ),
        tls=access.tls,
        reflection=settings.reflection,
        log_exception_text=settings.telemetry.log_exception_text,
    )
