"""What must be true of a namespace after months of hosts that consolidate, decay and retire. Each check returns what is
wrong.

`watched` is the whole history with the node revisions that it made; `current` is what there is at the end, by node id.
What hosts meant is handed in as they noted it before they asked: nothing here is taken from the service's own account
of why it did something.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from durable_memory_client import (
    Citation,
    MaintenanceRun,
    Node,
    NodeStatus,
    RefreshReceipt,
    RelationKind,
    WatchedChange,
)
from tests.qualification.recorder.history import Key

Endings = Mapping[Key, Mapping[str, NodeStatus]]
"""By command, the nodes that it was sent to end, and as what."""

_MOVES: Mapping[NodeStatus | None, frozenset[NodeStatus]] = {
    None: frozenset({NodeStatus.CANDIDATE, NodeStatus.ACTIVE}),
    NodeStatus.CANDIDATE: frozenset({NodeStatus.ACTIVE, NodeStatus.CONFLICTED, NodeStatus.TOMBSTONED}),
    NodeStatus.ACTIVE: frozenset(
        {NodeStatus.SUPERSEDED, NodeStatus.CONFLICTED, NodeStatus.ARCHIVED, NodeStatus.TOMBSTONED}
    ),
    NodeStatus.CONFLICTED: frozenset({NodeStatus.ACTIVE, NodeStatus.SUPERSEDED, NodeStatus.TOMBSTONED}),
    NodeStatus.ARCHIVED: frozenset({NodeStatus.ACTIVE, NodeStatus.TOMBSTONED}),
    NodeStatus.SUPERSEDED: frozenset({NodeStatus.TOMBSTONED}),
    NodeStatus.TOMBSTONED: frozenset(),
}
"""The status machine by its definition, written a second time."""


def ever_active(watched: Iterable[WatchedChange]) -> set[str]:
    """The ids of all nodes that were ACTIVE at some namespace revision."""
    return {
        one.citation.node_id
        for change in watched
        for one in change.change_set.changes
        if one.status_after is NodeStatus.ACTIVE
    }


def lost_silently(watched: Sequence[WatchedChange], current: Mapping[str, Node], endings: Endings) -> list[str]:
    """A node that was ever ACTIVE still is, or was ended by a command that named it, as what the command said."""
    found = []
    last: dict[str, NodeStatus] = {}
    for change in watched:
        key = (change.change_set.method, change.change_set.idempotency_key)
        for one in change.change_set.changes:
            node_id, after = one.citation.node_id, one.status_after
            if last.get(node_id) is NodeStatus.ACTIVE and after is not NodeStatus.ACTIVE:
                asked = endings.get(key, {}).get(node_id)
                if asked is not after:
                    meant = "nothing of it" if asked is None else f"it to be {asked.value}"
                    found.append(f"node {node_id} became {after.value} by {key[0]} {key[1]}, which wanted {meant}")
            last[node_id] = after
    for node_id in sorted(ever_active(watched)):
        if node_id not in current:
            found.append(f"node {node_id} was ACTIVE, and is not there")
        elif current[node_id].status is not last[node_id]:
            is_now, was_left = current[node_id].status.value, last[node_id].value
            found.append(f"node {node_id} is {is_now}, and the last change set that names it left it {was_left}")
    return found


def forbidden_moves(watched: Iterable[WatchedChange]) -> list[str]:
    """Each change goes from where the one before it left the node to where the status machine lets it go."""
    found = []
    last: dict[str, NodeStatus] = {}
    for change in watched:
        at = change.change_set.namespace_revision
        for one in change.change_set.changes:
            node_id, before, after = one.citation.node_id, one.status_before, one.status_after
            if before is not last.get(node_id):
                found.append(f"node {node_id} was {_name(last.get(node_id))}, and revision {at} saw {_name(before)}")
            if after is not before and after not in _MOVES.get(before, frozenset()):
                found.append(f"node {node_id} went from {_name(before)} to {after.value} at revision {at}")
            last[node_id] = after
    return found


def without_successor(current: Mapping[str, Node]) -> list[str]:
    """What is SUPERSEDED leads, over nodes that name each other, to one that is not."""
    found = []
    for node in current.values():
        passed = {node.id}
        while node.status is NodeStatus.SUPERSEDED:
            successors = [r.node_id for r in node.relations if r.kind is RelationKind.SUPERSEDED_BY]
            successor = current.get(successors[0]) if len(successors) == 1 else None
            if successor is None or successor.id in passed:
                found.append(f"node {node.id} is SUPERSEDED by {successors}, which leads nowhere")
                break
            if all((r.kind, r.node_id) != (RelationKind.SUPERSEDES, node.id) for r in successor.relations):
                found.append(f"node {node.id} is SUPERSEDED by {successor.id}, which does not say so")
                break
            passed.add(successor.id)
            node = successor
    return found


def different_views(views: Mapping[str, Iterable[Node]]) -> list[str]:
    """All ways to read the whole namespace give the same nodes. `views` are by their names; the first is compared."""
    (first, nodes), *others = views.items()
    expected = {node.id: _essence(node) for node in nodes}
    found = []
    for name, seen in others:
        given = {node.id: _essence(node) for node in seen}
        found += [
            f"node {node_id} is not the same by {first} and by {name}"
            for node_id in sorted(expected.keys() | given.keys())
            if expected.get(node_id) != given.get(node_id)
        ]
    return found


def not_recalled(active: Iterable[str], found: Mapping[str, Sequence[str]]) -> list[str]:
    """The recall for each ACTIVE node, by what only it says, finds it. `found`: by node id, the ids of the hits."""
    return [
        f"node {one} is ACTIVE, and its own word does not find it" for one in active if one not in found.get(one, ())
    ]


def recalled_all_the_same(active: Iterable[str], found: Mapping[str, Sequence[str]]) -> list[str]:
    """No recall returns what is not ACTIVE."""
    allowed = set(active)
    return [
        f"the recall for node {asked} returned {hit}, which is not ACTIVE"
        for asked, hits in found.items()
        for hit in hits
        if hit not in allowed
    ]


def uncitable(watched: Iterable[WatchedChange], read: Mapping[Citation, Node | None]) -> list[str]:
    """What a citation named when it was made is what it names now. `read`: what was read of each that was asked for."""
    made = {node.citation: node for change in watched for node in change.nodes}
    found = []
    for citation, node in read.items():
        if node is None:
            found.append(f"{citation} names nothing any more")
        elif citation not in made:
            found.append(f"{citation} was read, and no change set made it")
        elif _essence(node) != _essence(made[citation]):
            found.append(f"{citation} names something else than when it was made")
    return found


def shifted_dates(
    revisions: Iterable[Node],
    stated: Mapping[tuple[str, int], datetime],
    evidence: Mapping[tuple[str, str], datetime],
) -> list[str]:
    """Times come back as the instants that were stated, to the microsecond, in whatever zone that was.

    `stated`: occurred_at by node id and the revision that brought it, which holds for later ones too. `evidence`: by
    node id and URI. Raises: ValueError for a stated time without a zone.
    """
    found = []
    expected: dict[str, datetime] = {}
    for node in sorted(revisions, key=lambda node: (node.id, node.revision)):
        if (node.id, node.revision) in stated:
            expected[node.id] = _instant(stated[node.id, node.revision])
        if node.id in expected and node.occurred_at != expected[node.id]:
            found.append(f"node {node.id}@{node.revision} occurred {node.occurred_at}, stated was {expected[node.id]}")
        for one in node.evidence:
            meant = evidence.get((node.id, one.uri))
            if meant is not None and one.occurred_at != _instant(meant):
                found.append(f"evidence of node {node.id}@{node.revision} is of {one.occurred_at}, stated was {meant}")
    return found


def gone_back(watched: Iterable[WatchedChange]) -> list[str]:
    """A node's update time never goes back, and its creation time stays."""
    found = []
    last: dict[str, Node] = {}
    for change in watched:
        for node in change.nodes:
            before = last.get(node.id, node)
            if node.updated_at < before.updated_at or node.updated_at < node.created_at:
                found.append(
                    f"node {node.id}@{node.revision} was updated {node.updated_at}, before what came before it"
                )
            if node.created_at != before.created_at:
                found.append(f"node {node.id}@{node.revision} was created {node.created_at}, not {before.created_at}")
            last[node.id] = node
    return found


def changed_past(kept: Mapping[int, str], now: Mapping[int, str]) -> list[str]:
    """The snapshot of a past namespace revision has the digest that it had when it was the present."""
    return [
        f"the snapshot at namespace revision {revision} has another digest than it had"
        for revision, digest in kept.items()
        if now.get(revision) != digest
    ]


def drifted(before: Mapping[str, Sequence[object]], after: Mapping[str, Sequence[object]]) -> list[str]:
    """Time alone changes no recall: hits and scores of an untouched namespace, by question, are what they were."""
    return [
        f"the recall {name} of an untouched namespace is another one now"
        for name in before
        if list(before[name]) != list(after.get(name, ()))
    ]


def replayed_ticks(runs: Iterable[MaintenanceRun], interval: timedelta) -> list[str]:
    """Between two runs of a schedule that knows only an interval lies that interval: what was missed is skipped."""
    began = sorted(run.started_at for run in runs)
    return [
        f"a scheduled run began {after}, {after - before} after the one before it"
        for before, after in itertools.pairwise(began)
        if after - before < interval
    ]


def refreshed_backwards(receipts: Iterable[RefreshReceipt]) -> list[str]:
    """Receipts, oldest first, have rising fences, and index and namespace revisions that never fall."""
    found = []
    before: RefreshReceipt | None = None
    for receipt in receipts:
        if before is not None:
            if receipt.fence <= before.fence:
                found.append(f"a receipt with fence {receipt.fence} follows one with {before.fence}")
            if receipt.index_revision < before.index_revision:
                found.append(f"index revision {receipt.index_revision} follows {before.index_revision}")
            if receipt.source.namespace_revision < before.source.namespace_revision:
                found.append(
                    f"a receipt of namespace revision {receipt.source.namespace_revision} follows one of "
                    f"{before.source.namespace_revision}"
                )
        before = receipt
    return found


def never_happened(counts: Mapping[str, int]) -> list[str]:
    """What hosts were to do, and never did: nothing has been shown of it. By "memory decayed" and the like."""
    return [f"no {what}" for what, times in counts.items() if not times]


def _essence(node: Node) -> tuple[object, ...]:
    """All of a node revision that may not change: what is left out is when it was replaced, which comes later, and
    surroundings, which not every reading carries."""
    return (
        *(node.id, node.revision, node.kind, node.status, node.content, node.content_digest, node.author),
        *(node.occurred_at, node.confidence, node.importance, node.evidence, node.relations, dict(node.labels)),
        *(node.created_at, node.updated_at, node.committed_at, node.decided_by, node.citation, node.valid_from),
    )


def _instant(time: datetime) -> datetime:
    """In UTC, where a repeated hour is no riddle: Python holds times of it unequal to all times of other zones."""
    if time.utcoffset() is None:
        raise ValueError("a time without a zone is no instant")
    return time.astimezone(UTC)


def _name(status: NodeStatus | None) -> str:
    return "absent" if status is None else status.value
