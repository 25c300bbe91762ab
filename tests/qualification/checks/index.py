"""Index revisions, their chain, what they cover once traffic has stopped, and what it costs to build an index again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from durable_memory_client import IndexState, IndexStatus
from tests.qualification.observers.partition_seen import PartitionSeen, Published, by_reign, publications, steps
from tests.qualification.observers.receipts import RecordedIntent, RecordedReceipt

HISTORY_START = "0" * 64
Vectors = Mapping[str, bytes]
"""By the digest of their text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """A promotion that was to lose a publication, by index revisions. `state`: what the status called the index then,
    before anybody built it again."""

    published: int
    survived: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A publication whose holder, under this fence, died before it could write the receipt of it."""

    partition: str
    fence: int
    published: Published


def problems(seen: Sequence[PartitionSeen]) -> list[str]:
    """Everything that is wrong with how indexes moved."""
    return [*skipped_revisions(seen), *silent_changes(seen), *broken_chain(seen)]


def skipped_revisions(seen: Iterable[PartitionSeen]) -> list[str]:
    """Each publication raises the index revision by one; where one may have been missed, it rises all the same."""
    found = []
    for before, after in publications(seen):
        assert after.published is not None
        was = 0 if before.published is None else before.published.index_revision
        now = after.published.index_revision
        if now == was:
            continue  # a change without a revision, which is another check
        if now < was or (after.follows and now != was + 1):
            found.append(f"{_name(after)}: index revision {now} was published after {was}")
    return found


def silent_changes(seen: Iterable[PartitionSeen]) -> list[str]:
    """At one index revision there is one index."""
    found = []
    for history in by_reign(seen):
        known: dict[int, Published] = {}
        for before, one in zip([None, *history], history, strict=False):
            if one.published is None:
                known.clear()  # it was cleared on purpose, and begins anew
                continue
            held = known.setdefault(one.published.index_revision, one.published)
            if held != one.published and (before is None or before.published != one.published):
                found.append(f"{_name(one)}: index revision {held.index_revision} has become another index")
    return found


def broken_chain(seen: Iterable[PartitionSeen]) -> list[str]:
    """The history digest is over the one before it, the index revision and what is listed."""
    found = []
    for before, after in steps(seen):
        if after.published is None or after.published == before.published or not after.follows:
            continue
        previous = HISTORY_START if before.published is None else before.published.history_digest
        if after.published.history_digest != chained(previous, after.published):
            found.append(f"{_name(after)}: the history breaks at index revision {after.published.index_revision}")
    return found


def chained(previous: str, published: Published) -> str:
    """The history digest by its definition, written a second time: SHA-256 over parts with their lengths."""
    parts = [b"durablememory.dev/index-history/v1", previous.encode(), str(published.index_revision).encode()]
    for segment_id, checksum, _, _, removed in json.loads(published.segments or "[]"):
        parts += [segment_id.encode(), checksum.encode(), bytes.fromhex(removed)]
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(len(part).to_bytes(8, "big") + part)
    return hasher.hexdigest()


def off_the_record(
    latest: Mapping[str, PartitionSeen], receipts: Iterable[RecordedReceipt], intents: Iterable[RecordedIntent]
) -> list[str]:
    """When nothing is under way, what is published is what the newest receipt or a pending intent says."""
    said: dict[str, tuple[tuple[int, int, int], int, str]] = {}
    for receipt in receipts:
        entry = (receipt.position, receipt.index_revision, receipt.history_digest)
        said[receipt.partition] = max(said.get(receipt.partition, entry), entry)
    pending = {
        (one.partition, one.expected_index_revision + 1, one.history_digest, one.nonce)
        for one in intents
        if one.pending
    }
    found = []
    for partition, one in latest.items():
        if one.published is None:
            continue
        index = (one.published.index_revision, one.published.history_digest)
        recorded = said[partition][1:] if partition in said else None
        if index != recorded and (partition, *index, one.published.nonce) not in pending:
            revision = None if recorded is None else recorded[0]
            found.append(f"{_name(one)}: index revision {index[0]} is published, and {revision} is on record")
    return found


def not_completed(orphans: Iterable[Orphan], receipts: Sequence[RecordedReceipt]) -> list[str]:
    """The receipt of each is on record all the same: by the next holder, under its own fence, and it says so."""
    found = []
    for one in orphans:
        name = f"{one.partition[:8]}: index revision {one.published.index_revision} under fence {one.fence}"
        own = [
            receipt
            for receipt in receipts
            if (receipt.partition, receipt.index_revision, receipt.history_digest)
            == (one.partition, one.published.index_revision, one.published.history_digest)
        ]
        if not own:
            found.append(f"{name} has no receipt")
        elif any(receipt.fence <= one.fence for receipt in own):
            found.append(f"{name} has a receipt under fence {min(receipt.fence for receipt in own)}")
        elif not any(receipt.completed_by_successor for receipt in own):
            found.append(f"{name} has a receipt that does not say that a successor wrote it")
    return found


def never_seen(seen: Iterable[PartitionSeen], receipts: Iterable[RecordedReceipt]) -> list[str]:
    """Every receipt is of an index that was there.

    What was there while nobody looked is known by its index revision: it is between the one that had been seen last and
    the one that was seen next.
    """
    there: set[tuple[str, str]] = set()
    unseen: list[tuple[str, range]] = []
    for history in by_reign(seen):
        for before, one in zip([None, *history], history, strict=False):
            if one.published is not None:
                there.add((one.partition, one.published.history_digest))
            if before is not None and not one.follows:
                unseen.append((one.partition, range(_revision(before) + 1, _revision(one))))
    return [
        f"{receipt.partition[:8]}: the receipt of index revision {receipt.index_revision} is of no index that was seen"
        for receipt in receipts
        if receipt.index_revision
        and (receipt.partition, receipt.history_digest) not in there
        and not any(receipt.partition == name and receipt.index_revision in between for name, between in unseen)
    ]


def lost_publications(seen: Sequence[PartitionSeen]) -> int:
    """How often a history of the store begins without what the one before it had published last."""
    last: dict[str, PartitionSeen] = {}
    begun: set[tuple[str, str]] = set()
    lost = 0
    for one in seen:
        before = last.get(one.partition)
        begins = (one.partition, one.reign) not in begun
        if begins and before is not None and before.published is not None:
            revision = 0 if one.published is None else one.published.index_revision
            lost += revision < before.published.index_revision
        begun.add((one.partition, one.reign))
        last[one.partition] = one
    return lost


def lost_nothing(promotions: Iterable[Promotion]) -> list[str]:
    """Each promotion has lost what it was to lose: otherwise it has shown nothing."""
    return [
        f"index revision {one.published} was to be lost, and {one.survived} is there after the promotion"
        for one in promotions
        if one.survived >= one.published
    ]


def unnoticed(promotions: Iterable[Promotion]) -> list[str]:
    """An index that is behind what was published last is called REGRESSED, although it is a sound one."""
    return [
        f"the index was called {one.state} at index revision {one.survived} after {one.published} had been published"
        for one in promotions
        if one.state != IndexState.REGRESSED.name
    ]


def not_caught_up(statuses: Mapping[str, IndexStatus]) -> list[str]:
    """Some time after traffic has stopped, the index has all that is ACTIVE. `statuses`: by namespace."""
    found = []
    for namespace, status in statuses.items():
        receipt, published = status.last_receipt, status.published
        if status.state is not IndexState.CURRENT:
            found.append(f"{namespace}: the index is {status.state.name}")
        if status.unindexed_active_count:
            found.append(f"{namespace}: {status.unindexed_active_count} memories have no vector")
        if receipt is None or receipt.source != status.change_token:
            found.append(f"{namespace}: the last receipt is not of the present revision")
        elif published is not None and (receipt.index_revision, receipt.index_history_digest) != (
            published.index_revision,
            published.index_history_digest,
        ):
            found.append(f"{namespace}: the last receipt is not of the published index")
    return found


def paid_rebuilds(rebuilds: Iterable[RecordedReceipt], passages_sent: int) -> list[str]:
    """Building again what was lost costs nothing. `passages_sent`: texts that reached the provider meanwhile."""
    found = []
    for receipt in rebuilds:
        calls, inputs = receipt.work.get("provider_calls", 0), receipt.work.get("provider_inputs", 0)
        if calls or inputs:
            found.append(
                f"{receipt.partition[:8]}: index revision {receipt.index_revision} under fence {receipt.fence} cost "
                f"{calls} provider calls for {inputs} texts"
            )
    if passages_sent:
        found.append(f"{passages_sent} texts of memories were sent to the provider while indexes were built again")
    return found


def changed_identity(identities: Iterable[Collection[str]]) -> list[str]:
    """The generation is the same before and after. Each of `identities` is what was named at one time."""
    named = list(dict.fromkeys(tuple(sorted(identity)) for identity in identities))
    return [f"the generations named were {named}"] if len(named) != 1 or not named[0] else []


def changed_vectors(before: Mapping[str, Vectors], after: Mapping[str, Vectors]) -> list[str]:
    """The same texts have the same vectors, bit for bit, and none is lost. By partition."""
    found = []
    for partition, vectors in before.items():
        now = after.get(partition, {})
        lost = vectors.keys() - now.keys()
        changed = [digest for digest, vector in vectors.items() if digest in now and now[digest] != vector]
        if lost:
            found.append(f"{partition[:8]}: {len(lost)} vectors are gone")
        found += [f"{partition[:8]}: the vector of text {digest[:8]} is another" for digest in sorted(changed)]
    return found


def _revision(one: PartitionSeen) -> int:
    return 0 if one.published is None else one.published.index_revision


def _name(one: PartitionSeen) -> str:
    return f"{one.partition[:8]} at {one.node}"
