"""The semantic service, on one namespace: the vector index behind recall by meaning."""

from __future__ import annotations

from datetime import timedelta

from durable_memory_client.aio.calls import Calls
from durable_memory_client.aio.paging import Page, Pages
from durable_memory_client.aio.refresh import Refresh
from durable_memory_client.values.enums import IndexConsistency
from durable_memory_client.values.namespace import Namespace
from durable_memory_client.values.semantic import IndexStatus, MaintenanceHealth, RefreshReceipt, RefreshSchedule
from durable_memory_client.values.times import to_duration
from durable_memory_client.values.wire import number_of, stated
from durablememory.v1 import semantic_service_pb2 as pb


class SemanticCalls:
    """Nobody has to call these for recall to be right: the service keeps the index up to date by itself.

    All of them raise SemanticUnavailableError where the server has no semantic generation.
    """

    _calls: Calls
    _namespace: Namespace

    def refresh_semantic_recall(
        self,
        session_id: str,
        *,
        requirement: IndexConsistency = IndexConsistency.INDEX_REVISION_CAS,
        rebuild: bool = False,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Refresh:
        """Make the index cover every ACTIVE memory: wait for the result, or iterate it.

        The session says which generation you count on. `rebuild` writes every segment anew, from cached vectors.
        Without a `timeout`, in seconds, it takes as long as it takes.
        """
        request = stated(
            pb.RefreshSemanticRecallRequest,
            namespace=self._namespace.to_proto(),
            request_id=request_id,
            session_id=session_id,
            requirement=number_of(IndexConsistency, requirement, "requirement"),
            rebuild=rebuild,
        )
        return Refresh(self._calls, request, timeout)

    async def get_index_status(self, *, timeout: float | None = None) -> IndexStatus:
        """How the index stands, and how many ACTIVE memories it does not cover."""
        request = stated(pb.GetIndexStatusRequest, namespace=self._namespace.to_proto())
        response = await self._calls.unary(request, pb.GetIndexStatusResponse, timeout=timeout)
        return IndexStatus.from_proto(response.status)

    def list_receipts(self, *, page_size: int = 0, timeout: float | None = None) -> Pages[RefreshReceipt]:
        """The receipts of all refreshes, newest first."""

        async def fetch(page_token: str) -> Page[RefreshReceipt]:
            request = stated(
                pb.ListReceiptsRequest, namespace=self._namespace.to_proto(), page_size=page_size, page_token=page_token
            )
            response = await self._calls.unary(request, pb.ListReceiptsResponse, timeout=timeout)
            return Page(
                items=tuple(map(RefreshReceipt.from_proto, response.receipts)),
                next_page_token=response.next_page_token,
            )

        return Pages(fetch)

    async def clear_partition(self, *, request_id: str | None = None, timeout: float | None = None) -> RefreshReceipt:
        """Forget what is published. Memories are not touched; the next refresh builds it from cached vectors.

        Raises: LeaseHeldError (a refresh is running), LeaseFencedError.
        """
        request = stated(pb.ClearPartitionRequest, namespace=self._namespace.to_proto(), request_id=request_id)
        response = await self._calls.unary(request, pb.ClearPartitionResponse, timeout=timeout)
        return RefreshReceipt.from_proto(response.receipt)

    async def set_schedule(
        self,
        *,
        interval: timedelta | None = None,
        on_change_delay: timedelta | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> RefreshSchedule:
        """When the index is refreshed by itself from now on, each from 1 second to 366 days; None switches it off.

        Raises: InvalidFieldError.
        """
        request = stated(
            pb.SetScheduleRequest,
            namespace=self._namespace.to_proto(),
            request_id=request_id,
            interval=to_duration(interval),
            on_change_delay=to_duration(on_change_delay),
        )
        response = await self._calls.unary(request, pb.SetScheduleResponse, timeout=timeout)
        return RefreshSchedule.from_proto(response.schedule)

    async def get_maintenance_health(self, *, timeout: float | None = None) -> MaintenanceHealth:
        """How the maintenance of the answering process is doing, and what became of the namespace's refreshes."""
        request = stated(pb.GetMaintenanceHealthRequest, namespace=self._namespace.to_proto())
        response = await self._calls.unary(request, pb.GetMaintenanceHealthResponse, timeout=timeout)
        return MaintenanceHealth.from_proto(response)
