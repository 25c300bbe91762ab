"""Runs `durable-memory` for tests: in this process, for speed, or in processes of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from durable_memory.cli.application import app

_ROOT = Path(__file__).resolve().parents[2]
SECONDS = 100
"""The longest that one takes on a machine that has other things to do."""

MANY_SECONDS = 600
"""The same of a test that runs one after another."""

ROOMY = {
    "DURABLE_MEMORY_SERVER_EMBEDDING_QUERY_TIMEOUT_SECONDS": "60",
    "DURABLE_MEMORY_SERVER_VECTORS_SEARCH_BUDGET_SECONDS": "60",
}
"""What a recall may wait for a packaged model there."""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class CommandLine:
    """Runs `durable-memory` with nothing of the caller's environment but what is stated here.

    What it opens or serves makes no vectors unless a provider is stated.
    """

    def __init__(self, home: Path, **variables: str) -> None:
        self._variables = {
            "XDG_DATA_HOME": str(home),
            "LOGNAME": "someone",
            "COLUMNS": "100",
            "DURABLE_MEMORY_SERVER_EMBEDDING_PROVIDER": "none",
            **variables,
        }

    def ok(self, *arguments: str, stdin: bytes = b"") -> Ended:
        """Run one that has to succeed."""
        done = self(*arguments, stdin=stdin)
        assert done.code == 0, done
        return done

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Ended:
        unset = {name: None for name in os.environ if name.startswith("DURABLE_MEMORY_")}
        runner = CliRunner(env={**unset, **self._variables})
        done = runner.invoke(app, list(arguments), input=stdin)
        assert isinstance(done.exception, SystemExit | None), done.exception
        return Ended(done.exit_code, done.stdout, done.stderr)


class Processes(CommandLine):
    """The same in processes of their own."""

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Ended:
        command = self.start(*arguments)
        out, errors = command.communicate(stdin.decode(), timeout=SECONDS)
        return Ended(command.returncode, out, errors)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return self.run([sys.executable, "-m", "durable_memory", *arguments])

    def run(self, command: Sequence[str]) -> "subprocess.Popen[str]":
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DURABLE_MEMORY_")}
        paths = os.pathsep.join([str(_ROOT / "service"), str(_ROOT / "clients" / "python" / "src")])
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            env={**environment, "PYTHONPATH": paths, **self._variables},
        )
