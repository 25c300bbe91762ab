"""What goes to stderr is the service's log or the command's words, and nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys

_TAKEN = """
import socket
import durable_memory.cli
import grpc
from concurrent.futures import ThreadPoolExecutor
with socket.socket() as taken:
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    server = grpc.server(ThreadPoolExecutor(1), options=[("grpc.so_reuseport", 0)])
    try:
        server.add_insecure_port("127.0.0.1:%d" % taken.getsockname()[1])
    except RuntimeError:
        print("taken")
"""


def test_the_core_of_grpc_writes_no_lines_of_its_own() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    process = subprocess.run(
        [sys.executable, "-c", _TAKEN], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert (process.stdout, process.stderr) == ("taken\n", "")
