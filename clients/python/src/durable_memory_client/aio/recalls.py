"""The parts of the recall service that need no session, on one namespace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from durable_memory_client.aio.calls import Calls
from durable_memory_client.aio.paging import Page, Pages
from durable_memory_client.values.access import UsageSummary
from durable_memory_client.values.namespace import ChangeToken, Namespace
from durable_memory_client.values.recall import Recall, RecallFilter, filter_to_proto
from durable_memory_client.values.session import PolicyFields, policy_to_proto
from durable_memory_client.values.wire import stated
from durablememory.v1 import recall_service_pb2 as pb


class RecallCalls:
    """Previews and usage. To recall for a model, open a session and begin a run."""

    _calls: Calls
    _namespace: Namespace

    async def preview(
        self,
        query: str,
        *,
        filter: RecallFilter | None = None,
        include_surroundings: bool = False,
        timeout: float | None = None,
        **policy: Unpack[PolicyFields],
    ) -> Recall:
        """Recall without a session, by a policy of this call, for people and tools.

        Nothing is recorded, and so nothing of it may enter a model's input.

        Raises: SemanticUnavailableError, NamespaceTooLargeError.
        """
        request = stated(
            pb.PreviewRecallRequest,
            namespace=self._namespace.to_proto(),
            query=query,
            policy=policy_to_proto(policy),
            filter=filter_to_proto(filter),
            include_surroundings=include_surroundings,
        )
        response = await self._calls.unary(request, pb.PreviewRecallResponse, timeout=timeout)
        return Recall.from_proto(self._namespace, response)

    def usage(
        self, node_ids: Sequence[str] = (), *, page_size: int = 0, timeout: float | None = None
    ) -> Pages[UsageSummary]:
        """Admissions and uses per node revision, of some nodes (at most 128) or of all that have any."""

        async def fetch(page_token: str) -> Page[UsageSummary]:
            request = stated(
                pb.GetUsageSummaryRequest,
                namespace=self._namespace.to_proto(),
                node_ids=node_ids,
                page_size=page_size,
                page_token=page_token,
            )
            response = await self._calls.unary(request, pb.GetUsageSummaryResponse, timeout=timeout)
            return Page(
                items=tuple(map(UsageSummary.from_proto, response.summaries)),
                next_page_token=response.next_page_token,
                change_token=ChangeToken.from_proto(response.change_token),
            )

        return Pages(fetch)
