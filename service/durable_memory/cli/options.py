"""The options that every command takes which talks to a service, and where their values come from."""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from durable_memory.cli.grouped import OptionGroup

LOCAL_TENANT: Final = "local"
LOCAL_NAME: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions(OptionGroup):
    """Which service, which namespace, and how to print; None for what neither option nor environment gives."""

    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            envvar="DURABLE_MEMORY_ADDRESS",
            show_envvar=False,
            show_default=False,
            help="The service to talk to, https://HOST:PORT with TLS [env: DURABLE_MEMORY_ADDRESS; default: the server "
            "that has the data file open, else the command opens the file itself]",
        ),
    ] = None
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            show_default=False,
            help="The data to use when there is no address, as `serve --store` takes it [default: that of `serve`]",
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="DURABLE_MEMORY_TOKEN_FILE",
            show_envvar=False,
            show_default=False,
            help="File with the bearer token [env: DURABLE_MEMORY_TOKEN_FILE; the token itself: DURABLE_MEMORY_TOKEN]",
        ),
    ] = None
    tenant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            envvar="DURABLE_MEMORY_TENANT",
            show_envvar=False,
            show_default=False,
            help="Tenant [env: DURABLE_MEMORY_TENANT; default: local]",
        ),
    ] = None
    principal: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            envvar="DURABLE_MEMORY_PRINCIPAL",
            show_envvar=False,
            show_default=False,
            help="Whose memory [env: DURABLE_MEMORY_PRINCIPAL; default: your user name, else default]",
        ),
    ] = None
    scope: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            envvar="DURABLE_MEMORY_SCOPE",
            show_envvar=False,
            show_default=False,
            help="Which part of it [env: DURABLE_MEMORY_SCOPE; default: default]. With a token, what is not stated of "
            "tenant, principal and scope comes from the credential",
        ),
    ] = None
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON for programs, with times in UTC and full citations")
    ] = False
    utc: Annotated[bool, typer.Option("--utc", help="Show times in UTC instead of the local zone")] = False

    def token(self) -> str | None:
        """The token in the file, if one is named.

        Raises: ValueError for a file that cannot be read or holds nothing.
        """
        if self.token_file is None:
            return None
        try:
            token = self.token_file.read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ValueError(f"--token-file: {self.token_file} cannot be read: {reason}") from None
        if not token:
            raise ValueError(f"--token-file: {self.token_file} is empty")
        return token


def local_principal() -> str:
    """The user's name on this machine, as far as it has one."""
    try:
        return getpass.getuser() or LOCAL_NAME
    except (KeyError, OSError):
        return LOCAL_NAME
