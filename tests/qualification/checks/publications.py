"""Refreshes that several callers ask for at once, by way of several servers, beside those of the schedule."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from durable_memory_client import Node, NodeStatus, RefreshReceipt
from tests.qualification.checks.partitions import SegmentRecord
from tests.qualification.observers.receipts import RecordedReceipt

TURNED_AWAY = frozenset({"LEASE_HELD", "SOURCE_DRIFT", "LEASE_FENCED"})
"""Why a refresh may fail where others refresh and write: somebody else does it, it changed all the time, it took so
long that somebody else did it."""

NO_ANSWER = "NO_ANSWER"
TOO_BUSY = frozenset({NO_ANSWER, "DEADLINE_EXCEEDED", "DEPENDENCY_UNAVAILABLE"})
"""Why it may come to nothing, beside those, where a machine has more to do than it can: the provider, most of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A refresh that somebody asked server number `server` for. `reason` is why there is no receipt."""

    server: int
    began: float
    ended: float
    receipt: RefreshReceipt | None = None
    reason: str = ""


def skipped_publications(receipts: Iterable[RecordedReceipt]) -> list[str]:
    """By the record alone, where nothing was ever lost or cleared: each publication is one revision after the last,
    and whoever found that none was needed found the last one."""
    found = []
    ordered = sorted(receipts, key=lambda receipt: (receipt.partition, receipt.position))
    for partition, of_one in groupby(ordered, key=lambda receipt: receipt.partition):
        revision, digest = 0, ""
        for receipt in of_one:
            wanted = revision + 1 if receipt.published else revision
            if receipt.index_revision != wanted:
                found.append(
                    f"{partition[:8]}: the receipt of fence {receipt.fence} has index revision "
                    f"{receipt.index_revision}, not {wanted}"
                )
            elif not receipt.published and digest and receipt.history_digest != digest:
                found.append(f"{partition[:8]}: index revision {revision} has become another under {receipt.fence}")
            revision, digest = receipt.index_revision, receipt.history_digest
    return found


def unrecorded(asked: Iterable[Asked], receipts: Iterable[RecordedReceipt]) -> list[str]:
    """What a refresh was answered with is on record, word for word."""
    recorded = {(one.fence, one.index_revision, one.history_digest, one.source_revision) for one in receipts}
    return [
        f"a refresh by server {one.server} got index revision {told.index_revision} under fence {told.fence}, which is "
        "not on record"
        for one in asked
        if (told := one.receipt) is not None
        and (told.fence, told.index_revision, told.index_history_digest, told.source.namespace_revision) not in recorded
    ]


def shared_fences(asked: Iterable[Asked]) -> list[str]:
    """No two refreshes ran under one lease."""
    counts = Counter(one.receipt.fence for one in asked if one.receipt is not None)
    return [f"{count} refreshes were answered under fence {fence}" for fence, count in counts.items() if count > 1]


def failures(asked: Iterable[Asked], *, quiet_since: float) -> list[str]:
    """A refresh fails because others are at work, and for nothing else; while many write, also for want of time.

    `quiet_since`: when nobody wrote any more but who asks.
    """
    return [
        f"a refresh by server {one.server} at {one.began:.3f} failed: {one.reason}"
        for one in asked
        if one.reason and one.reason not in (TURNED_AWAY if one.began >= quiet_since else TURNED_AWAY | TOO_BUSY)
    ]


def records_and_memories(records: Iterable[SegmentRecord], nodes: Iterable[Node]) -> list[str]:
    """Each ACTIVE memory has one record, of the text that it has; and there is no other record."""
    by_node: dict[str, list[str]] = defaultdict(list)
    for record in records:
        by_node[record.node_id].append(record.text_digest)
    found = []
    for node in nodes:
        held = by_node.pop(node.id, [])
        if node.status is not NodeStatus.ACTIVE:
            found += [f"{node.id} is {node.status}, and has a record"] if held else []
        elif held != [passage_digest(node)]:
            what = (
                "no record" if not held else "the record of another text" if len(held) == 1 else f"{len(held)} records"
            )
            found.append(f"{node.id} is ACTIVE, and has {what}")
    return [*found, *(f"{node_id} has a record, and is no memory" for node_id in by_node)]


def without_memories(made_by: Mapping[str, str], nodes: Iterable[Node], processes: Collection[str]) -> list[str]:
    """Each process has made a memory that is ACTIVE. `made_by`: by node, the process that made it."""
    have = {made_by.get(node.id) for node in nodes if node.status is NodeStatus.ACTIVE}
    return [f"{process} has no ACTIVE memory" for process in processes if process not in have]


def passage_digest(node: Node) -> str:
    """What a vector belongs to, by its definition, written a second time. Of texts that need no cut."""
    said = f"{node.author}: {node.content.strip()}" if node.author else node.content.strip()
    passage = f"{node.surroundings[0]}\n{said}" if node.surroundings else said
    hasher = hashlib.sha256()
    for part in (b"durablememory.dev/embedded-text/v1", passage.encode()):
        hasher.update(len(part).to_bytes(8, "big") + part)
    return hasher.hexdigest()
