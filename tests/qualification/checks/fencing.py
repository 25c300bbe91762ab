"""One holder at a time, fences that rise, and nothing that is published or put on record by whoever was overtaken.

`seen` is what the store of leases and index held, moment by moment; `receipts` is what the repository has on record.
Within one history of the store everything is strict. A failover may lose what was acknowledged, and a primary that
nobody listens to may grant by itself: so between histories only what was done under a fence counts, for nothing is done
before the fence is on record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.qualification.observers.partition_seen import (
    SLACK_SECONDS,
    Grant,
    PartitionSeen,
    by_reign,
    publications,
    steps,
)
from tests.qualification.observers.receipts import Floor, RecordedIntent, RecordedReceipt


def problems(seen: Sequence[PartitionSeen], receipts: Sequence[RecordedReceipt], *, ttl_seconds: float) -> list[str]:
    """Everything that is wrong."""
    return [
        *several_holders(seen),
        *fences_that_do_not_rise(seen),
        *fallen_fences(seen),
        *unfenced_publications(seen),
        *fences_worked_under_twice(seen, ttl_seconds=ttl_seconds),
        *receipts_out_of_order(receipts),
    ]


def several_holders(seen: Iterable[PartitionSeen]) -> list[str]:
    """A lease is granted only when the one before it was given back or has run out, by the store's clock."""
    found = []
    for before, after in steps(seen):
        held, now = before.lease, after.lease
        if held is None or now is None or now.nonce == held.nonce or not after.follows:
            continue
        if held.is_live(after.at + SLACK_SECONDS):
            left = "no end" if held.expires_at is None else f"{held.expires_at - after.at:.3f} s"
            found.append(f"{_name(after)}: fence {now.fence} was granted while fence {held.fence} had {left} left")
    for history in by_reign(seen):
        ended: dict[str, int] = {}
        last: Grant | None = None
        for one in history:
            if one.lease is not None and (last is None or one.lease.nonce != last.nonce):
                if one.lease.nonce in ended:
                    found.append(f"{_name(one)}: fence {one.lease.fence} was held again after another one")
                if last is not None:
                    ended[last.nonce] = last.fence
                last = one.lease
    return found


def fences_that_do_not_rise(seen: Iterable[PartitionSeen]) -> list[str]:
    """Within one history of the store, each grant's fence is above every one before it."""
    found = []
    for history in by_reign(seen):
        highest, granted = 0, dict[str, int]()
        for one in history:
            if one.lease is None:
                continue
            fence = granted.get(one.lease.nonce)
            if fence is None:
                granted[one.lease.nonce] = one.lease.fence
                if one.lease.fence <= highest:
                    found.append(f"{_name(one)}: fence {one.lease.fence} was granted after {highest}")
                highest = max(highest, one.lease.fence)
            elif fence != one.lease.fence:
                found.append(f"{_name(one)}: a grant of fence {fence} has become one of {one.lease.fence}")
    return found


def fallen_fences(seen: Iterable[PartitionSeen]) -> list[str]:
    """Within one history of the store, the highest fence is never forgotten, and no lease is above it."""
    found = []
    for before, after in steps(seen):
        if after.highest_fence < before.highest_fence:
            found.append(f"{_name(after)}: the highest fence fell from {before.highest_fence} to {after.highest_fence}")
    return [
        *found,
        *(
            f"{_name(one)}: fence {one.lease.fence} is held, and the highest is {one.highest_fence}"
            for one in seen
            if one.lease is not None and one.lease.fence > one.highest_fence
        ),
    ]


def unfenced_publications(seen: Sequence[PartitionSeen]) -> list[str]:
    """What is published is published by the holder of the live lease, and by nobody who was overtaken."""
    found = []
    highest: dict[tuple[str, str], int] = {}
    published = {id(after): before for before, after in publications(seen)}
    for history in by_reign(seen):
        for one in history:
            place = (one.partition, one.reign)
            known = highest.get(place, 0)
            before = published.get(id(one))
            if before is not None and one.published is not None:
                what = f"{_name(one)}: index revision {one.published.index_revision} was published"
                fence = one.published.fence
                if fence < known:
                    found.append(f"{what} under fence {fence} after {known} had been granted")
                elif fence > max(one.highest_fence, known):
                    found.append(f"{what} under fence {fence}, which was never granted")
                elif one.follows and not _is_held(before.lease, fence, one.at):
                    found.append(f"{what} under fence {fence}, which was not held")
            held = 0 if one.lease is None else one.lease.fence
            highest[place] = max(known, one.highest_fence, held)
    return found


def _is_held(lease: Grant | None, fence: int, at: float) -> bool:
    return lease is not None and lease.fence == fence and lease.is_live(at - SLACK_SECONDS)


@dataclass(slots=True)
class _Work:
    fence: int
    first_seen: float
    expires_at: float
    done_at: float | None = None
    """When it was first known that something was done under it."""


def fences_worked_under_twice(seen: Iterable[PartitionSeen], *, ttl_seconds: float) -> list[str]:
    """Across all histories of the store, whoever works under a fence works under a higher one than everybody before.

    Something was done under a fence if an index was published with it, or its lease was renewed again and again: a
    holder renews only after its fence is on record.
    """
    found = []
    grants: dict[tuple[str, str], _Work] = {}
    for one in sorted(seen, key=lambda moment: moment.seen):
        lease = one.lease
        if lease is None or lease.expires_at is None:
            continue
        work = grants.setdefault((one.partition, lease.nonce), _Work(lease.fence, one.seen, lease.expires_at))
        published = one.published is not None and one.follows and one.published.fence == lease.fence
        if work.done_at is None and (published or lease.expires_at - work.expires_at > ttl_seconds):
            work.done_at = one.seen
    for partition in sorted({name for name, _ in grants}):
        own = [work for (name, _), work in grants.items() if name == partition and work.done_at is not None]
        for later in own:
            done = [work.fence for work in own if work.done_at is not None and work.done_at < later.first_seen]
            if done and later.fence <= max(done):
                found.append(f"{partition[:8]}: work under fence {later.fence} began after work under {max(done)}")
        fences = [work.fence for work in own]
        found += [
            f"{partition[:8]}: two grants of fence {fence} were worked under"
            for fence in sorted(set(fences))
            if fences.count(fence) > 1
        ]
    return found


def receipts_out_of_order(receipts: Iterable[RecordedReceipt]) -> list[str]:
    """A receipt that is written later has the higher position: an older one never replaces a newer."""
    found = []
    last: dict[str, RecordedReceipt] = {}
    for receipt in sorted(receipts, key=lambda one: (one.partition, one.at, one.position)):
        before = last.get(receipt.partition)
        if before is not None and receipt.position <= before.position:
            found.append(f"{receipt.partition[:8]}: the receipt {_at(receipt)} was written after the one {_at(before)}")
        last[receipt.partition] = receipt
    return found


def records_above_the_floor(
    receipts: Iterable[RecordedReceipt], intents: Iterable[RecordedIntent], floors: Mapping[str, Floor]
) -> list[str]:
    """Nothing is on record under a fence that is not; and what is covered is what the newest receipt says."""
    found = []
    newest: dict[str, RecordedReceipt] = {}
    for receipt in receipts:
        known = newest.get(receipt.partition)
        if known is None or receipt.position > known.position:
            newest[receipt.partition] = receipt
    written = [
        *((one.partition, one.fence) for one in newest.values()),
        *((one.partition, one.fence) for one in intents),
    ]
    for partition, fence in written:
        floor = floors.get(partition)
        if floor is None or fence > floor.fence:
            recorded = None if floor is None else floor.fence
            found.append(f"{partition[:8]}: fence {fence} was written under, and {recorded} is the highest on record")
    for partition, receipt in newest.items():
        floor = floors.get(partition)
        source = (receipt.source_history_id, receipt.source_revision)
        if floor is not None and floor.covered != source:
            found.append(f"{partition[:8]}: {floor.covered} counts as covered, and the newest receipt covers {source}")
    return found


def vanished_records(before: Iterable[RecordedReceipt], after: Iterable[RecordedReceipt]) -> list[str]:
    """What was on record once stays there, as it was."""
    kept = {(one.partition, one.position): one for one in after}
    found = []
    for receipt in before:
        now = kept.get((receipt.partition, receipt.position))
        if now != receipt:
            what = "is gone" if now is None else "has changed"
            found.append(f"{receipt.partition[:8]}: the receipt {_at(receipt)} {what}")
    return found


def fallen_floors(earlier: Mapping[str, Floor], later: Mapping[str, Floor]) -> list[str]:
    """The highest fence on record never falls, whatever the store of leases forgets."""
    found = []
    for partition, floor in earlier.items():
        now = later[partition].fence if partition in later else 0
        if now < floor.fence:
            found.append(f"{partition[:8]}: the highest fence on record fell from {floor.fence} to {now}")
    return found


def granted_below_the_floor(seen: Iterable[PartitionSeen], floors: Mapping[str, Floor], since: float) -> list[str]:
    """After `since`, when these were on record, whatever was granted first and published has a fence above them.

    `since` is in seconds of the harness's clock.
    """
    found = []
    known = {one.lease.nonce for one in seen if one.lease is not None and one.seen <= since}
    for one in seen:
        floor = floors.get(one.partition)
        lease, published = one.lease, one.published
        if floor is None or lease is None or published is None or one.seen <= since or lease.nonce in known:
            continue
        if one.follows and published.fence == lease.fence <= floor.fence:
            found.append(f"{_name(one)}: fence {lease.fence} published, and {floor.fence} had been on record")
    return found


def _at(receipt: RecordedReceipt) -> str:
    fence, index_revision, source_revision = receipt.position
    return f"(fence {fence}, index revision {index_revision}, source revision {source_revision})"


def _name(one: PartitionSeen) -> str:
    return f"{one.partition[:8]} at {one.node}"
