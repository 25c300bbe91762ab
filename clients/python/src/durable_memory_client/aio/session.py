"""An open session: what it is bound to, and recalling in it."""

from __future__ import annotations

from typing import Unpack

from durable_memory_client.aio.calls import Calls, OnUnavailable
from durable_memory_client.aio.run import MemoryRun
from durable_memory_client.aio.transport import Gate
from durable_memory_client.call_policy import Limit
from durable_memory_client.errors import MemoryUnavailableError
from durable_memory_client.identity import new_request_id
from durable_memory_client.values.enums import OpenSessionOutcome, RecallMode
from durable_memory_client.values.namespace import Namespace
from durable_memory_client.values.recall import Explanation, Recall, RecallFilter, filter_to_proto
from durable_memory_client.values.session import PolicyFields, Session, policy_to_proto
from durable_memory_client.values.wire import optional_number, stated
from durablememory.v1 import recall_service_pb2, session_service_pb2


class MemorySession:
    """A binding of the caller to one namespace and one recall policy. It outlives this object and this process."""

    def __init__(
        self,
        calls: Calls,
        namespace: Namespace,
        opened: Session | session_service_pb2.OpenSessionRequest,
        *,
        on_unavailable: OnUnavailable | None = None,
    ) -> None:
        self._calls = calls
        self._namespace = namespace
        self._on_unavailable = on_unavailable
        self._gate = Gate()
        self._info: Session | None = None
        self._opening: session_service_pb2.OpenSessionRequest | None = None
        self.outcome: OpenSessionOutcome | None = None
        """Whether opening it made a new one; None for a resumed session, and until it is open."""
        if isinstance(opened, Session):
            self._info = opened
        else:
            # Whoever opens it later, after an outage, repeats this very request.
            opened.request_id = opened.request_id or new_request_id()
            opened.session_id = opened.session_id or new_request_id()
            self._opening = opened
        self._session_id = opened.session_id

    @property
    def info(self) -> Session:
        """The session as the service has it. Raises: RuntimeError while an outage has kept it from being opened."""
        if self._info is None:
            raise RuntimeError("the session is not open yet: the service could not be reached")
        return self._info

    @property
    def session_id(self) -> str:
        return self._session_id

    @property
    def namespace(self) -> Namespace:
        return self._namespace if self._info is None else self._info.binding.namespace

    @property
    def on_unavailable(self) -> OnUnavailable:
        return self._on_unavailable or self._calls.on_unavailable

    async def open(self, *, timeout: float | None = None) -> None:
        """Open it unless it is open. With `on_unavailable="empty"` an outage is left to the next recall."""

        async def opening(limit: Limit) -> None:
            await self.ensure_open(limit)

        await self._calls.guarded(self._on_unavailable, timeout, opening)

    async def ensure_open(self, limit: Limit) -> Session:
        """The open session. Raises: MemoryServiceError."""
        if self._info is not None:
            return self._info
        async with self._gate.entered(limit):
            if self._info is None:
                assert self._opening is not None
                response = await self._calls.unary(self._opening, session_service_pb2.OpenSessionResponse, limit=limit)
                self.outcome = OpenSessionOutcome.from_number(response.outcome)
                self._info = Session.from_proto(response.session)
            return self._info

    def run(self, run_id: str | None = None, *, request_id: str | None = None) -> MemoryRun:
        """A run: one turn, task or process of an agent. It begins and ends with the block:

            async with session.run("turn-7") as run: ...

        A run id that another process left open is taken over. Without a `run_id` a new one is minted.

        If the answer to its beginning was lost, begin it again with the same `run_id` and the error's `request_id`.
        """
        return MemoryRun(self._calls, self, run_id, request_id)

    async def recall(
        self,
        query: str,
        *,
        filter: RecallFilter | None = None,
        mode: RecallMode | None = None,
        include_surroundings: bool = False,
        on_unavailable: OnUnavailable | None = None,
        timeout: float | None = None,
    ) -> Recall:
        """Recall outside a run: nothing is recorded, and so nothing of it may enter a model's input.

        Raises: SessionClosedError, SemanticUnavailableError, NamespaceTooLargeError.
        """

        async def recalling(limit: Limit) -> Recall:
            session = await self.ensure_open(limit)
            response = await self._calls.unary(
                stated(
                    recall_service_pb2.ActiveRecallRequest,
                    namespace=session.binding.namespace.to_proto(),
                    session_id=session.session_id,
                    query=query,
                    filter=filter_to_proto(filter),
                    mode=optional_number(RecallMode, mode, "mode"),
                    include_surroundings=include_surroundings,
                ),
                recall_service_pb2.ActiveRecallResponse,
                limit=limit,
            )
            return Recall.from_proto(session.binding.namespace, response)

        found = await self._calls.guarded(on_unavailable or self._on_unavailable, timeout, recalling)
        return Recall(namespace=self.namespace, error=found) if isinstance(found, MemoryUnavailableError) else found

    async def explain(
        self,
        node_id: str,
        query: str,
        *,
        filter: RecallFilter | None = None,
        mode: RecallMode | None = None,
        timeout: float | None = None,
    ) -> Explanation:
        """Why a node is, or is not, among the hits of a recall in this session. Raises: NodeNotFoundError."""
        limit = Limit.usual(timeout)
        session = await self.ensure_open(limit)
        request = stated(
            recall_service_pb2.ExplainRecallRequest,
            namespace=session.binding.namespace.to_proto(),
            session_id=session.session_id,
            node_id=node_id,
            query=query,
            filter=filter_to_proto(filter),
            mode=optional_number(RecallMode, mode, "mode"),
        )
        response = await self._calls.unary(request, recall_service_pb2.ExplainRecallResponse, limit=limit)
        return Explanation.from_proto(response)

    async def rebind(
        self,
        *,
        expected_binding_digest: str | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
        **policy: Unpack[PolicyFields],
    ) -> Session:
        """Bind the session to another policy; what is left out takes the server's default, not the old value.

        Raises: BindingDriftError, if it is no longer bound to what this object (or the stated digest) says.
        """
        limit = Limit.usual(timeout)
        session = await self.ensure_open(limit)
        request = stated(
            session_service_pb2.RebindSessionRequest,
            namespace=session.binding.namespace.to_proto(),
            request_id=request_id,
            session_id=session.session_id,
            expected_binding_digest=expected_binding_digest or session.binding_digest,
            policy=policy_to_proto(policy),
        )
        response = await self._calls.unary(request, session_service_pb2.RebindSessionResponse, limit=limit)
        self._info = Session.from_proto(response.session)
        return self._info

    async def close(self, *, request_id: str | None = None, timeout: float | None = None) -> Session:
        """Close the session for ever: calls in it and its runs are refused. To merely stop using it, do nothing."""
        limit = Limit.usual(timeout)
        session = await self.ensure_open(limit)
        request = stated(
            session_service_pb2.CloseSessionRequest,
            namespace=session.binding.namespace.to_proto(),
            request_id=request_id,
            session_id=session.session_id,
        )
        response = await self._calls.unary(request, session_service_pb2.CloseSessionResponse, limit=limit)
        self._info = Session.from_proto(response.session)
        return self._info
