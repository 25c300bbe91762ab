"""Reads of the repository: nodes now and then, revisions, change sets, snapshots, and the stream of changes.

All are pure: they change no counter, time or rank. Each says which namespace revision it answers for.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field

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

WATCH_BATCH = 100


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
        nodes = await self._store.list_revisions(
            call.namespace, node_id, after_revision=after_revision, limit=limit + 1
        )
        if not nodes and not await self._store.current_nodes(call.namespace, {node_id}):
            raise node_not_found(node_id)
        return NodePage(token=head.token, nodes=tuple(nodes[:limit]), more=len(nodes) > limit)

    async def revision(self, call: Call, target: NodeRef | Citation) -> tuple[ChangeToken, NodeRevision]:
        """One exact revision, current or not.

        Raises: REVISION_NOT_FOUND if there is none, or if it is not the text that the citation names.
        """
        head = await self._store.head(call.namespace)
        ref = target.ref if isinstance(target, Citation) else target
        node = (await self._store.revisions(call.namespace, {ref})).get(ref)
        if node is None or (isinstance(target, Citation) and not target.names(node)):
            raise revision_not_found(ref)
        return head.token, node

    async def list_change_sets(self, call: Call, *, after_revision: int, limit: int) -> ChangeSetPage:
        """What each namespace revision changed, in order."""
        head = await self._store.head(call.namespace)
        found = await self._store.list_change_sets(call.namespace, after_revision=after_revision, limit=limit + 1)
        return ChangeSetPage(token=head.token, change_sets=tuple(found[:limit]), more=len(found) > limit)

    async def change_set(self, call: Call, namespace_revision: int) -> tuple[ChangeToken, ChangeSetRecord]:
        """The change set that made a namespace revision. Raises: REVISION_NOT_FOUND."""
        head = await self._store.head(call.namespace)
        found = await self._store.list_change_sets(call.namespace, after_revision=namespace_revision - 1, limit=1)
        if not found or found[0].namespace_revision != namespace_revision:
            raise _namespace_revision_not_found(namespace_revision, head.revision)
        return head.token, found[0]

    async def change_set_of(self, call: Call, method: str, key: str) -> tuple[ChangeToken, ChangeSetRecord]:
        """The change set that a request made.

        Raises: REVISION_NOT_FOUND if there was no such request, or if it changed nothing.
        """
        record = await self._store.find_request(call.namespace, method, key)
        if record is not None:
            token, found = await self.change_set(call, record.namespace_revision)
            if (found.method, found.request_id) == (method, key):
                return token, found
        raise DomainError(
            Reason.REVISION_NOT_FOUND, "no change set was made by this request", method=method, request_id=key
        )

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
        while True:
            nodes = await self._store.list_nodes(
                call.namespace,
                selection,
                at_revision=token.namespace_revision,
                after_node_id=after,
                limit=PAGE_SIZE_MAX,
            )
            for node in nodes:
                count += 1
                size += len(node.content.encode())
                if count > SNAPSHOT_MAX_NODES or size > SNAPSHOT_MAX_BYTES:
                    raise _snapshot_too_large()
                hasher.update(canonical_json(node.canonical()) + b"\n")
                yield node
            if len(nodes) < PAGE_SIZE_MAX:
                break
            after = nodes[-1].node_id
        yield SnapshotEnd(node_count=count, content_bytes=size, digest=hasher.hexdigest())

    async def watch(
        self, call: Call, after: ChangeToken | int | None
    ) -> AsyncGenerator[WatchedChange | WatchIdle, None]:
        """Every change set after a revision (default: from now on), in order, without gaps, for ever.

        A `ChangeToken` also names the history that the watcher has followed. An idle report comes after what was
        there at the start, and whenever a few seconds went by without a change.

        Raises: HISTORY_CHANGED (expected, actual) if the namespace has another history, then or later;
        REVISION_NOT_FOUND if it has not got as far as `after`.
        """
        head = await self._store.head(call.namespace)
        if isinstance(after, ChangeToken) and after.history_id != head.history_id:
            raise _history_changed(after.history_id, head.history_id)
        seen = head.revision if after is None else after if isinstance(after, int) else after.namespace_revision
        if seen > head.revision:
            raise _namespace_revision_not_found(seen, head.revision)
        history_id = head.history_id
        while True:
            found = await self._store.list_change_sets(call.namespace, after_revision=seen, limit=WATCH_BATCH)
            if found:
                nodes = await self._store.revisions_committed_at(
                    call.namespace, {record.namespace_revision for record in found}
                )
                for record in found:
                    seen = record.namespace_revision
                    yield WatchedChange(
                        token=ChangeToken(history_id=history_id, namespace_revision=seen),
                        change_set=record,
                        nodes=tuple(nodes.get(seen, ())),
                    )
                continue
            yield WatchIdle(token=ChangeToken(history_id=history_id, namespace_revision=seen))
            await self._store.wait_for_change(call.namespace, seen)
            head = await self._store.head(call.namespace)
            if head.history_id != history_id:
                raise _history_changed(history_id, head.history_id)


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


def _history_changed(expected: str, actual: str) -> DomainError:
    return DomainError(
        Reason.HISTORY_CHANGED,
        "the namespace does not continue the history that was named; read it afresh",
        expected=expected,
        actual=actual,
    )
