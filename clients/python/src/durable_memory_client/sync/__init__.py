"""Durable Memory for Python programs without asyncio: the same client, blocking.

    with MemoryClient(tenant="acme", principal="user-1", scope="project-a") as memory:
        session = memory.open_session("assistant", max_results=5)
        with session.run("turn-17") as run:
            recall = run.recall("what does the user drink?", admit=True)

Values, errors, `render` and `cited` are those of `durable_memory_client`. Threads may share a client.
"""

from __future__ import annotations

from durable_memory_client.sync.calls import (
    OnUnavailable,
)
from durable_memory_client.sync.client import (
    MemoryClient,
)
from durable_memory_client.sync.namespace import (
    MemoryNamespace,
)
from durable_memory_client.sync.paging import (
    Page,
    Pages,
)
from durable_memory_client.sync.refresh import (
    Refresh,
)
from durable_memory_client.sync.run import (
    MemoryRun,
)
from durable_memory_client.sync.session import (
    MemorySession,
)
from durable_memory_client.sync.several import (
    admit_all,
    recall_all,
    record_use_all,
)
from durable_memory_client.sync.snapshot import (
    Snapshot,
)
from durable_memory_client.sync.watch import (
    Watch,
)

__all__ = [
    "MemoryClient",
    "MemoryNamespace",
    "MemoryRun",
    "MemorySession",
    "OnUnavailable",
    "Page",
    "Pages",
    "Refresh",
    "Snapshot",
    "Watch",
    "admit_all",
    "recall_all",
    "record_use_all",
]
