"""Reads of the repository: nodes now and then, revisions, change sets, snapshots, and the stream of changes.

All are pure: they change no counter, time or rank. Each says which namespace revision it answers for.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from durable_memory.app.call import Call
from durable_memory.app.memories import revision_not_found
from durable_memory.domain.canonical import canonical_json
from durable_memory.domain.change_set import ChangeSetRecord
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import DomainError, Reason, node_not_found
from durable_memory.domain.limits import PAGE_SIZE_MAX, SNAPSHOT_MAX_BYTES, SNAPSHOT_MAX_NODES
from durable_memory.domain.node import NodeRef, NodeRevision, NodeStatus
from durable_memory.domain.state import ChangeToken, Head
from durable_memory.ports.store import NodeSelection, Store

_BATCH_CHANGE_SETS: Final = 100
_BATCH_NODES: Final = 64
"""Node revisions that a watch reads ahead, of change sets that are no larger: 4 MiB of content at the most."""

_FIRST_PAGE_NODES: Final = 32
_READ_AHEAD_BYTES: Final = 2 * 1024 * 1024
"""The text that a snapshot reads ahead, about. However slowly its caller reads, the server holds it all the while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePage:
    """Nodes as of `token`'s revision, in byte order of ids; `more` if there are others after the last one."""

    token: ChangeToken
    nodes: tuple[NodeRevision, ...]
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSetPage:
    token: ChangeToken
    change_sets: tuple[ChangeSetRecord, ...]
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotEnd:
    """What a complete snapshot holds. `digest` is over the canonical JSON of its nodes, in order."""

    node_count: int
    content_bytes: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedChange:
    """One committed change set, and the node revisions that it made."""

    token: ChangeToken
    change_set: ChangeSetRecord
    nodes: tuple[NodeRevision, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchIdle:
    """Nothing new; the watcher has seen everything up to `token`."""

    token: ChangeToken


class RepositoryReader:
    """Reads for RPCs, exports and people."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def token(self, call: Call) -> ChangeToken:
        """Where the namespace stands."""
        return (await self._store.head(call.namespace)).token

    async def nodes(
        self, call: Call, node_ids: Sequence[str], at_revision: int | None = None
    ) -> tuple[ChangeToken, Mapping[str, NodeRevision]]:
        """Those of some nodes that exist, as they were at a revision (default: now).

        Raises: REVISION_NOT_FOUND if the namespace has not reached `at_revision`.
        """
        token = _at(await self._store.head(call.namespace), at_revision)
        return token, await self._store.nodes_at(call.namespace, frozenset(node_ids), token.namespace_revision)

    async def node(self, call: Call, node_id: str, at_revision: int | None = None) -> tuple[ChangeToken, NodeRevision]:
        """One node. Raises: NODE_NOT_FOUND, REVISION_NOT_FOUND."""
        token, found = await self.nodes(call, [node_id], at_revision)
        if node_id not in found:
            raise node_not_found(node_id)
        return token, found[node_id]

    async def list_nodes(
        self,
        call: Call,
        selection: NodeSelection,
        *,
        at_revision: int | None,
        after_node_id: str,
        limit: int,
    ) -> NodePage:
        """One page. Following pages name the first one's revision, so that together they are one state."""
        token = _at(await self._store.head(call.namespace), at_revision)
        nodes = await self._store.list_nodes(
            call.namespace,
            selection,
            at_revision=token.namespace_revision,
            after_node_id=after_node_id,
            limit=limit + 1,
        )
        return NodePage(token=token, nodes=tuple(nodes[:limit]), more=len(nodes) > limit)

    async def list_revisions(self, call: Call, node_id: str, *, after_revision: int, limit: int) -> NodePage:
        """All revisions of one node, oldest first. Raises: NODE_NOT_FOUND."""
        head = await self._store.head(call.namespace)
        found = await self._store.list_revisions(
            call.namespace, node_id, after_revision=after_revision, limit=limit + 1
        )
        nodes = [node for node in found if node.valid_from <= head.revision]
        if not nodes and not await self._store.nodes_at(call.namespace, {node_id}, head.revision):
            raise node_not_found(node_id)
        return NodePage(token=head.token, nodes=tuple(nodes[:limit]), more=len(nodes) > limit)

    async def revision(self, call: Call, target: NodeRef | Citation) -> tuple[ChangeToken, NodeRevision]:
        """One exact revision, current or not.

        Raises: REVISION_NOT_FOUND if there is none, or if it is not the text that the citation names.
        """
        ref = target.ref if isinstance(target, Citation) else target
        node = (await self._store.revisions(call.namespace, {ref})).get(ref)
        if node is None or (isinstance(target, Citation) and not target.names(node)):
            raise revision_not_found(ref)
        # Read after what the answer holds, so that the token is never behind it.
        return await self.token(call), node

    async def list_change_sets(self, call: Call, *, after_revision: int, limit: int) -> ChangeSetPage:
        """What each namespace revision changed, in order."""
        head = await self._store.head(call.namespace)
        found = [
            record
            for record in await self._store.list_change_sets(
                call.namespace, after_revision=after_revision, limit=limit + 1
            )
            if record.namespace_revision <= head.revision
        ]
        return ChangeSetPage(token=head.token, change_sets=tuple(found[:limit]), more=len(found) > limit)

    async def change_set(self, call: Call, namespace_revision: int) -> tuple[ChangeToken, ChangeSetRecord]:
        """The change set that made a namespace revision. Raises: REVISION_NOT_FOUND."""
        found = await self._change_set(call, namespace_revision)
        token = await self.token(call)
        if found is None:
            raise _namespace_revision_not_found(namespace_revision, token.namespace_revision)
        return token, found

    async def change_set_of(self, call: Call, method: str, key: str) -> tuple[ChangeToken, ChangeSetRecord]:
        """The change set that a request made.

        Raises: REVISION_NOT_FOUND if there was no such request, or if it changed nothing.
        """
        record = await self._store.find_request(call.namespace, method, key)
        if record is not None:
            found = await self._change_set(call, record.namespace_revision)
            if found is not None and (found.method, found.request_id) == (method, key):
                return await self.token(call), found
        raise DomainError(
            Reason.REVISION_NOT_FOUND, "no change set was made by this request", method=method, request_id=key
        )

    async def _change_set(self, call: Call, namespace_revision: int) -> ChangeSetRecord | None:
        found = await self._store.list_change_sets(call.namespace, after_revision=namespace_revision - 1, limit=1)
        return next((record for record in found if record.namespace_revision == namespace_revision), None)

    async def snapshot(
        self, call: Call, statuses: frozenset[NodeStatus], at_revision: int | None = None
    ) -> AsyncGenerator[ChangeToken | NodeRevision | SnapshotEnd, None]:
        """The complete view at one revision: the token, every node in id order, and the end with its digest.

        Raises: SNAPSHOT_TOO_LARGE rather than leave anything out; a stream without an end is not a snapshot.
        """
        token = _at(await self._store.head(call.namespace), at_revision)
        yield token
        hasher = hashlib.sha256(b"durablememory.dev/snapshot/v1\n")
        count = size = 0
        after = ""
        selection = NodeSelection(statuses=statuses)
        page_size = min(_FIRST_PAGE_NODES, PAGE_SIZE_MAX)
        while True:
            nodes = await self._store.list_nodes(
                call.namespace,
                selection,
                at_revision=token.namespace_revision,
                after_node_id=after,
                limit=page_size,
            )
            for node in nodes:
                count += 1
                size += len(node.content.encode())
                if count > SNAPSHOT_MAX_NODES or size > SNAPSHOT_MAX_BYTES:
                    raise _snapshot_too_large()
                hasher.update(canonical_json(node.canonical()) + b"\n")
                yield node
            if len(nodes) < page_size:
                break
            after = nodes[-1].node_id
            page_size = _next_page_size(nodes)
        yield SnapshotEnd(node_count=count, content_bytes=size, digest=hasher.hexdigest())

    async def watch(
        self, call: Call, after: ChangeToken | int | None, *, with_nodes: bool = True
    ) -> AsyncGenerator[WatchedChange | WatchIdle, None]:
        """Every change set after a revision (default: from now on), in order, without gaps, for ever.

        A `ChangeToken` also names the history that the watcher has followed. An idle report comes after what was
        there at the start, and whenever a few seconds went by without a change. Without `with_nodes` changes carry no
        node revisions.

        Raises: HISTORY_CHANGED (expected, actual) if the namespace has another history, then or later;
        REVISION_NOT_FOUND if it has not got as far as `after`, or is no longer where the watcher has seen it.
        """
        head = await self._store.head(call.namespace)
        seen = head.token
        if isinstance(after, ChangeToken):
            seen = after
        elif after is not None:
            seen = replace(seen, namespace_revision=after)
        while True:
            if head.history_id != seen.history_id:
                raise _history_changed(seen.history_id, head.history_id)
            _at(head, seen.namespace_revision)
            if seen == head.token:
                yield WatchIdle(token=seen)
                await self._store.wait_for_change(call.namespace, seen.namespace_revision)
            else:
                records, nodes = await changes_after(
                    self._store, call, seen.namespace_revision, upto=head.revision, with_nodes=with_nodes
                )
                for record in records:
                    seen = replace(seen, namespace_revision=record.namespace_revision)
                    made = tuple(nodes.get(record.namespace_revision, ()))
                    yield WatchedChange(token=seen, change_set=record, nodes=made)
            head = await self._store.head(call.namespace)


async def changes_after(
    store: Store, call: Call, after_revision: int, *, upto: int, with_nodes: bool = True
) -> tuple[Sequence[ChangeSetRecord], Mapping[int, Sequence[NodeRevision]]]:
    """The next change sets of those up to a revision that exists, and the node revisions that each made.

    As many as are good to hold in memory: at least one, and no more than `_BATCH_NODES` node revisions if it can be.

    Raises: DATA_CORRUPTED where a change set or a node revision is missing.
    """
    limit = min(_BATCH_CHANGE_SETS, upto - after_revision)
    found = await store.list_change_sets(call.namespace, after_revision=after_revision, limit=limit)
    records: list[ChangeSetRecord] = []
    size = 0
    for record in found:
        size += len(record.changes)
        if records and size > _BATCH_NODES:
            break
        records.append(record)
    revisions = [record.namespace_revision for record in records]
    if revisions != list(range(after_revision + 1, after_revision + 1 + len(revisions))) or not revisions:
        raise _history_has_gap("change_set", after_revision)
    if not with_nodes:
        return records, {}
    nodes = await store.revisions_committed_at(call.namespace, frozenset(revisions))
    if any(len(nodes.get(record.namespace_revision, ())) != len(record.changes) for record in records):
        raise _history_has_gap("node", after_revision)
    return records, nodes


def _next_page_size(nodes: Sequence[NodeRevision]) -> int:
    """How many nodes like these may be read ahead at a time."""
    size = sum(len(text) for node in nodes for text in (node.content, *node.surroundings))
    return max(1, min(PAGE_SIZE_MAX, _READ_AHEAD_BYTES * len(nodes) // max(1, size)))


def _at(head: Head, at_revision: int | None) -> ChangeToken:
    if at_revision is None:
        return head.token
    if at_revision > head.revision:
        raise _namespace_revision_not_found(at_revision, head.revision)
    return ChangeToken(history_id=head.history_id, namespace_revision=at_revision)


def _namespace_revision_not_found(asked: int, actual: int) -> DomainError:
    return DomainError(
        Reason.REVISION_NOT_FOUND,
        f"the namespace has no revision {asked}; it is at {actual}",
        namespace_revision=asked,
        actual=actual,
    )


def _snapshot_too_large() -> DomainError:
    return DomainError(
        Reason.SNAPSHOT_TOO_LARGE,
        "the snapshot would be over its budget; select fewer statuses, or page with ListNodes",
        max_nodes=SNAPSHOT_MAX_NODES,
        max_bytes=SNAPSHOT_MAX_BYTES,
    )


def _history_has_gap(what: str, after_revision: int) -> DomainError:
    return DomainError(
        Reason.DATA_CORRUPTED,
        f"the history after namespace revision {after_revision} lacks a {what}",
        what=what,
        namespace_revision=after_revision,
    )


def _history_changed(expected: str, actual: str) -> DomainError:
    return DomainError(
        Reason.HISTORY_CHANGED,
        "the namespace does not continue the history that was named; read it afresh",
        expected=expected,
        actual=actual,
    )
