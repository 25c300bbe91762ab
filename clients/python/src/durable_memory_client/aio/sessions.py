"""The session service, on one namespace."""

from __future__ import annotations

from typing import Unpack

from durable_memory_client.aio.calls import Calls, OnUnavailable
from durable_memory_client.aio.paging import Page, Pages
from durable_memory_client.aio.session import MemorySession
from durable_memory_client.values.namespace import Namespace
from durable_memory_client.values.session import PolicyFields, Session, SessionBinding, policy_to_proto
from durable_memory_client.values.wire import stated
from durablememory.v1 import session_service_pb2 as pb


class SessionCalls:
    """Opening, resuming and reading sessions."""

    _calls: Calls
    _namespace: Namespace

    async def open_session(
        self,
        session_id: str | None = None,
        *,
        on_unavailable: OnUnavailable | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
        **policy: Unpack[PolicyFields],
    ) -> MemorySession:
        """Open a session, or get the open one with this id if it was opened by an equal call.

        What is left out of the policy takes the server's defaults, once, here. Without a `session_id` a new one is
        minted. `on_unavailable` holds for everything that recalls in the session; with "empty" an unreachable
        service does not fail this call: the session is opened by the first recall that reaches it.

        Raises: BindingDriftError (the id is open, by another request), SessionClosedError, SemanticUnavailableError.
        """
        session = MemorySession(
            self._calls,
            self._namespace,
            stated(
                pb.OpenSessionRequest,
                namespace=self._namespace.to_proto(),
                request_id=request_id,
                session_id=session_id,
                policy=policy_to_proto(policy),
            ),
            on_unavailable=on_unavailable,
        )
        await session.open(timeout=timeout)
        return session

    async def resume_session(
        self,
        session_id: str,
        expected: SessionBinding | str,
        *,
        on_unavailable: OnUnavailable | None = None,
        timeout: float | None = None,
    ) -> MemorySession:
        """Get an open session, if it is bound to exactly what is expected: a binding, or a binding's digest.

        Raises: SessionNotFoundError, SessionClosedError, BindingDriftError, SemanticUnavailableError.
        """
        request = stated(
            pb.ResumeSessionRequest,
            namespace=self._namespace.to_proto(),
            session_id=session_id,
            binding=None if isinstance(expected, str) else expected.to_proto(),
            binding_digest=expected if isinstance(expected, str) else None,
        )
        response = await self._calls.unary(request, pb.ResumeSessionResponse, timeout=timeout)
        return MemorySession(
            self._calls,
            self._namespace,
            Session.from_proto(response.session),
            on_unavailable=on_unavailable,
        )

    async def get_session(self, session_id: str, *, timeout: float | None = None) -> Session:
        """Read a session, open or closed. Raises: SessionNotFoundError."""
        request = stated(pb.GetSessionRequest, namespace=self._namespace.to_proto(), session_id=session_id)
        response = await self._calls.unary(request, pb.GetSessionResponse, timeout=timeout)
        return Session.from_proto(response.session)

    def list_sessions(self, *, page_size: int = 0, timeout: float | None = None) -> Pages[Session]:
        """All sessions of the namespace, in id order."""

        async def fetch(page_token: str) -> Page[Session]:
            request = stated(
                pb.ListSessionsRequest, namespace=self._namespace.to_proto(), page_size=page_size, page_token=page_token
            )
            response = await self._calls.unary(request, pb.ListSessionsResponse, timeout=timeout)
            return Page(
                items=tuple(map(Session.from_proto, response.sessions)), next_page_token=response.next_page_token
            )

        return Pages(fetch)

    async def close_session(
        self, session_id: str, *, request_id: str | None = None, timeout: float | None = None
    ) -> Session:
        """Close a session for ever: calls in it and its runs are refused. Closing a closed one is no error.

        Raises: SessionNotFoundError.
        """
        request = stated(
            pb.CloseSessionRequest, namespace=self._namespace.to_proto(), request_id=request_id, session_id=session_id
        )
        response = await self._calls.unary(request, pb.CloseSessionResponse, timeout=timeout)
        return Session.from_proto(response.session)
