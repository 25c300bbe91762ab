"""Everything that the store of the index holds, read once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import redis.asyncio

_PATTERN: Final = "dm:*"
_SEGMENTS: Final = "segments"


@dataclass(frozen=True, slots=True)
class StoredKey:
    """One key of the index. `ttl_ms` is -1 where it has no end. `data` is a segment's bytes or a manifest's list."""

    name: str
    ttl_ms: int
    data: bytes = b""


async def stored_keys(client: redis.asyncio.Redis) -> list[StoredKey]:
    """All keys of all indexes. Nobody publishes meanwhile; what expires meanwhile is left out."""
    names = sorted([key async for key in client.scan_iter(_PATTERN, count=1000)])
    found = []
    for name in names:
        pipeline = client.pipeline(transaction=True)
        pipeline.pttl(name)
        if b":seg:" in name:
            pipeline.get(name)
        elif name.endswith(b":manifest"):
            pipeline.hget(name, _SEGMENTS)
        ttl, *data = await pipeline.execute()
        if ttl != -2:
            found.append(StoredKey(name.decode(), ttl, _bytes(data)))
    return found


def _bytes(data: list[Any]) -> bytes:
    return data[0] if data and data[0] is not None else b""
