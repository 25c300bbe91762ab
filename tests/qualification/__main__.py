"""The command: `python -m tests.qualification`.

Exit codes: 0 when every row that was asked for passed, 1 when one did not, 2 for a wrong command line.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shlex
import signal
import sys
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from durable_memory_client import MemoryServiceError, Tls
from tests.qualification.checks.hygiene import Forbidden, Scanner
from tests.qualification.deployment import Deployment, Identity
from tests.qualification.report.timeline import Timeline
from tests.qualification.run import LONG_MINUTES, STANDARD_MINUTES, Run
from tests.qualification.scenarios.table import EXPLORING, ROWS, Row, rows
from tests.qualification.visit import USE, Visit

_OUT: Final = Path("build") / "qualification"
_MOST_SEEDS: Final = 1_000_000
_SETTINGS: Final = "DURABLE_MEMORY_"


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    parser = _parser()
    given = parser.parse_args(argv)
    _forget_settings()
    unnumbered = EXPLORING if given.endpoint is None else USE
    try:
        chosen = chosen_rows(given.rows, unnumbered)
    except ValueError as error:
        parser.error(str(error))
    if given.list:
        say_rows(unnumbered)
        return 0
    if given.endpoint == "":
        parser.error("--endpoint is empty")
    if given.other_token_file is not None and not given.tenant:
        parser.error("--other-token-file takes --tenant: what the other must not reach has to be named")
    seed = random.SystemRandom().randrange(_MOST_SEEDS) if given.seed is None else given.seed
    out = given.out or _OUT / f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}-seed-{seed}"
    command = _command(given, seed)
    run: Run | Visit
    if given.endpoint is not None:
        try:
            deployment = _deployment(given)
        except (OSError, ValueError) as error:
            parser.error(str(error))
        run = Visit(deployment, seed, given.minutes, chosen, out, command=command, say=say)
    else:
        run = Run(seed, given.minutes, chosen, out, given.service_root, command=command, say=say)
    say(f"seed {seed}, {given.minutes:g} minutes; the report will be in {out}")
    return asyncio.run(_ended_in_order(run))


def _forget_settings() -> None:
    """A client takes from the environment what it is not told, and nothing would look for such a token in the report:
    what is tried is stated."""
    for name in [name for name in os.environ if name.startswith(_SETTINGS)]:
        del os.environ[name]


def _command(given: argparse.Namespace, seed: int) -> str:
    """What does the same again, with the report in another folder."""
    stated = {**vars(given), "seed": str(seed), "minutes": f"{given.minutes:g}", "out": None}
    words = ["python", "-m", "tests.qualification"]
    for name, value in stated.items():
        if value not in (None, False, ""):
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return shlex.join(words)


async def _ended_in_order(run: Run | Visit) -> int:
    """Run; SIGTERM or Ctrl-C ends it as it ends itself: no process is left, and there is a report."""
    task = asyncio.create_task(run.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        report = await task
    except asyncio.CancelledError:
        return 1
    except MemoryServiceError as error:
        say(f"the deployment refuses: {error.message} [{error.reason or error.code.name}]")
        return 1
    return 0 if report.passed else 1


def _deployment(given: argparse.Namespace) -> Deployment:
    """Raises: OSError, ValueError for files that do not hold what they should."""
    tls: bool | Tls | None = given.tls or None
    if given.tls_ca is not None:
        tls = Tls(root_certificates=given.tls_ca.read_bytes())
    other = None
    if given.other_token_file is not None:
        other = Identity(token=_token(given.other_token_file), tenant=given.other_tenant, principal=given.principal)
    return Deployment(
        given.endpoint,
        Identity(token=_token(given.token_file), tenant=given.tenant, principal=given.principal),
        timeline=Timeline(),
        tls=tls,
        other=other,
    )


def _token(path: Path | None) -> str | None:
    if path is None:
        return None
    token = path.read_text("utf-8").strip()
    if not token:
        raise ValueError(f"{path} holds no token")
    try:
        Scanner(Forbidden(secrets=[token]))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return token


def chosen_rows(said: str, unnumbered: Row = EXPLORING) -> Collection[int]:
    """`1,4,exploratory` or `2-5` as numbers, 0 for the name of the row that has none; nothing if nothing is said.

    Raises: ValueError for what is no row.
    """
    chosen: set[int] = set()
    named = False
    for part in (one.strip() for one in said.split(",")) if said else ():
        first, dash, last = part.partition("-")
        if part == unnumbered.name:
            named = True
        elif first.isdecimal() and (last.isdecimal() and int(first) <= int(last) if dash else True):
            chosen.update(range(int(first), int(last or first) + 1))
        else:
            raise ValueError(f"{part!r} is no row: state numbers, as 1,4 or 2-5, or {unnumbered.name}")
    rows(chosen)
    return {*chosen, unnumbered.number} if named else chosen


def say(line: str) -> None:
    """To stdout at once: who waits ten minutes looks at it."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def say_rows(unnumbered: Row) -> None:
    for row in (*ROWS, unnumbered):
        say(f"{row.number or '':>2} {row.name}: {row.promise}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.qualification",
        description="Starts real processes, breaks them, and reports what held. Exit code 0: every row passed.",
    )
    parser.add_argument("--seed", type=int, help="the same seed breaks the same things [default: any]")
    parser.add_argument(
        "--minutes",
        type=_minutes,
        default=STANDARD_MINUTES,
        help=f"how long, about; over {LONG_MINUTES:g}, the time that the rows leave is for faults by chance "
        f"[default: {STANDARD_MINUTES:g}]",
    )
    parser.add_argument(
        "--rows", default="", help="some rows only, as 1,4,exploratory or 2-5; of a deployment, 2,use [default: all]"
    )
    parser.add_argument("--out", type=Path, help="the folder of the report [default: build/qualification/...]")
    parser.add_argument("--list", action="store_true", help="list the rows and end")
    deployed = parser.add_argument_group("against a deployment: nothing is broken, in namespaces of its own")
    deployed.add_argument("--endpoint", metavar="HOST:PORT", help="where it is; https://HOST:PORT with TLS")
    deployed.add_argument("--token-file", type=Path, metavar="FILE", help="file with the bearer token")
    deployed.add_argument("--tenant", metavar="NAME", help="[default: the token's]; row 10 takes it")
    deployed.add_argument("--principal", metavar="NAME", help="[default: the token's]")
    deployed.add_argument("--tls", action="store_true", help="TLS with the system's certificates")
    deployed.add_argument("--tls-ca", type=Path, metavar="FILE", help="TLS with these root certificates, as PEM")
    deployed.add_argument("--other-token-file", type=Path, metavar="FILE", help="a token of another tenant, for row 10")
    deployed.add_argument("--other-tenant", metavar="NAME", help="[default: that token's]")
    parser.add_argument("--service-root", type=Path, help=argparse.SUPPRESS)
    return parser


def _minutes(said: str) -> float:
    minutes = float(said)
    if not 0 < minutes <= 7 * 24 * 60:
        raise argparse.ArgumentTypeError(f"{said} is not a time between none and a week")
    return minutes


if __name__ == "__main__":
    sys.exit(main())
