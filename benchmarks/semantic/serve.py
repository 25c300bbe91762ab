"""A server for `benchmarks.hybrid_latency`: fills, indexes and loads a namespace for each size, and serves it.

    python -m benchmarks.semantic.serve STORE REDIS DIMENSION ADDRESS SIZE...

Writes READY to its output once everything is in memory, and goes on until it is ended.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from benchmarks.semantic.process import namespace_of, process, texts_of
from durable_memory.telemetry import configure_logging

READY: Final = "READY"


async def serve(store: str, redis_url: str, dimension: str, address: str, *sizes: str) -> None:
    async with process(store, redis_url, int(dimension), address=address) as running:
        for size in map(int, sizes):
            texts = texts_of(size)
            await running.fill(namespace_of(size), texts)
            await running.refresh(namespace_of(size))
            await running.recall(namespace_of(size), texts[0])
        print(READY, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    configure_logging("error")
    asyncio.run(serve(*sys.argv[1:]))
