"""RepositoryService on the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Final

import grpc

from durable_memory.app.call import Call
from durable_memory.app.change_sets import ChangeSetService
from durable_memory.app.repository import RepositoryReader, SnapshotEnd, WatchedChange
from durable_memory.domain.canonical import JsonObject
from durable_memory.domain.change_set import ChangeSet, ChangeSetRecord
from durable_memory.domain.errors import invalid_field
from durable_memory.domain.limits import BATCH_MAX_ITEMS, NOTE_MAX_BYTES
from durable_memory.domain.node import NodeKind, NodeRevision, NodeStatus
from durable_memory.domain.state import ChangeToken
from durable_memory.domain.text import check_name, check_text
from durable_memory.ports.store import NodeSelection
from durable_memory.rpc.decode.citation import decode_target
from durable_memory.rpc.decode.fields import (
    distinct,
    enums,
    label_filter,
    names,
    namespace_revision,
    optional_namespace_revision,
    optional_time,
    revision,
    some,
)
from durable_memory.rpc.decode.operations import MintId, decode_operations
from durable_memory.rpc.encode.change_set import encode_change_set
from durable_memory.rpc.encode.enums import number
from durable_memory.rpc.encode.node import encode_namespace, encode_node, encode_token
from durable_memory.rpc.listing import Listing
from durable_memory.rpc.request import authorised, keyed
from durablememory.v1 import change_set_pb2, node_pb2
from durablememory.v1 import repository_service_pb2 as pb
from durablememory.v1.repository_service_pb2_grpc import RepositoryServiceServicer

Context = grpc.aio.ServicerContext[Any, Any]

_APPLY: Final = "ApplyChangeSet"


class RepositoryServicer(RepositoryServiceServicer):
    """Change sets in, nodes and their whole history out."""

    def __init__(
        self,
        change_sets: ChangeSetService,
        repository: RepositoryReader,
        listing: Listing,
        mint_id: MintId,
        max_response_bytes: int,
    ) -> None:
        self._change_sets = change_sets
        self._repository = repository
        self._listing = listing
        self._mint_id = mint_id
        self._max_response_bytes = max_response_bytes

    async def ApplyChangeSet(self, request: pb.ApplyChangeSetRequest, context: Context) -> pb.ApplyChangeSetResponse:
        rpc = "RepositoryService.ApplyChangeSet"
        call = authorised(rpc, request)
        change_set = ChangeSet(
            operations=decode_operations(request.operations, self._mint_id),
            occurred_at=optional_time("", request, "occurred_at"),
            expected_namespace_revision=optional_namespace_revision(request, "expected_namespace_revision"),
            note=check_text("note", request.note, NOTE_MAX_BYTES, blank_allowed=True),
        )
        mutation = keyed(call, rpc, request, request.request_id)
        applied = await self._change_sets.apply(mutation, change_set)
        return pb.ApplyChangeSetResponse(
            change_token=encode_token(applied.token), change_set=encode_change_set(call.namespace, applied.record)
        )

    async def GetNode(self, request: pb.GetNodeRequest, context: Context) -> pb.GetNodeResponse:
        call = authorised("RepositoryService.GetNode", request)
        node_id = check_name("node_id", request.node_id)
        at_revision = optional_namespace_revision(request, "at_namespace_revision")
        token, node = await self._repository.node(call, node_id, at_revision)
        return pb.GetNodeResponse(change_token=encode_token(token), node=encode_node(node))

    async def BatchGetNodes(self, request: pb.BatchGetNodesRequest, context: Context) -> pb.BatchGetNodesResponse:
        call = authorised("RepositoryService.BatchGetNodes", request)
        some("node_ids", request.node_ids, BATCH_MAX_ITEMS)
        node_ids = names("node_ids", request.node_ids, BATCH_MAX_ITEMS)
        distinct("node_ids", node_ids)
        at_revision = optional_namespace_revision(request, "at_namespace_revision")
        token, found = await self._repository.nodes(call, node_ids, at_revision)
        return pb.BatchGetNodesResponse(
            change_token=encode_token(token),
            nodes=[
                encode_node(
                    found[node_id],
                    with_content=not request.omit_content,
                    with_surroundings=request.include_surroundings,
                )
                for node_id in node_ids
                if node_id in found
            ],
            missing_node_ids=[node_id for node_id in node_ids if node_id not in found],
        )

    async def ListNodes(self, request: pb.ListNodesRequest, context: Context) -> pb.ListNodesResponse:
        rpc = "RepositoryService.ListNodes"
        call = authorised(rpc, request)
        selection = NodeSelection(
            statuses=enums("statuses", NodeStatus, request.statuses),
            kinds=enums("kinds", NodeKind, request.kinds),
            labels=label_filter("labels", request.labels),
        )
        page = await self._listing.nodes(
            call,
            rpc,
            request,
            selection,
            at_revision=optional_namespace_revision(request, "at_namespace_revision"),
            with_content=not request.omit_content,
            with_surroundings=request.include_surroundings,
        )
        return pb.ListNodesResponse(
            change_token=encode_token(page.token), nodes=page.items, next_page_token=page.next_page_token
        )

    async def ListRevisions(self, request: pb.ListRevisionsRequest, context: Context) -> pb.ListRevisionsResponse:
        rpc = "RepositoryService.ListRevisions"
        call = authorised(rpc, request)
        node_id = check_name("node_id", request.node_id)
        start = self._listing.start(call, rpc, request)
        found = await self._repository.list_revisions(
            call, node_id, after_revision=start.number("after"), limit=start.limit
        )
        token = start.pinned(found.token)
        revisions = [node for node in found.nodes if node.valid_from <= token.namespace_revision]

        def encode(node: NodeRevision) -> node_pb2.Node:
            return encode_node(node, with_content=not request.omit_content)

        page = self._listing.page(
            call,
            rpc,
            request,
            token,
            revisions,
            encode=encode,
            key=_after_revision,
            more=found.more and len(revisions) == len(found.nodes),
        )
        return pb.ListRevisionsResponse(
            change_token=encode_token(page.token), revisions=page.items, next_page_token=page.next_page_token
        )

    async def GetRevision(self, request: pb.GetRevisionRequest, context: Context) -> pb.GetRevisionResponse:
        call = authorised("RepositoryService.GetRevision", request)
        token, node = await self._repository.revision(call, decode_target("", request))
        return pb.GetRevisionResponse(change_token=encode_token(token), node=encode_node(node))

    async def ListChangeSets(self, request: pb.ListChangeSetsRequest, context: Context) -> pb.ListChangeSetsResponse:
        rpc = "RepositoryService.ListChangeSets"
        call = authorised(rpc, request)
        after = namespace_revision("after_namespace_revision", request.after_namespace_revision)
        start = self._listing.start(call, rpc, request)
        found = await self._repository.list_change_sets(
            call, after_revision=start.number("after", after), limit=start.limit
        )
        token = start.pinned(found.token)
        records = [record for record in found.change_sets if record.namespace_revision <= token.namespace_revision]

        def encode(record: ChangeSetRecord) -> change_set_pb2.ChangeSet:
            return encode_change_set(call.namespace, record)

        page = self._listing.page(
            call,
            rpc,
            request,
            token,
            records,
            encode=encode,
            key=_after_change_set,
            more=found.more and len(records) == len(found.change_sets),
        )
        return pb.ListChangeSetsResponse(
            change_token=encode_token(page.token), change_sets=page.items, next_page_token=page.next_page_token
        )

    async def GetChangeSet(self, request: pb.GetChangeSetRequest, context: Context) -> pb.GetChangeSetResponse:
        call = authorised("RepositoryService.GetChangeSet", request)
        selector = request.WhichOneof("selector")
        if selector == "namespace_revision":
            made = revision("namespace_revision", request.namespace_revision)
            token, record = await self._repository.change_set(call, made)
        elif selector == "key":
            key = check_name("key.idempotency_key", request.key.idempotency_key)
            method = check_name("key.method", request.key.method) if request.key.method else _APPLY
            token, record = await self._repository.change_set_of(call, method, key)
        else:
            raise invalid_field("selector", "is missing: state a namespace revision or a key")
        return pb.GetChangeSetResponse(
            change_token=encode_token(token), change_set=encode_change_set(call.namespace, record)
        )

    async def Snapshot(self, request: pb.SnapshotRequest, context: Context) -> AsyncIterator[pb.SnapshotResponse]:
        call = authorised("RepositoryService.Snapshot", request)
        statuses = enums("statuses", NodeStatus, request.statuses)
        at_revision = optional_namespace_revision(request, "at_namespace_revision")
        async with aclosing(self._repository.snapshot(call, statuses, at_revision)) as parts:
            async for part in parts:
                if isinstance(part, NodeRevision):
                    yield pb.SnapshotResponse(node=encode_node(part, with_content=not request.omit_content))
                elif isinstance(part, SnapshotEnd):
                    yield pb.SnapshotResponse(
                        footer=pb.SnapshotFooter(
                            node_count=part.node_count, content_bytes=part.content_bytes, digest=part.digest
                        )
                    )
                else:
                    yield pb.SnapshotResponse(
                        header=pb.SnapshotHeader(
                            namespace=encode_namespace(call.namespace),
                            change_token=encode_token(part),
                            statuses=[number(status) for status in sorted(statuses or NodeStatus)],
                        )
                    )

    async def GetChangeToken(self, request: pb.GetChangeTokenRequest, context: Context) -> pb.GetChangeTokenResponse:
        call = authorised("RepositoryService.GetChangeToken", request)
        return pb.GetChangeTokenResponse(change_token=encode_token(await self._repository.token(call)))

    async def WatchNamespace(
        self, request: pb.WatchNamespaceRequest, context: Context
    ) -> AsyncIterator[pb.WatchNamespaceResponse]:
        call = authorised("RepositoryService.WatchNamespace", request)
        after = await self._watched_from(call, request)
        first = True
        async with aclosing(self._repository.watch(call, after, with_nodes=request.include_nodes)) as events:
            async for event in events:
                if first or not isinstance(event, WatchedChange):
                    # The first one comes before any change, and once the history is known to be the right one: from
                    # it the caller knows that the watch stands, and where.
                    yield _heartbeat(after if first else event.token)
                if isinstance(event, WatchedChange):
                    yield self._change(call, event)
                first = False

    async def _watched_from(self, call: Call, request: pb.WatchNamespaceRequest) -> ChangeToken:
        after = optional_namespace_revision(request, "after_namespace_revision")
        history_id = check_name("history_id", request.history_id) if request.HasField("history_id") else None
        head = await self._repository.token(call)
        return ChangeToken(
            history_id=head.history_id if history_id is None else history_id,
            namespace_revision=head.namespace_revision if after is None else after,
        )

    def _change(self, call: Call, event: WatchedChange) -> pb.WatchNamespaceResponse:
        message = pb.WatchNamespaceResponse(
            change=pb.WatchedChange(
                change_token=encode_token(event.token),
                change_set=encode_change_set(call.namespace, event.change_set),
                nodes=[encode_node(node) for node in event.nodes],
            )
        )
        if message.ByteSize() > self._max_response_bytes:
            for node in message.change.nodes:
                node.content = ""
                del node.surroundings[:]
        return message


def _heartbeat(token: ChangeToken) -> pb.WatchNamespaceResponse:
    return pb.WatchNamespaceResponse(heartbeat=pb.WatchHeartbeat(change_token=encode_token(token)))


def _after_revision(node: NodeRevision) -> JsonObject:
    return {"after": node.revision}


def _after_change_set(record: ChangeSetRecord) -> JsonObject:
    return {"after": record.namespace_revision}
