"""The repository service, on one namespace: change sets in, nodes and their whole history out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from durable_memory_client.aio.calls import Calls
from durable_memory_client.aio.paging import Page, Pages
from durable_memory_client.aio.snapshot import Snapshot
from durable_memory_client.aio.watch import Watch
from durable_memory_client.values.change_set import ChangeSet, Operation, operations_to_proto
from durable_memory_client.values.citation import Citable, NodeRevision, citation_of
from durable_memory_client.values.enums import NodeKind, NodeStatus
from durable_memory_client.values.memory import Node
from durable_memory_client.values.namespace import ChangeToken, Namespace
from durable_memory_client.values.times import to_timestamp
from durable_memory_client.values.wire import numbers_of, stated
from durablememory.v1 import repository_service_pb2 as pb


class RepositoryCalls:
    """Reads are pure, and answer for one namespace revision."""

    _calls: Calls
    _namespace: Namespace

    async def apply_change_set(
        self,
        operations: Iterable[Operation],
        *,
        occurred_at: datetime | None = None,
        expected_namespace_revision: int | None = None,
        note: str = "",
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> ChangeSet:
        """Apply 1..128 operations: all of them or none, once.

        Raises: RevisionConflictError, NodeNotFoundError, NodeAlreadyExistsError, NodeFrozenError,
        ChangeSetEmptyError, EvidenceRequiredError, InvalidTransitionError, RelationInvalidError,
        NamespaceTooLargeError.
        """
        request = stated(
            pb.ApplyChangeSetRequest,
            namespace=self._namespace.to_proto(),
            request_id=request_id,
            operations=operations_to_proto(operations),
            occurred_at=to_timestamp(occurred_at, "occurred_at"),
            expected_namespace_revision=expected_namespace_revision,
            note=note,
        )
        response = await self._calls.unary(request, pb.ApplyChangeSetResponse, timeout=timeout)
        return ChangeSet.from_proto(response.change_set)

    async def get_node(
        self, node_id: str, *, at_namespace_revision: int | None = None, timeout: float | None = None
    ) -> Node:
        """Read a node as it is, or as it was at a namespace revision.

        Raises: NodeNotFoundError (also when it did not exist yet), RevisionNotFoundError, HistoryCompactedError.
        """
        request = stated(
            pb.GetNodeRequest,
            namespace=self._namespace.to_proto(),
            node_id=node_id,
            at_namespace_revision=at_namespace_revision,
        )
        response = await self._calls.unary(request, pb.GetNodeResponse, timeout=timeout)
        return Node.from_proto(response.node)

    async def get_nodes(
        self,
        node_ids: Sequence[str],
        *,
        at_namespace_revision: int | None = None,
        omit_content: bool = False,
        include_surroundings: bool = False,
        timeout: float | None = None,
    ) -> dict[str, Node]:
        """Read up to 128 nodes at one namespace revision, by id; what does not exist is left out.

        Raises: RevisionNotFoundError, HistoryCompactedError.
        """
        request = stated(
            pb.BatchGetNodesRequest,
            namespace=self._namespace.to_proto(),
            node_ids=node_ids,
            at_namespace_revision=at_namespace_revision,
            omit_content=omit_content,
            include_surroundings=include_surroundings,
        )
        response = await self._calls.unary(request, pb.BatchGetNodesResponse, timeout=timeout)
        return {node.id: Node.from_proto(node) for node in response.nodes}

    def list_nodes(
        self,
        *,
        statuses: Sequence[NodeStatus] = (),
        kinds: Sequence[NodeKind] = (),
        labels: Mapping[str, str] | None = None,
        at_namespace_revision: int | None = None,
        omit_content: bool = False,
        include_surroundings: bool = False,
        page_size: int = 0,
        timeout: float | None = None,
    ) -> Pages[Node]:
        """The nodes of the namespace in id order, all pages at one namespace revision."""

        async def fetch(page_token: str) -> Page[Node]:
            request = stated(
                pb.ListNodesRequest,
                namespace=self._namespace.to_proto(),
                statuses=numbers_of(NodeStatus, statuses, "statuses"),
                kinds=numbers_of(NodeKind, kinds, "kinds"),
                labels=labels or {},
                at_namespace_revision=at_namespace_revision,
                omit_content=omit_content,
                include_surroundings=include_surroundings,
                page_size=page_size,
                page_token=page_token,
            )
            response = await self._calls.unary(request, pb.ListNodesResponse, timeout=timeout)
            return Page(
                items=tuple(map(Node.from_proto, response.nodes)),
                next_page_token=response.next_page_token,
                change_token=ChangeToken.from_proto(response.change_token),
            )

        return Pages(fetch)

    def list_revisions(
        self, node_id: str, *, omit_content: bool = False, page_size: int = 0, timeout: float | None = None
    ) -> Pages[Node]:
        """The revisions of a node, oldest first. Reading raises: NodeNotFoundError."""

        async def fetch(page_token: str) -> Page[Node]:
            request = stated(
                pb.ListRevisionsRequest,
                namespace=self._namespace.to_proto(),
                node_id=node_id,
                omit_content=omit_content,
                page_size=page_size,
                page_token=page_token,
            )
            response = await self._calls.unary(request, pb.ListRevisionsResponse, timeout=timeout)
            return Page(
                items=tuple(map(Node.from_proto, response.revisions)),
                next_page_token=response.next_page_token,
                change_token=ChangeToken.from_proto(response.change_token),
            )

        return Pages(fetch)

    async def get_revision(self, revision: Citable | NodeRevision, *, timeout: float | None = None) -> Node:
        """Read one exact revision of a node, however old. `get` also says what has become of it.

        Raises: NodeNotFoundError, RevisionNotFoundError, ContentErasedError.
        """
        request = stated(
            pb.GetRevisionRequest,
            namespace=self._namespace.to_proto(),
            citation=None if isinstance(revision, NodeRevision) else citation_of(revision).to_proto(),
            node_revision=revision.to_proto() if isinstance(revision, NodeRevision) else None,
        )
        response = await self._calls.unary(request, pb.GetRevisionResponse, timeout=timeout)
        return Node.from_proto(response.node)

    def list_change_sets(
        self, *, after_namespace_revision: int = 0, page_size: int = 0, timeout: float | None = None
    ) -> Pages[ChangeSet]:
        """The change sets after a namespace revision, oldest first. Reading raises: HistoryCompactedError."""

        async def fetch(page_token: str) -> Page[ChangeSet]:
            request = stated(
                pb.ListChangeSetsRequest,
                namespace=self._namespace.to_proto(),
                after_namespace_revision=after_namespace_revision,
                page_size=page_size,
                page_token=page_token,
            )
            response = await self._calls.unary(request, pb.ListChangeSetsResponse, timeout=timeout)
            return Page(
                items=tuple(map(ChangeSet.from_proto, response.change_sets)),
                next_page_token=response.next_page_token,
                change_token=ChangeToken.from_proto(response.change_token),
            )

        return Pages(fetch)

    async def get_change_set(
        self,
        namespace_revision: int | None = None,
        *,
        request_id: str | None = None,
        method: str = "ApplyChangeSet",
        timeout: float | None = None,
    ) -> ChangeSet:
        """Read one change set: by the namespace revision it made, or by the request id and bare method that made it.

        Raises: RevisionNotFoundError, HistoryCompactedError.
        """
        if (namespace_revision is None) == (request_id is None):
            raise ValueError("name the change set by either its namespace revision or its request id")
        request = stated(
            pb.GetChangeSetRequest,
            namespace=self._namespace.to_proto(),
            namespace_revision=namespace_revision,
            key=None if request_id is None else stated(pb.ChangeSetKey, method=method, idempotency_key=request_id),
        )
        response = await self._calls.unary(request, pb.GetChangeSetResponse, timeout=timeout)
        return ChangeSet.from_proto(response.change_set)

    async def get_change_token(self, *, timeout: float | None = None) -> ChangeToken:
        """Where the namespace stands."""
        request = stated(pb.GetChangeTokenRequest, namespace=self._namespace.to_proto())
        response = await self._calls.unary(request, pb.GetChangeTokenResponse, timeout=timeout)
        return ChangeToken.from_proto(response.change_token)

    def snapshot(
        self,
        *,
        statuses: Sequence[NodeStatus] = (),
        at_namespace_revision: int | None = None,
        omit_content: bool = False,
        timeout: float | None = None,
    ) -> Snapshot:
        """The complete view of the namespace at one revision, node by node.

        Reading raises: SnapshotTooLargeError, RevisionNotFoundError, HistoryCompactedError, IncompleteStreamError.
        """
        request = stated(
            pb.SnapshotRequest,
            namespace=self._namespace.to_proto(),
            statuses=numbers_of(NodeStatus, statuses, "statuses"),
            at_namespace_revision=at_namespace_revision,
            omit_content=omit_content,
        )
        return Snapshot(self._calls, request, timeout)

    def watch(
        self,
        after: ChangeToken | int | None = None,
        *,
        include_nodes: bool = False,
        give_up_after: float | None = None,
    ) -> Watch:
        """The changes of the namespace, in order and without gaps, across restarts of the service.

            async with memory.watch(after=token) as changes:
                async for change in changes: ...

        `after`: where to start; a token also makes sure that it is still the same history. Default: now. A lost
        stream is resumed after the last change that was read, for as long as it takes, or until the service was out
        of reach for `give_up_after` seconds.

        Reading raises: HistoryCompactedError, HistoryChangedError (start again from a snapshot),
        RevisionNotFoundError.
        """
        return Watch(self._calls, self._namespace, after, include_nodes=include_nodes, give_up_after=give_up_after)
