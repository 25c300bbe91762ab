"""The command line: `durable-memory`."""

from __future__ import annotations

import os

# Read when NumPy is loaded, and never again. Searches are short and come many at a time: with more threads each waits
# for the others' turns on a busy machine, and a millisecond becomes twenty.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # noqa: TID251 - no setting of ours, but the library's own

# Read when gRPC is loaded. Its core writes lines of its own form to stderr, which is for the service's log and for the
# command's words; what they say of, a connection lost or an address taken, is said there too.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # noqa: TID251 - as above

from durable_memory.cli.application import app


def main() -> None:
    """The entry point of the installed command and of `python -m durable_memory`."""
    app(prog_name="durable-memory")
