"""SemanticService on the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc

from durable_memory.app.repository import RepositoryReader
from durable_memory.app.semantic.current import CurrentGeneration
from durable_memory.app.semantic.refresh_progress import RefreshProgress, Report
from durable_memory.app.semantic.service import SemanticService
from durable_memory.domain.canonical import JsonObject
from durable_memory.domain.session import semantic_not_configured
from durable_memory.domain.text import check_name
from durable_memory.ports.semantic_records import Receipt
from durable_memory.rpc.decode.semantic import decode_requirement, optional_schedule_seconds
from durable_memory.rpc.encode.semantic import (
    encode_health,
    encode_maintenance_run,
    encode_progress,
    encode_receipt,
    encode_schedule,
    encode_status,
)
from durable_memory.rpc.listing import Listing, Start
from durable_memory.rpc.refresh_steps import steps_of
from durable_memory.rpc.request import authorised, keyed
from durablememory.v1 import semantic_service_pb2 as pb
from durablememory.v1.semantic_service_pb2_grpc import SemanticServiceServicer

Context = grpc.aio.ServicerContext[Any, Any]


class SemanticServicer(SemanticServiceServicer):
    """The vector index behind recall by meaning. Without `semantic`, there is none, and every RPC says so.

    No request id is looked up here: whatever is asked for twice is true after the first time.
    """

    def __init__(
        self,
        semantic: SemanticService | None,
        current: CurrentGeneration,
        repository: RepositoryReader,
        listing: Listing,
    ) -> None:
        self._configured = semantic
        self._current = current
        self._repository = repository
        self._listing = listing

    @property
    def _semantic(self) -> SemanticService:
        """Raises: SEMANTIC_UNAVAILABLE. So it is asked for after everything that the request itself decides."""
        if self._configured is None:
            raise semantic_not_configured(self._current.problem)
        return self._configured

    async def RefreshSemanticRecall(
        self, request: pb.RefreshSemanticRecallRequest, context: Context
    ) -> AsyncIterator[pb.RefreshSemanticRecallResponse]:
        rpc = "SemanticService.RefreshSemanticRecall"
        call = authorised(rpc, request)
        session_id = check_name("session_id", request.session_id)
        requirement = decode_requirement(request.requirement)
        mutation = keyed(call, rpc, request, request.request_id)
        semantic = self._semantic

        async def refresh(report: Report) -> Receipt:
            return await semantic.refresh(mutation, session_id, requirement, report, rebuild=request.rebuild)

        async with aclosing(steps_of(refresh)) as steps:
            async for step in steps:
                if isinstance(step, RefreshProgress):
                    yield pb.RefreshSemanticRecallResponse(progress=encode_progress(step))
                else:
                    yield pb.RefreshSemanticRecallResponse(receipt=encode_receipt(step))

    async def GetIndexStatus(self, request: pb.GetIndexStatusRequest, context: Context) -> pb.GetIndexStatusResponse:
        call = authorised("SemanticService.GetIndexStatus", request)
        return pb.GetIndexStatusResponse(status=encode_status(await self._semantic.status(call)))

    async def ListReceipts(self, request: pb.ListReceiptsRequest, context: Context) -> pb.ListReceiptsResponse:
        rpc = "SemanticService.ListReceipts"
        call = authorised(rpc, request)
        start = self._listing.start(call, rpc, request)
        found = await self._semantic.receipts(call, before=_before(start), limit=start.limit + 1)
        page = self._listing.page(
            call,
            rpc,
            request,
            await self._repository.token(call),
            found[: start.limit],
            encode=encode_receipt,
            key=_after_receipt,
            more=len(found) > start.limit,
        )
        return pb.ListReceiptsResponse(receipts=page.items, next_page_token=page.next_page_token)

    async def ClearPartition(self, request: pb.ClearPartitionRequest, context: Context) -> pb.ClearPartitionResponse:
        rpc = "SemanticService.ClearPartition"
        mutation = keyed(authorised(rpc, request), rpc, request, request.request_id)
        return pb.ClearPartitionResponse(receipt=encode_receipt(await self._semantic.clear(mutation)))

    async def SetSchedule(self, request: pb.SetScheduleRequest, context: Context) -> pb.SetScheduleResponse:
        rpc = "SemanticService.SetSchedule"
        call = authorised(rpc, request)
        interval = optional_schedule_seconds(request, "interval")
        delay = optional_schedule_seconds(request, "on_change_delay")
        mutation = keyed(call, rpc, request, request.request_id)
        schedule = await self._semantic.set_schedule(mutation, interval_seconds=interval, on_change_delay_seconds=delay)
        return pb.SetScheduleResponse(schedule=encode_schedule(schedule))

    async def GetMaintenanceHealth(
        self, request: pb.GetMaintenanceHealthRequest, context: Context
    ) -> pb.GetMaintenanceHealthResponse:
        call = authorised("SemanticService.GetMaintenanceHealth", request)
        maintenance = await self._semantic.maintenance(call)
        health, receipt = maintenance.health, maintenance.last_receipt
        return pb.GetMaintenanceHealthResponse(
            health=None if health is None else encode_health(health),
            last_receipt=None if receipt is None else encode_receipt(receipt),
            runs=[encode_maintenance_run(run) for run in maintenance.runs],
        )


def _before(start: Start) -> tuple[int, int, int] | None:
    return None if start.first else (start.number("fence"), start.number("index"), start.number("source"))


def _after_receipt(receipt: Receipt) -> JsonObject:
    fence, index_revision, source_revision = receipt.position
    return {"fence": fence, "index": index_revision, "source": source_revision}
