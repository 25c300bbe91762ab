"""RecallService on the wire."""

from __future__ import annotations

from typing import Any

import grpc

from durable_memory.app.access import AccessService
from durable_memory.app.call import Call
from durable_memory.app.recall import RecallService
from durable_memory.app.recall_result import RecallAnswer
from durable_memory.app.repository import RepositoryReader
from durable_memory.domain.access import UsageSummary
from durable_memory.domain.canonical import JsonObject
from durable_memory.domain.lexical.query import LexicalFilter
from durable_memory.domain.limits import BATCH_MAX_ITEMS
from durable_memory.domain.node import NodeRef
from durable_memory.domain.session import RecallMode
from durable_memory.domain.text import check_name
from durable_memory.rpc.decode.access import decode_admissions, decode_uses
from durable_memory.rpc.decode.fields import hex_digest, names
from durable_memory.rpc.decode.recall import decode_filter, decode_mode
from durable_memory.rpc.decode.session import decode_policy
from durable_memory.rpc.encode.access import encode_admission, encode_usage, encode_use
from durable_memory.rpc.encode.node import encode_token
from durable_memory.rpc.encode.recall import encode_explanation, fill_result
from durable_memory.rpc.interceptors.call import note_degradation
from durable_memory.rpc.listing import Listing
from durable_memory.rpc.request import authorised, keyed
from durablememory.v1 import recall_pb2
from durablememory.v1 import recall_service_pb2 as pb
from durablememory.v1.recall_service_pb2_grpc import RecallServiceServicer

Context = grpc.aio.ServicerContext[Any, Any]


class RecallServicer(RecallServiceServicer):
    """Finding memories, and recording which of them entered a model's input and were used."""

    def __init__(
        self, recall: RecallService, access: AccessService, repository: RepositoryReader, listing: Listing
    ) -> None:
        self._recall = recall
        self._access = access
        self._repository = repository
        self._listing = listing

    async def ActiveRecall(self, request: pb.ActiveRecallRequest, context: Context) -> pb.ActiveRecallResponse:
        rpc = "RecallService.ActiveRecall"
        call = authorised(rpc, request)
        session_id = check_name("session_id", request.session_id)
        filter = decode_filter(request)
        mode = decode_mode(request)
        if request.admit:
            return await self._admitted(rpc, call, request, session_id, filter, mode)
        answer = await self._recall.active(call, session_id, request.query, filter, mode)
        response = pb.ActiveRecallResponse(change_token=encode_token(answer.token))
        _fill(response.result, answer, with_surroundings=request.include_surroundings)
        return response

    async def _admitted(
        self,
        rpc: str,
        call: Call,
        request: pb.ActiveRecallRequest,
        session_id: str,
        filter: LexicalFilter,
        mode: RecallMode | None,
    ) -> pb.ActiveRecallResponse:
        context_id = hex_digest("context_id", request.context_id)
        mutation = keyed(call, rpc, request, request.request_id)
        admitted = await self._recall.active_admitted(mutation, session_id, context_id, request.query, filter, mode)
        response = pb.ActiveRecallResponse(
            change_token=encode_token(admitted.answer.token),
            admissions=[encode_admission(outcome) for outcome in admitted.admissions],
            next_context_id=admitted.next_context_id or "",
        )
        _fill(response.result, admitted.answer, with_surroundings=request.include_surroundings)
        return response

    async def PreviewRecall(self, request: pb.PreviewRecallRequest, context: Context) -> pb.PreviewRecallResponse:
        call = authorised("RecallService.PreviewRecall", request)
        answer = await self._recall.preview(call, request.query, decode_policy(request.policy), decode_filter(request))
        response = pb.PreviewRecallResponse(change_token=encode_token(answer.token))
        _fill(response.result, answer, with_surroundings=request.include_surroundings)
        return response

    async def ExplainRecall(self, request: pb.ExplainRecallRequest, context: Context) -> pb.ExplainRecallResponse:
        call = authorised("RecallService.ExplainRecall", request)
        session_id = check_name("session_id", request.session_id)
        node_id = check_name("node_id", request.node_id)
        explanation = await self._recall.explain(
            call, session_id, node_id, request.query, decode_filter(request), decode_mode(request)
        )
        return pb.ExplainRecallResponse(
            change_token=encode_token(explanation.token), explanation=encode_explanation(explanation)
        )

    async def AdmitMemories(self, request: pb.AdmitMemoriesRequest, context: Context) -> pb.AdmitMemoriesResponse:
        rpc = "RecallService.AdmitMemories"
        call = authorised(rpc, request)
        session_id = check_name("session_id", request.session_id)
        context_id = hex_digest("context_id", request.context_id)
        items = decode_admissions(request.items)
        mutation = keyed(call, rpc, request, request.request_id)
        recorded = await self._access.admit(mutation, session_id, context_id, items)
        return pb.AdmitMemoriesResponse(
            change_token=encode_token(recorded.token),
            outcomes=[encode_admission(outcome) for outcome in recorded.outcomes],
            next_context_id=recorded.next_context_id or "",
        )

    async def RecordUse(self, request: pb.RecordUseRequest, context: Context) -> pb.RecordUseResponse:
        rpc = "RecallService.RecordUse"
        call = authorised(rpc, request)
        session_id = check_name("session_id", request.session_id)
        context_id = hex_digest("context_id", request.context_id)
        items = decode_uses(request.items)
        mutation = keyed(call, rpc, request, request.request_id)
        recorded = await self._access.record_use(mutation, session_id, context_id, items)
        return pb.RecordUseResponse(
            change_token=encode_token(recorded.token),
            outcomes=[encode_use(outcome) for outcome in recorded.outcomes],
        )

    async def GetUsageSummary(self, request: pb.GetUsageSummaryRequest, context: Context) -> pb.GetUsageSummaryResponse:
        rpc = "RecallService.GetUsageSummary"
        call = authorised(rpc, request)
        node_ids = names("node_ids", request.node_ids, BATCH_MAX_ITEMS)
        start = self._listing.start(call, rpc, request)
        token = await self._repository.token(call)
        found = await self._access.usage(
            call, node_ids, after=NodeRef(start.text("after"), start.number("revision")), limit=start.limit + 1
        )
        page = self._listing.page(
            call,
            rpc,
            request,
            token,
            found[: start.limit],
            encode=encode_usage,
            key=_after_usage,
            more=len(found) > start.limit,
        )
        return pb.GetUsageSummaryResponse(
            change_token=encode_token(page.token), summaries=page.items, next_page_token=page.next_page_token
        )


def _fill(result: recall_pb2.RecallResult, answer: RecallAnswer, *, with_surroundings: bool) -> None:
    if answer.degradation is not None:
        note_degradation(answer.degradation.reason.name)
    fill_result(result, answer, with_surroundings=with_surroundings)


def _after_usage(summary: UsageSummary) -> JsonObject:
    return {"after": summary.node_id, "revision": summary.revision}
