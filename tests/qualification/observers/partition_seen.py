"""What the store of index and leases held of one partition, moment by moment, by the store's own clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

SLACK_SECONDS: Final = 0.1
"""How long a script may stand between its reading of the clock and the time that its commands are told with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A lease as the store held it. `nonce` is of the grant: the same owner's next one has another."""

    owner: str
    nonce: str
    fence: int
    expires_at: float | None
    """Seconds of the store's clock; None: it has no end."""

    def is_live(self, at: float) -> bool:
        return self.expires_at is None or at < self.expires_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A manifest. `segments` is its list of segments, as it is stored."""

    index_revision: int
    history_digest: str
    fence: int
    nonce: str
    descriptor: str
    source_history_id: str
    source_revision: int
    segments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSeen:
    """One moment. `reign` names one history of the store: a server's time as a primary, until it restarts or serves."""

    partition: str
    node: str
    reign: str
    at: float
    """Seconds of the store's clock."""
    seen: float
    """Seconds of the harness's monotonic clock."""
    lease: Grant | None
    highest_fence: int
    published: Published | None
    follows: bool
    """Whether nothing that was done to the partition since the moment before, in the same reign, is missing."""


def published_of(manifest: Mapping[str, str]) -> Published | None:
    """None where nothing is published. A field that is not there is 0 or empty: that is for the checks to find."""
    if "index_revision" not in manifest:
        return None
    return Published(
        index_revision=int(manifest["index_revision"]),
        history_digest=manifest.get("history_digest", ""),
        fence=int(manifest.get("fence", 0)),
        nonce=manifest.get("nonce", ""),
        descriptor=manifest.get("descriptor", ""),
        source_history_id=manifest.get("source_history_id", ""),
        source_revision=int(manifest.get("source_revision", 0)),
        segments=manifest.get("segments", ""),
    )


def grant_of(lease: Mapping[str, str], expires_at: float | None) -> Grant | None:
    """None where nobody holds it."""
    if "owner" not in lease:
        return None
    return Grant(
        owner=lease["owner"], nonce=lease.get("nonce", ""), fence=int(lease.get("fence", 0)), expires_at=expires_at
    )


def by_reign(seen: Iterable[PartitionSeen]) -> Iterator[list[PartitionSeen]]:
    """The moments of each partition in each history of the store, in their order."""

    def key(one: PartitionSeen) -> tuple[str, str]:
        return (one.partition, one.reign)

    for _, group in groupby(sorted(seen, key=key), key=key):
        yield list(group)


def steps(seen: Iterable[PartitionSeen]) -> Iterator[tuple[PartitionSeen, PartitionSeen]]:
    """Each moment with the one before it, of the same partition and history."""
    for history in by_reign(seen):
        yield from pairwise(history)


def publications(seen: Iterable[PartitionSeen]) -> Iterator[tuple[PartitionSeen, PartitionSeen]]:
    """The steps in which what is published became another."""
    return (
        (before, after)
        for before, after in steps(seen)
        if after.published is not None and after.published != before.published
    )
