"""Where the service is that a command talks to: at an address, behind the lock of a data file, or in this process."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from durable_memory.cli.options import ServiceOptions

if TYPE_CHECKING:
    from durable_memory.config import Settings

_LOCK_WAIT_SECONDS: Final = 10.0
_LOCK_POLL_SECONDS: Final = 0.05


class UnusablePlaceError(Exception):
    """The settings name no data that a command can use; all faults, one line each."""

    def __init__(self, *faults: str) -> None:
        super().__init__("\n".join(faults))
        self.faults: Final = faults


class NotOpenedError(Exception):
    """The data cannot be opened now; the text says why, and `advice` what to do about it."""

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(problem)
        self.advice: Final = advice


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """`address` as the client takes it; `stated` if somebody said so. `opened`: the data that this process serves."""

    address: str
    stated: bool = False
    opened: str | None = None


@asynccontextmanager
async def place(options: ServiceOptions, *, by_meaning: bool = False) -> AsyncIterator[Place]:
    """The service to talk to, for as long as the context lasts.

    Where this process opens the data itself, it loads what makes vectors only if the command works `by_meaning`.

    Raises: UnusablePlaceError, NotOpenedError.
    """
    if options.address is not None:
        yield Place(address=options.address, stated=True)
        return
    # The server's modules are for those who need them.
    from durable_memory.adapters.sqlite import live_server_address
    from durable_memory.config import EmbeddingSettings
    from durable_memory.store_url import MemoryUrl, SqliteUrl

    settings = _settings(options)
    if not by_meaning:
        settings = settings.model_copy(update={"embedding": EmbeddingSettings(provider="none")})
    if isinstance(settings.store, MemoryUrl):
        raise UnusablePlaceError("a command keeps nothing in memory: give a file or a database, or an address")
    deadline = asyncio.get_running_loop().time() + _LOCK_WAIT_SECONDS
    while True:
        path = settings.store.path if isinstance(settings.store, SqliteUrl) else None
        if path is not None and (address := live_server_address(path)) is not None:
            if address.startswith("https://"):  # its certificate is not for whatever name it was found by
                raise NotOpenedError(
                    f"the server that has {path} open speaks TLS at {address}",
                    "State its address as its certificate has it: --address https://HOST:PORT.",
                )
            yield Place(address=_reachable(address))
            return
        try:
            async with _opened(settings) as here:
                yield here
                return
        except _LockedError as error:
            # Somebody opened the file a moment ago, and has not said yet where it is served.
            if asyncio.get_running_loop().time() > deadline:
                raise NotOpenedError(str(error)) from error
            await asyncio.sleep(_LOCK_POLL_SECONDS)


class _LockedError(Exception):
    """Another process has the file open."""


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[Place]:
    """A server in this process, on its event loop, that only this user can reach."""
    from durable_memory.config import SettingsError
    from durable_memory.domain.errors import DomainError
    from durable_memory.main import StartError, build
    from durable_memory.telemetry import configure_logging

    configure_logging("error")
    # A socket file in a folder of one's own: a loopback port would be open to every user of the machine.
    with tempfile.TemporaryDirectory(prefix="durable-memory-") as folder:
        try:
            application = build(settings.model_copy(update={"address": f"unix:{folder}/socket"}))
            await application.start()
        except SettingsError as error:
            raise UnusablePlaceError(*error.faults) from error
        except StartError as error:
            cause = error.__cause__
            if isinstance(cause, DomainError) and cause.metadata.get("state") == "locked":
                raise _LockedError(str(error)) from error
            raise NotOpenedError(str(error)) from error
        try:
            refusal = application.refusal
            if refusal is not None:
                behind = refusal.metadata.get("state") == "schema"
                raise NotOpenedError(
                    f"the store {settings.store} cannot be used: {refusal.message}",
                    "Bring it to this version's schema with `durable-memory migrate`." if behind else "",
                )
            yield Place(address=application.address, opened=str(settings.store))
        finally:
            await application.stop()


def _reachable(address: str) -> str:
    """Where to find a server of this machine that listens on every address of it."""
    host, _, port = address.rpartition(":")
    return {"0.0.0.0": f"127.0.0.1:{port}", "[::]": f"[::1]:{port}"}.get(host, address)


def _settings(options: ServiceOptions) -> Settings:
    from durable_memory.config import SettingsError, TelemetrySettings, TlsSettings
    from durable_memory.settings_reading import load_settings

    try:
        settings = load_settings(store=options.store, address="unix:unused")
    except SettingsError as error:
        raise UnusablePlaceError(*error.faults) from error
    # What protects and watches a server that others call is not for a server of one command.
    return settings.model_copy(
        update={"credentials_file": None, "tls": TlsSettings(), "telemetry": TelemetrySettings(), "reflection": False}
    )
