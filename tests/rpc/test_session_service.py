"""SessionService: sessions, runs, and what the server is, through a real channel."""

import pytest

from durable_memory.domain.errors import Reason
from durable_memory.domain.lexical.profiles import BM25F_PROFILE, COVERAGE_PROFILE
from durablememory.v1 import recall_pb2, session_pb2
from durablememory.v1 import session_service_pb2 as pb
from tests.rpc.messages import call, namespace
from tests.rpc.refusals import refused


@pytest.fixture
async def stubs(server_app):
    return await server_app.stubs()


async def open_session(stubs, session_id="assistant", **fields):
    request = pb.OpenSessionRequest(**call(session_id=session_id, **fields))
    return await stubs.sessions.OpenSession(request)


async def resume(stubs, session_id="assistant", **fields):
    return await stubs.sessions.ResumeSession(
        pb.ResumeSessionRequest(namespace=namespace(), session_id=session_id, **fields)
    )


async def begin(stubs, run_id="turn-1", host_instance="host-1", session_id="assistant"):
    return await stubs.sessions.BeginRun(
        pb.BeginRunRequest(**call(session_id=session_id, run_id=run_id, host_instance=host_instance))
    )


async def close(stubs, session_id="assistant"):
    return await stubs.sessions.CloseSession(pb.CloseSessionRequest(**call(session_id=session_id)))


async def test_an_opened_session_is_bound_to_exact_values(stubs):
    answer = await open_session(stubs, policy={"max_results": 8})

    assert answer.outcome == pb.OPEN_SESSION_OUTCOME_OPENED
    session = answer.session
    assert session.binding == session_pb2.SessionBinding(
        schema_version=1,
        namespace=namespace(),
        mode=recall_pb2.RECALL_MODE_AUTO,
        max_results=8,
        lexical_profile=BM25F_PROFILE,
        fusion_profile="dm.fusion.convex.v1",
    )
    assert len(session.binding_digest) == 64
    assert (session.state, session.binding_version) == (session_pb2.SESSION_STATE_OPEN, 1)
    assert session.opened_by == "development"


async def test_an_equal_request_gets_the_open_session_and_another_is_refused(stubs):
    first = await open_session(stubs, policy={"max_results": 8})

    again = await open_session(stubs, policy={"max_results": 8})

    assert again.outcome == pb.OPEN_SESSION_OUTCOME_EXISTING
    assert again.session == first.session
    async with refused(Reason.BINDING_DRIFT, fields="max_results,min_score"):
        await open_session(stubs, policy={"max_results": 9, "min_score": 0.5})


async def test_resume_wants_the_whole_binding_or_its_digest(stubs):
    session = (await open_session(stubs)).session

    assert (await resume(stubs, binding=session.binding)).session == session
    assert (await resume(stubs, binding_digest=session.binding_digest)).session == session
    async with refused(Reason.BINDING_DRIFT, fields="digest"):
        await resume(stubs, binding_digest="0" * 64)
    drifted = session_pb2.SessionBinding()
    drifted.CopyFrom(session.binding)
    drifted.related_lookups = 3
    drifted.lexical_profile = COVERAGE_PROFILE
    drifted.namespace.scope_id = "other"
    async with refused(Reason.BINDING_DRIFT, fields="lexical_profile,namespace.scope_id,related_lookups"):
        await resume(stubs, binding=drifted)
    async with refused(Reason.INVALID_FIELD, field="expected"):
        await resume(stubs)


async def test_a_binding_with_a_field_of_a_later_contract_is_refused(stubs):
    session = (await open_session(stubs)).session
    raw = session.binding.SerializeToString() + b"\xf8\x3f\x01"  # field 1023, varint 1

    async with refused(Reason.INVALID_FIELD, field="binding"):
        await resume(stubs, binding=session_pb2.SessionBinding.FromString(raw))


async def test_rebind_replaces_the_binding_that_the_caller_knows(stubs):
    session = (await open_session(stubs)).session

    def rebind(digest):
        return stubs.sessions.RebindSession(
            pb.RebindSessionRequest(
                **call(session_id="assistant", expected_binding_digest=digest, policy={"max_results": 50})
            )
        )

    rebound = await rebind(session.binding_digest)

    assert rebound.previous_binding_digest == session.binding_digest
    assert (rebound.session.binding.max_results, rebound.session.binding_version) == (50, 2)
    assert rebound.session.HasField("rebound_at")
    async with refused(Reason.BINDING_DRIFT, fields="digest"):
        await rebind(session.binding_digest)


async def test_a_closed_session_stays_closed(stubs):
    await open_session(stubs)

    closed = await close(stubs)
    again = await close(stubs)

    assert closed.session.state == session_pb2.SESSION_STATE_CLOSED
    assert again == closed
    for refuse in (resume(stubs, binding_digest="0" * 64), open_session(stubs), begin(stubs)):
        async with refused(Reason.SESSION_CLOSED, session_id="assistant"):
            await refuse


async def test_unknown_sessions_are_not_found(stubs):
    get = pb.GetSessionRequest(namespace=namespace(), session_id="nobody's")
    for refuse in (
        stubs.sessions.GetSession(get),
        resume(stubs, "nobody's", binding_digest="0" * 64),
        close(stubs, "nobody's"),
        begin(stubs, session_id="nobody's"),
    ):
        async with refused(Reason.SESSION_NOT_FOUND, session_id="nobody's"):
            await refuse


async def test_sessions_are_listed_in_pages_of_id_order(stubs):
    for name in ("c", "a", "b"):
        await open_session(stubs, name)
    await close(stubs, "b")
    request = pb.ListSessionsRequest(namespace=namespace(), page_size=2)

    first = await stubs.sessions.ListSessions(request)
    request.page_token = first.next_page_token
    second = await stubs.sessions.ListSessions(request)

    assert [session.session_id for session in first.sessions] == ["a", "b"]
    assert [session.session_id for session in second.sessions] == ["c"]
    assert second.next_page_token == ""


async def test_a_run_is_begun_once_by_one_host_and_taken_over_by_another(stubs):
    await open_session(stubs)
    first = await begin(stubs)
    assert first.outcome == pb.BEGIN_RUN_OUTCOME_BEGUN
    assert (first.run.state, first.run.sequence) == (session_pb2.RUN_STATE_OPEN, 0)
    assert len(first.run.context_id) == 64

    async with refused(Reason.RUN_IDENTITY_CONFLICT, run_id="turn-1", incarnation=first.run.incarnation) as info:
        await begin(stubs)
    assert info.metadata["opened_at"]
    second = await begin(stubs, host_instance="host-2")
    assert second.outcome == pb.BEGIN_RUN_OUTCOME_TAKEN_OVER
    assert second.run.incarnation != first.run.incarnation
    assert second.run.context_id != first.run.context_id


async def test_a_host_ends_its_own_incarnation_only(stubs):
    await open_session(stubs)
    run = (await begin(stubs)).run

    async def end(incarnation):
        return await stubs.sessions.EndRun(
            pb.EndRunRequest(**call(session_id="assistant", run_id="turn-1", incarnation=incarnation))
        )

    async with refused(Reason.RUN_NOT_FOUND, run_id="turn-1"):
        await end("another")
    ended = await end(run.incarnation)
    again = await end(run.incarnation)
    assert ended.run.state == session_pb2.RUN_STATE_ENDED
    assert again == ended
    assert (await begin(stubs)).outcome == pb.BEGIN_RUN_OUTCOME_BEGUN


async def test_the_server_says_what_it_is(stubs):
    info = await stubs.sessions.GetServerInfo(pb.GetServerInfoRequest())

    assert info.caller == "development"
    assert list(info.lexical_profiles) == [BM25F_PROFILE, COVERAGE_PROFILE]
    assert list(info.fusion_profiles) == ["dm.fusion.convex.v1", "a3s.code.memory.hybrid.rrf-k60.v1"]
    assert list(info.recall_modes) == [recall_pb2.RECALL_MODE_AUTO, recall_pb2.RECALL_MODE_LEXICAL]
    assert info.default_policy.max_results == 5
    assert info.limits.max_content_bytes == 65_536
    unset = [field.name for field in info.limits.DESCRIPTOR.fields if not getattr(info.limits, field.name)]
    assert unset == []


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"mode": 0}, "policy.mode"),
        ({"mode": 9}, "policy.mode"),
        ({"max_results": 0}, "policy.max_results"),
        ({"max_results": 101}, "policy.max_results"),
        ({"min_score": float("nan")}, "policy.min_score"),
        ({"min_relative_score": 1.01}, "policy.min_relative_score"),
        ({"related_lookups": -1}, "policy.related_lookups"),
        ({"related_lookups": 65}, "policy.related_lookups"),
        ({"lexical_profile": ""}, "policy.lexical_profile"),
        ({"lexical_profile": "dm.lexical.bm25f.v9"}, "policy.lexical_profile"),
        ({"fusion_profile": "dm.fusion.convex.v9"}, "policy.fusion_profile"),
        ({"semantic": {"candidate_limit": 0}}, "policy.semantic.candidate_limit"),
        ({"semantic": {"min_similarity": float("inf")}}, "policy.semantic.min_similarity"),
        ({"semantic": {"authority_digest": "x"}}, "policy.semantic.authority_digest"),
    ],
)
async def test_a_policy_out_of_bounds_is_refused_by_its_field(stubs, policy, field):
    async with refused(Reason.INVALID_FIELD, field=field):
        await open_session(stubs, policy=policy)


@pytest.mark.parametrize(
    "policy",
    [
        {"mode": recall_pb2.RECALL_MODE_SEMANTIC},
        {"mode": recall_pb2.RECALL_MODE_HYBRID},
        {"semantic": {"authority_digest": "a" * 64}},
    ],
)
async def test_what_needs_a_generation_is_refused_where_there_is_none(stubs, policy):
    async with refused(Reason.SEMANTIC_UNAVAILABLE, cause="SEMANTIC_NOT_CONFIGURED"):
        await open_session(stubs, policy=policy)


async def test_a_policy_with_a_field_of_a_later_contract_is_refused(stubs):
    policy = session_pb2.RecallPolicy.FromString(b"\xf8\x3f\x01")  # field 1023, varint 1

    async with refused(Reason.INVALID_FIELD, field="policy"):
        await open_session(stubs, policy=policy)
