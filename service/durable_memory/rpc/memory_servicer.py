"""MemoryService on the wire."""

from __future__ import annotations

from typing import Any, Final, Protocol

import grpc

from durable_memory.app.memories import MANUAL_BY_CALLER, MemoryOutcome, MemoryService, WriteOptions
from durable_memory.app.repository import RepositoryReader
from durable_memory.domain.change_set import NodeDraft, ReviseMode
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import invalid_field
from durable_memory.domain.text import check_name
from durable_memory.rpc.change_paths import paths_of_request
from durable_memory.rpc.decode.citation import required_citation
from durable_memory.rpc.decode.evidence import BESIDE_A_DECISION, decode_decision, decode_evidence
from durable_memory.rpc.decode.fields import enum, namespace_revision, optional_name, optional_namespace_revision
from durable_memory.rpc.decode.memory import decode_draft
from durable_memory.rpc.decode.operations import decode_changes
from durable_memory.rpc.encode.enums import number
from durable_memory.rpc.encode.node import encode_citation, encode_node, encode_token
from durable_memory.rpc.request import authorised, keyed
from durablememory.v1 import memory_service_pb2 as pb
from durablememory.v1.decision_pb2 import Decision
from durablememory.v1.memory_service_pb2_grpc import MemoryServiceServicer
from durablememory.v1.node_pb2 import MemoryDraft

Context = grpc.aio.ServicerContext[Any, Any]

_REMEMBER: Final = {
    MemoryOutcome.CREATED: pb.REMEMBER_OUTCOME_CREATED,
    MemoryOutcome.UNCHANGED: pb.REMEMBER_OUTCOME_UNCHANGED,
}
_PUT: Final = {
    MemoryOutcome.CREATED: pb.PUT_MEMORY_OUTCOME_CREATED,
    MemoryOutcome.REVISED: pb.PUT_MEMORY_OUTCOME_REVISED,
    MemoryOutcome.UNCHANGED: pb.PUT_MEMORY_OUTCOME_UNCHANGED,
}
_REACTIVATE: Final = {
    MemoryOutcome.REACTIVATED: pb.REACTIVATE_MEMORY_OUTCOME_REACTIVATED,
    MemoryOutcome.UNCHANGED: pb.REACTIVATE_MEMORY_OUTCOME_UNCHANGED,
}


class MemoryServicer(MemoryServiceServicer):
    """What a person or agent does with one memory in one call."""

    def __init__(self, memories: MemoryService, repository: RepositoryReader) -> None:
        self._memories = memories
        self._repository = repository

    async def Remember(self, request: pb.RememberRequest, context: Context) -> pb.RememberResponse:
        rpc = "MemoryService.Remember"
        call = authorised(rpc, request)
        draft = _draft(request)
        node_id = optional_name("", request, "node_id")
        options = WriteOptions(
            decision=_options(request).decision,
            expected_namespace_revision=optional_namespace_revision(request, "expected_namespace_revision"),
        )
        mutation = keyed(call, rpc, request, request.request_id)
        with paths_of_request():
            result = await self._memories.remember(mutation, node_id, draft, options)
        return pb.RememberResponse(
            change_token=encode_token(result.token),
            outcome=_REMEMBER[result.outcome],
            citation=encode_citation(Citation.of(result.node)),
        )

    async def PutMemory(self, request: pb.PutMemoryRequest, context: Context) -> pb.PutMemoryResponse:
        rpc = "MemoryService.PutMemory"
        call = authorised(rpc, request)
        node_id = check_name("node_id", request.node_id)
        draft = _draft(request)
        mode = ReviseMode.CORRECTION
        if request.HasField("revision_kind"):
            mode = enum("revision_kind", ReviseMode, request.revision_kind)
        expected = None
        if request.HasField("expected_revision"):
            expected = namespace_revision("expected_revision", request.expected_revision)
        options = _options(request)
        mutation = keyed(call, rpc, request, request.request_id)
        with paths_of_request():
            result = await self._memories.put(mutation, node_id, draft, options, mode=mode, expected_revision=expected)
        return pb.PutMemoryResponse(
            change_token=encode_token(result.token),
            outcome=_PUT[result.outcome],
            citation=encode_citation(Citation.of(result.node)),
        )

    async def ReviseMemory(self, request: pb.ReviseMemoryRequest, context: Context) -> pb.ReviseMemoryResponse:
        rpc = "MemoryService.ReviseMemory"
        call = authorised(rpc, request)
        citation = required_citation("citation", request)
        changes = decode_changes(
            "",
            request,
            node_id=citation.node_id,
            expected_revision=citation.revision,
            mode=enum("revision_kind", ReviseMode, request.revision_kind),
            least_evidence=0,
            most_evidence=BESIDE_A_DECISION,
        )
        options = _options(request)
        mutation = keyed(call, rpc, request, request.request_id)
        with paths_of_request():
            result = await self._memories.revise(mutation, citation, changes, options)
        return pb.ReviseMemoryResponse(
            change_token=encode_token(result.token), citation=encode_citation(Citation.of(result.node))
        )

    async def RetireMemory(self, request: pb.RetireMemoryRequest, context: Context) -> pb.RetireMemoryResponse:
        rpc = "MemoryService.RetireMemory"
        call = authorised(rpc, request)
        citation = required_citation("citation", request)
        evidence = decode_evidence("evidence", request.evidence, most=BESIDE_A_DECISION)
        options = _options(request)
        mutation = keyed(call, rpc, request, request.request_id)
        with paths_of_request():
            result = await self._memories.retire(mutation, citation, evidence, options)
        return pb.RetireMemoryResponse(
            change_token=encode_token(result.token), citation=encode_citation(Citation.of(result.node))
        )

    async def ReactivateMemory(
        self, request: pb.ReactivateMemoryRequest, context: Context
    ) -> pb.ReactivateMemoryResponse:
        rpc = "MemoryService.ReactivateMemory"
        call = authorised(rpc, request)
        citation = required_citation("citation", request)
        evidence = decode_evidence("evidence", request.evidence, most=BESIDE_A_DECISION)
        options = _options(request)
        mutation = keyed(call, rpc, request, request.request_id)
        with paths_of_request():
            result = await self._memories.reactivate(mutation, citation, evidence, options)
        return pb.ReactivateMemoryResponse(
            change_token=encode_token(result.token),
            outcome=_REACTIVATE[result.outcome],
            citation=encode_citation(Citation.of(result.node)),
        )

    async def SupersedeMemory(self, request: pb.SupersedeMemoryRequest, context: Context) -> pb.SupersedeMemoryResponse:
        rpc = "MemoryService.SupersedeMemory"
        call = authorised(rpc, request)
        citation = required_citation("citation", request)
        draft = _draft(request)
        node_id = optional_name("", request, "node_id")
        options = _options(request)
        mutation = keyed(call, rpc, request, request.request_id)
        with paths_of_request():
            result = await self._memories.supersede(mutation, citation, node_id, draft, options)
        if result.superseded is None:
            raise AssertionError("superseding always has a superseded revision")
        return pb.SupersedeMemoryResponse(
            change_token=encode_token(result.token),
            citation=encode_citation(Citation.of(result.node)),
            superseded_citation=encode_citation(Citation.of(result.superseded)),
        )

    async def GetMemory(self, request: pb.GetMemoryRequest, context: Context) -> pb.GetMemoryResponse:
        call = authorised("MemoryService.GetMemory", request)
        citation = required_citation("citation", request)
        node = await self._memories.get(call, citation)
        # Read after the cited revision, so that the current one is never older than it.
        token, current = await self._repository.node(call, citation.node_id)
        return pb.GetMemoryResponse(
            change_token=encode_token(token),
            node=encode_node(node),
            current_citation=encode_citation(Citation.of(current)),
            current_status=number(current.status),
        )


class _Stated(Protocol):
    """Requests that state a memory."""

    @property
    def memory(self) -> MemoryDraft: ...

    def HasField(self, field_name: Any) -> bool: ...


class _Decided(Protocol):
    """Requests that carry a decision."""

    @property
    def decision(self) -> Decision: ...

    def HasField(self, field_name: Any) -> bool: ...


def _draft(request: _Stated) -> NodeDraft:
    if not request.HasField("memory"):
        raise invalid_field("memory", "is missing")
    return decode_draft("memory", request.memory, most_evidence=BESIDE_A_DECISION)


def _options(request: _Decided) -> WriteOptions:
    decided = request.HasField("decision")
    return WriteOptions(decision=decode_decision("decision", request.decision) if decided else MANUAL_BY_CALLER)
