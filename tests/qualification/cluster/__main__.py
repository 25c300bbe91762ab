"""Start a whole cluster to look at: `python -m tests.qualification.cluster`. Ctrl-C ends it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import tempfile
from pathlib import Path

from tests.qualification.cluster.cluster import Cluster
from tests.qualification.report.timeline import Timeline


async def _show() -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    with tempfile.TemporaryDirectory(prefix="durable-memory-cluster-") as folder:
        async with Cluster(Path(folder), timeline=Timeline()) as cluster:
            for line in _description(cluster):
                sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            await stopping.wait()


def _description(cluster: Cluster) -> list[str]:
    return [
        f"healthy after {cluster.start_seconds:.1f} s; logs in {cluster.folder}",
        f"clients     DURABLE_MEMORY_ADDRESS={cluster.address} DURABLE_MEMORY_TOKEN={cluster.credentials.everything}",
        f"envoy       http://127.0.0.1:{cluster.envoy.admin_port}/clusters",
        *(f"{server.name}    {server.address}, process {server.pid}" for server in cluster.servers),
        f"PostgreSQL  {cluster.postgres.direct_dsn()}",
        *(f"{node.name}     {node.url}" for node in cluster.redis.nodes),
        f"embedding   {cluster.embedding.base_url}",
    ]


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_show())
