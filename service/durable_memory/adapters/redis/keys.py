"""Names of keys. All those of a partition share the hash tag `{partition}`, and so live in one slot of a cluster."""

from __future__ import annotations

import re
from typing import Final

from durable_memory.domain.canonical import digest_hex

_PARTITION_NAME: Final = re.compile(r"[0-9a-f]{64}")


def manifest_key(partition: str) -> str:
    """Hash: the published state, and the highest fence ever granted, which stays whatever else goes."""
    return f"dm:{{{_tag(partition)}}}:manifest"


def lease_key(partition: str) -> str:
    """Hash with a TTL: the live grant."""
    return f"dm:{{{_tag(partition)}}}:lease"


def segment_key(partition: str, segment_id: str) -> str:
    """String: an immutable segment; with a TTL unless it is published."""
    return f"dm:{{{_tag(partition)}}}:seg:{segment_id}"


def segment_pattern(partition: str) -> str:
    """What the keys of a partition's segments match."""
    return segment_key(partition, "*")


def _tag(name: str) -> str:
    """Names of partitions are used as they are. Any other name could hold braces, so its digest stands for it."""
    return name if _PARTITION_NAME.fullmatch(name) else digest_hex("lease-name/v1", name.encode())
