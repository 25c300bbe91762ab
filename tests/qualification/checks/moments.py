"""Moments of one partition for tests of checks, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.qualification.checks.index import HISTORY_START, chained
from tests.qualification.observers.partition_seen import Grant, PartitionSeen, Published
from tests.qualification.observers.receipts import RecordedReceipt

PARTITION = "a" * 64
TTL_SECONDS = 3.0


@dataclass
class Store:
    """A store whose clock is moved by hand; each step is a moment, as if nothing were missed."""

    reign: str = "first"
    node: str = "redis-1"
    now: float = 100.0
    lease: Grant | None = None
    highest: int = 0
    published: Published | None = None
    seen: list[PartitionSeen] = field(default_factory=list)

    def look(self, *, follows: bool = True) -> None:
        self.seen.append(
            PartitionSeen(
                partition=PARTITION,
                node=self.node,
                reign=self.reign,
                at=self.now,
                seen=self.now,
                lease=self.lease,
                highest_fence=self.highest,
                published=self.published,
                follows=follows and bool(self.seen),
            )
        )

    def grant(
        self, fence: int, *, nonce: str = "", highest: int | None = None, ttl: float | None = TTL_SECONDS
    ) -> None:
        expires_at = None if ttl is None else self.now + ttl
        self.lease = Grant(owner="owner", nonce=nonce or f"grant-{fence}", fence=fence, expires_at=expires_at)
        self.highest = fence if highest is None else highest
        self.look()

    def renew(self) -> None:
        assert self.lease is not None
        self.lease = replace(self.lease, expires_at=self.now + TTL_SECONDS)
        self.look()

    def release(self) -> None:
        self.lease = None
        self.look()

    def publish(
        self, fence: int, *, revision: int | None = None, highest: int | None = None, follows: bool = True
    ) -> None:
        was = 0 if self.published is None else self.published.index_revision
        previous = HISTORY_START if self.published is None else self.published.history_digest
        made = Published(
            index_revision=was + 1 if revision is None else revision,
            history_digest="",
            fence=fence,
            nonce=f"publication-{self.now}",
            descriptor="{}",
            source_history_id="history",
            source_revision=was + 1,
            segments='[["s1","' + "c" * 64 + '",100,2,""]]',
        )
        self.published = replace(made, history_digest=chained(previous, made))
        self.highest = fence if highest is None else highest
        self.look(follows=follows)

    def wait(self, seconds: float) -> None:
        self.now += seconds


def good() -> Store:
    """Two holders, one after the other, each of whom publishes; the second follows one that ran out."""
    store = Store()
    store.look()
    store.grant(1)
    store.wait(0.1)
    store.publish(1)
    store.release()
    store.wait(1)
    store.grant(2)
    store.wait(1)
    store.renew()
    store.wait(4)
    store.grant(3)
    store.wait(1)
    store.publish(3)
    store.release()
    return store


def receipt(fence: int, index_revision: int, at: float, *, digest: str = "", source: int = 1) -> RecordedReceipt:
    return RecordedReceipt(
        partition=PARTITION,
        fence=fence,
        index_revision=index_revision,
        source_revision=source,
        source_history_id="history",
        history_digest=digest or f"{index_revision:064x}",
        active_count=1,
        indexed_count=1,
        work={"provider_calls": 0, "provider_inputs": 0},
        at=at,
        completed_by_successor=False,
    )


def receipts_of(published: Sequence[Published]) -> list[RecordedReceipt]:
    """As the holders wrote them."""
    return [
        receipt(one.fence, one.index_revision, float(place), digest=one.history_digest)
        for place, one in enumerate(published)
    ]
