"""The operator's commands: serve, migrate, check-config.

Exit codes: 0 for what was asked, 1 when it failed, 2 for a wrong command line or settings. The server's modules are
imported by the commands that need them, so that the others start at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from durable_memory.config import Settings
    from durable_memory.main import Application

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

Store = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where memories are kept: sqlite:///file.db, postgresql://user@host/database, or memory: "
        "[default: a SQLite file in the user's data folder]",
        show_default=False,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Where to listen [default: 127.0.0.1:7447]", show_default=False),
]
Credentials = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="JSON file with the hashes of the accepted bearer tokens", show_default=False),
]
Insecure = Annotated[
    bool | None,
    typer.Option("--insecure", help="Allow an address that other machines reach without any credentials"),
]
TlsCertificate = Annotated[Path | None, typer.Option(metavar="FILE", help="PEM certificate chain", show_default=False)]
TlsKey = Annotated[Path | None, typer.Option(metavar="FILE", help="PEM private key", show_default=False)]
ReusePort = Annotated[
    bool | None,
    typer.Option("--reuse-port", help="Share the port with other servers of this machine over the same PostgreSQL"),
]


def serve(
    address: Address = None,
    store: Store = None,
    credentials: Credentials = None,
    insecure: Insecure = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    reuse_port: ReusePort = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C, then drain.

    Every other setting is a variable DURABLE_MEMORY_SERVER_...; `check-config` lists them. Prints one line when it is
    ready; its log goes to stderr, one JSON object a line.
    """
    from durable_memory.config import SettingsError
    from durable_memory.main import StartError
    from durable_memory.telemetry import configure_logging

    settings = _settings(address, store, credentials, insecure, tls_certificate, tls_key, reuse_port)
    configure_logging(settings.telemetry.log_level)
    _warn(settings)
    try:
        asyncio.run(_serve(settings))
    except SettingsError as error:  # the default folder cannot be made, which nobody knows before trying
        _fail(error.faults, code=2)
    except StartError as error:
        _fail([str(error)], code=1)


def migrate(store: Store = None) -> None:
    """Bring the store to the schema of this version. A server does so by itself for a SQLite file only."""
    from durable_memory.config import SettingsError
    from durable_memory.main import MigrationError, migrate_store
    from durable_memory.settings_reading import load_settings

    try:
        settings = load_settings(store=store)  # what only a server reads, such as its keys, may be missing here
        applied = asyncio.run(migrate_store(settings))
    except SettingsError as error:
        _fail(error.faults, code=2)
    except MigrationError as error:
        _fail([str(error)], code=1)
    for name in applied:
        typer.echo(f"applied {name}")
    typer.echo(f"{settings.store} is up to date")


def check_config(
    address: Address = None,
    store: Store = None,
    credentials: Credentials = None,
    insecure: Insecure = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    reuse_port: ReusePort = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object")] = False,
) -> None:
    """Show every setting with the value it has now, or everything that is wrong with them.

    Takes the flags of `serve`. Opens neither the store nor the address.
    """
    settings = _settings(address, store, credentials, insecure, tls_certificate, tls_key, reuse_port)
    if as_json:
        typer.echo(json.dumps(dict(settings.variables()), indent=2))
        return
    for name, value in settings.variables():
        typer.echo(f"{name}={value}")


async def _serve(settings: Settings) -> None:
    from durable_memory.main import build
    from durable_memory.telemetry import log_unhandled_by_place

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    log_unhandled_by_place(loop)

    def stop() -> None:
        stopping.set()
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)  # a second one does not wait for the drain

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop)
    application = build(settings)
    await application.start()
    _relax_collector()
    try:
        announcement = asyncio.create_task(_announce(application))
        await stopping.wait()
        announcement.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await announcement
    finally:
        await application.stop()


def _relax_collector() -> None:
    """Look for cycles less often. Hardly anything here makes one, and what views and caches hold was walked again and
    again in search of them: a tenth of the time of a recall, and the longest pauses."""
    gc.collect()
    gc.freeze()  # what was imported stays
    gc.set_threshold(20_000, 20, 20)


async def _announce(application: Application) -> None:
    refusal = application.refusal
    if refusal is not None:
        typer.echo(f"not ready on {application.address}: {refusal.message}; it is tried again", err=True)
    await application.wait_ready()
    typer.echo(application.description)


def _settings(
    address: str | None = None,
    store: str | None = None,
    credentials: Path | None = None,
    insecure: bool | None = None,
    tls_certificate: Path | None = None,
    tls_key: Path | None = None,
    reuse_port: bool | None = None,
) -> Settings:
    """The settings, or the end of the command with all that is wrong with them."""
    from durable_memory.config import SettingsError
    from durable_memory.embedding import require_provider
    from durable_memory.main import read_access
    from durable_memory.settings_reading import load_settings

    tls = {"certificate_file": tls_certificate, "key_file": tls_key}
    given = {name: path for name, path in tls.items() if path is not None}
    try:
        return load_settings(
            read_access,
            require_provider,
            address=address,
            store=store,
            credentials_file=credentials,
            insecure=insecure or None,
            reuse_port=reuse_port or None,
            tls=given or None,
        )
    except SettingsError as error:
        _fail(error.faults, code=2)


def _warn(settings: Settings) -> None:
    if settings.is_loopback:
        return
    if settings.credentials_file is None:
        warning = "anybody who reaches this address can read and change every memory (--insecure, no credentials)"
    elif settings.tls.key_file is None:
        warning = "bearer tokens travel unencrypted unless a proxy or mesh in front of this server speaks TLS"
    else:
        return
    typer.secho(f"WARNING: {settings.address}: {warning}", fg="red", bold=True, err=True)


def _fail(faults: Iterable[str], *, code: int) -> NoReturn:
    for fault in faults:
        typer.secho(fault, fg="red", err=True)
    raise typer.Exit(code)
