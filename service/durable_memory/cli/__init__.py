"""The command line: `durable-memory`."""

from __future__ import annotations

from durable_memory.cli.application import app


def main() -> None:
    """The entry point of the installed command and of `python -m durable_memory`."""
    app(prog_name="durable-memory")
