"""How many threads a process of the command line has before it does anything."""

from __future__ import annotations

import os
import subprocess
import sys

_COUNT = "import os, durable_memory.cli, numpy; print(len(os.listdir('/proc/self/task')))"


def test_matrix_products_have_no_threads_of_their_own() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    process = subprocess.run(
        [sys.executable, "-c", _COUNT], env=environment, capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "1"
