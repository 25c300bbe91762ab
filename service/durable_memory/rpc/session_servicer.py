"""SessionService on the wire."""

from __future__ import annotations

from typing import Any, Final

import grpc

from durable_memory.app.repository import RepositoryReader
from durable_memory.app.sessions import BeginOutcome, PolicyDefaults, SessionService
from durable_memory.domain.canonical import JsonObject
from durable_memory.domain.errors import invalid_field
from durable_memory.domain.lexical.profiles import LEXICAL_PROFILES
from durable_memory.domain.session import FUSION_PROFILES, RecallMode, Session, SessionBinding
from durable_memory.domain.text import check_name
from durable_memory.rpc.authentication import current_caller
from durable_memory.rpc.decode.fields import hex_digest, optional_name
from durable_memory.rpc.decode.session import decode_binding, decode_policy
from durable_memory.rpc.encode.enums import number
from durable_memory.rpc.encode.limits import encode_limits
from durable_memory.rpc.encode.semantic import encode_offered_generation
from durable_memory.rpc.encode.session import encode_default_policy, encode_run, encode_session
from durable_memory.rpc.listing import Listing
from durable_memory.rpc.options import CallOptions
from durable_memory.rpc.request import authorised, keyed
from durablememory.v1 import session_service_pb2 as pb
from durablememory.v1.session_service_pb2_grpc import SessionServiceServicer

Context = grpc.aio.ServicerContext[Any, Any]

_BEGUN: Final = {
    BeginOutcome.BEGUN: pb.BEGIN_RUN_OUTCOME_BEGUN,
    BeginOutcome.TAKEN_OVER: pb.BEGIN_RUN_OUTCOME_TAKEN_OVER,
}


class SessionServicer(SessionServiceServicer):
    """Sessions and runs, and what this server is."""

    def __init__(
        self,
        sessions: SessionService,
        defaults: PolicyDefaults,
        repository: RepositoryReader,
        listing: Listing,
        calls: CallOptions,
        version: str,
    ) -> None:
        self._sessions = sessions
        self._defaults = defaults
        self._repository = repository
        self._listing = listing
        self._calls = calls
        self._version = version

    async def OpenSession(self, request: pb.OpenSessionRequest, context: Context) -> pb.OpenSessionResponse:
        rpc = "SessionService.OpenSession"
        call = authorised(rpc, request)
        session_id = optional_name("", request, "session_id")
        policy = decode_policy(request.policy)
        mutation = keyed(call, rpc, request, request.request_id)
        opened = await self._sessions.open(mutation, session_id, policy)
        return pb.OpenSessionResponse(
            session=encode_session(opened.session),
            outcome=pb.OPEN_SESSION_OUTCOME_EXISTING if opened.existing else pb.OPEN_SESSION_OUTCOME_OPENED,
        )

    async def ResumeSession(self, request: pb.ResumeSessionRequest, context: Context) -> pb.ResumeSessionResponse:
        call = authorised("SessionService.ResumeSession", request)
        session_id = check_name("session_id", request.session_id)
        session = await self._sessions.resume(call, session_id, _expected(request))
        return pb.ResumeSessionResponse(session=encode_session(session))

    async def RebindSession(self, request: pb.RebindSessionRequest, context: Context) -> pb.RebindSessionResponse:
        rpc = "SessionService.RebindSession"
        call = authorised(rpc, request)
        session_id = check_name("session_id", request.session_id)
        expected = hex_digest("expected_binding_digest", request.expected_binding_digest)
        policy = decode_policy(request.policy)
        mutation = keyed(call, rpc, request, request.request_id)
        rebound = await self._sessions.rebind(mutation, session_id, expected, policy)
        return pb.RebindSessionResponse(
            session=encode_session(rebound.session), previous_binding_digest=rebound.previous_digest
        )

    async def GetSession(self, request: pb.GetSessionRequest, context: Context) -> pb.GetSessionResponse:
        call = authorised("SessionService.GetSession", request)
        session = await self._sessions.get(call, check_name("session_id", request.session_id))
        return pb.GetSessionResponse(session=encode_session(session))

    async def ListSessions(self, request: pb.ListSessionsRequest, context: Context) -> pb.ListSessionsResponse:
        rpc = "SessionService.ListSessions"
        call = authorised(rpc, request)
        start = self._listing.start(call, rpc, request)
        token = await self._repository.token(call)
        found = await self._sessions.list(call, after_session_id=start.text("after"), limit=start.limit + 1)
        page = self._listing.page(
            call,
            rpc,
            request,
            token,
            found[: start.limit],
            encode=encode_session,
            key=_after_session,
            more=len(found) > start.limit,
        )
        return pb.ListSessionsResponse(sessions=page.items, next_page_token=page.next_page_token)

    async def CloseSession(self, request: pb.CloseSessionRequest, context: Context) -> pb.CloseSessionResponse:
        rpc = "SessionService.CloseSession"
        call = authorised(rpc, request)
        session_id = check_name("session_id", request.session_id)
        closed = await self._sessions.close(keyed(call, rpc, request, request.request_id), session_id)
        return pb.CloseSessionResponse(session=encode_session(closed))

    async def BeginRun(self, request: pb.BeginRunRequest, context: Context) -> pb.BeginRunResponse:
        rpc = "SessionService.BeginRun"
        call = authorised(rpc, request)
        session_id = check_name("session_id", request.session_id)
        run_id = optional_name("", request, "run_id")
        host_instance = check_name("host_instance", request.host_instance)
        mutation = keyed(call, rpc, request, request.request_id)
        begun = await self._sessions.begin_run(mutation, session_id, run_id, host_instance)
        return pb.BeginRunResponse(run=encode_run(begun.run), outcome=_BEGUN[begun.outcome])

    async def EndRun(self, request: pb.EndRunRequest, context: Context) -> pb.EndRunResponse:
        rpc = "SessionService.EndRun"
        call = authorised(rpc, request)
        session_id = check_name("session_id", request.session_id)
        run_id = check_name("run_id", request.run_id)
        incarnation = check_name("incarnation", request.incarnation)
        mutation = keyed(call, rpc, request, request.request_id)
        return pb.EndRunResponse(
            run=encode_run(await self._sessions.end_run(mutation, session_id, run_id, incarnation))
        )

    async def GetServerInfo(self, request: pb.GetServerInfoRequest, context: Context) -> pb.GetServerInfoResponse:
        defaults = self._defaults
        generation = defaults.current.known
        modes = [RecallMode.AUTO, RecallMode.LEXICAL] if generation is None else list(RecallMode)
        return pb.GetServerInfoResponse(
            version=self._version,
            caller=current_caller().name,
            lexical_profiles=_default_first(defaults.lexical_profile, frozenset(LEXICAL_PROFILES)),
            fusion_profiles=_default_first(defaults.fusion_profile, FUSION_PROFILES),
            semantic_generations=[] if generation is None else [encode_offered_generation(generation)],
            recall_modes=[number(mode) for mode in modes],
            default_policy=encode_default_policy(defaults),
            limits=encode_limits(self._calls),
        )


def _expected(request: pb.ResumeSessionRequest) -> SessionBinding | str:
    expected = request.WhichOneof("expected")
    if expected == "binding":
        return decode_binding("binding", request.binding)
    if expected == "binding_digest":
        return hex_digest("binding_digest", request.binding_digest)
    raise invalid_field("expected", "is missing: state a binding or its digest")


def _default_first(default: str, known: frozenset[str]) -> list[str]:
    return [default, *sorted(known - {default})]


def _after_session(session: Session) -> JsonObject:
    return {"after": session.session_id}
