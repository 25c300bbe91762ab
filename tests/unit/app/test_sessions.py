"""Sessions: opened or got, resumed field by field, rebound on the record, closed for ever."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from math import inf, nan
from typing import Any

import pytest

from durable_memory.app.sessions import OpenedSession, PolicyDefaults, PolicyRequest
from durable_memory.domain.errors import Reason
from durable_memory.domain.lexical.profiles import BM25F_PROFILE, COVERAGE_PROFILE
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.session import (
    DEFAULT_FUSION_PROFILE,
    RecallMode,
    RecallPolicy,
    SemanticGeneration,
    Session,
    SessionBinding,
    SessionState,
    decode_binding,
)
from tests.unit.app.world import CountingIds, World, process, refused

GENERATION = SemanticGeneration(
    authority_digest="0" * 64,
    provider="local",
    model="small",
    model_revision="1",
    dimension=384,
    normalization="L2",
    metric="COSINE",
    candidate_limit=100,
    min_similarity=-1.0,
)
BINDING = SessionBinding(
    namespace=Namespace("acme", "user-1", "project-a"),
    policy=RecallPolicy(
        mode=RecallMode.AUTO,
        max_results=5,
        min_score=0.0,
        min_relative_score=0.0,
        related_lookups=0,
        lexical_profile=BM25F_PROFILE,
        fusion_profile=DEFAULT_FUSION_PROFILE,
        semantic=GENERATION,
    ),
)
OTHER_VALUES: dict[str, Any] = {
    "mode": RecallMode.LEXICAL,
    "max_results": 6,
    "min_score": 0.1,
    "min_relative_score": 0.1,
    "related_lookups": 1,
    "lexical_profile": COVERAGE_PROFILE,
    "fusion_profile": "a3s.code.memory.hybrid.rrf-k60.v1",
}
OTHER_GENERATION: dict[str, Any] = {
    "authority_digest": "1" * 64,
    "provider": "remote",
    "model": "large",
    "model_revision": "2",
    "dimension": 768,
    "normalization": "NONE",
    "metric": "DOT_PRODUCT",
    "candidate_limit": 99,
    "min_similarity": 0.5,
}


async def open_session(
    world: World, session_id: str | None = "assistant", *, key: str | None = None, **policy: Any
) -> OpenedSession:
    return await world.app.sessions.open(world.request("OpenSession", key), session_id, PolicyRequest(**policy))


def with_policy(binding: SessionBinding, **changes: Any) -> SessionBinding:
    return replace(binding, policy=replace(binding.policy, **changes))


def with_generation(binding: SessionBinding, **changes: Any) -> SessionBinding:
    assert binding.policy.semantic is not None
    return with_policy(binding, semantic=replace(binding.policy.semantic, **changes))


DRIFTS = {
    **{name: with_policy(BINDING, **{name: value}) for name, value in OTHER_VALUES.items()},
    **{
        f"semantic_generation.{name}": with_generation(BINDING, **{name: value})
        for name, value in OTHER_GENERATION.items()
    },
    **{
        f"namespace.{name}": replace(BINDING, namespace=replace(BINDING.namespace, **{name: "another"}))
        for name in ("tenant_id", "principal_id", "scope_id")
    },
    "schema_version": replace(BINDING, schema_version=2),
}


# Open


async def test_opening_settles_every_default_and_keeps_it(world: World) -> None:
    opened = await open_session(world)
    assert not opened.existing
    assert opened.session.binding.policy == replace(BINDING.policy, semantic=None)
    assert (opened.session.state, opened.session.binding_version, opened.session.opened_by) == (
        SessionState.OPEN,
        1,
        "owner",
    )


async def test_an_equal_request_gets_the_session_that_is_there(world: World) -> None:
    first = await open_session(world, max_results=8)
    world.clock.advance(timedelta(days=1))
    again = await open_session(world, max_results=8)
    assert again.existing
    assert again.session == first.session


async def test_an_equal_request_gets_its_session_from_a_server_with_other_defaults(world: World) -> None:
    first = await open_session(world)
    newer = process(world.store, world.clock, CountingIds("b"))
    newer.app.sessions._defaults = PolicyDefaults(max_results=50)
    again = await open_session(newer)
    assert (again.existing, again.session) == (True, first.session)


async def test_another_request_that_means_the_same_binding_is_equal(world: World) -> None:
    first = await open_session(world)
    again = await open_session(world, max_results=5)
    assert (again.existing, again.session) == (True, first.session)


async def test_another_binding_is_refused_with_what_differs(world: World) -> None:
    await open_session(world, max_results=8)
    with refused(Reason.BINDING_DRIFT, fields="max_results,min_score"):
        await open_session(world, max_results=9, min_score=0.5)


async def test_a_repeat_without_an_id_gets_the_id_that_was_minted_first(world: World) -> None:
    first = await open_session(world, None, key="k")
    again = await open_session(world, None, key="k")
    assert again == first


async def test_a_repeated_opening_tells_what_the_first_told(world: World) -> None:
    first = await open_session(world, key="k")
    await world.app.sessions.rebind(
        world.request("RebindSession"), "assistant", first.session.binding.digest(), PolicyRequest(max_results=9)
    )
    await world.app.sessions.close(world.request("CloseSession"), "assistant")
    assert await open_session(world, key="k") == first
    assert (await world.app.sessions.get(world.call, "assistant")).state is SessionState.CLOSED


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_results", 0),
        ("max_results", 101),
        ("related_lookups", -1),
        ("related_lookups", 65),
        ("min_score", nan),
        ("min_score", 1.5),
        ("min_score", -0.1),
        ("min_relative_score", inf),
        ("min_relative_score", nan),
        ("lexical_profile", "unknown"),
        ("fusion_profile", "unknown"),
    ],
)
async def test_a_policy_out_of_bounds_opens_nothing(world: World, field: str, value: Any) -> None:
    with refused(Reason.INVALID_FIELD, field=f"policy.{field}"):
        await open_session(world, **{field: value})
    with refused(Reason.SESSION_NOT_FOUND, session_id="assistant"):
        await world.app.sessions.get(world.call, "assistant")


@pytest.mark.parametrize("mode", [RecallMode.SEMANTIC, RecallMode.HYBRID])
async def test_a_mode_that_the_server_cannot_serve_opens_nothing(world: World, mode: RecallMode) -> None:
    with refused(Reason.SEMANTIC_UNAVAILABLE, cause="SEMANTIC_NOT_CONFIGURED"):
        await open_session(world, mode=mode)


async def test_zero_is_zero_whatever_its_sign(world: World) -> None:
    first = await open_session(world, min_score=0.0)
    again = await open_session(world, min_score=-0.0)
    assert again.existing
    assert again.session.binding.digest() == first.session.binding.digest()


# Resume


async def test_a_session_is_resumed_by_its_binding_or_its_digest_from_any_process(world: World, replica: World) -> None:
    opened = (await open_session(world, max_results=8)).session
    assert await replica.app.sessions.resume(replica.call, "assistant", opened.binding) == opened
    assert await replica.app.sessions.resume(replica.call, "assistant", opened.binding.digest()) == opened


@pytest.mark.parametrize(("name", "given"), DRIFTS.items(), ids=DRIFTS)
async def test_every_single_field_that_differs_is_named(world: World, name: str, given: SessionBinding) -> None:
    opened = (await open_session(world)).session
    stored = replace(opened, binding=BINDING)
    resumed = process(_WithSession(world.store, stored), world.clock, world.ids)
    assert await resumed.app.sessions.resume(resumed.call, "assistant", BINDING) == stored
    with refused(Reason.BINDING_DRIFT, fields=name):
        await resumed.app.sessions.resume(resumed.call, "assistant", given)
    with refused(Reason.BINDING_DRIFT, fields="digest"):
        await resumed.app.sessions.resume(resumed.call, "assistant", given.digest())


def test_every_field_of_a_binding_has_a_drift_above() -> None:
    policy = {part.name for part in fields(RecallPolicy)} - {"semantic"}
    generation = {f"semantic_generation.{part.name}" for part in fields(SemanticGeneration)}
    namespace = {f"namespace.{part.name}" for part in fields(Namespace)}
    assert set(DRIFTS) == policy | generation | namespace | {"schema_version"}


async def test_a_generation_that_is_gone_or_new_is_drift(world: World) -> None:
    opened = (await open_session(world)).session
    with refused(Reason.BINDING_DRIFT):
        await world.app.sessions.resume(world.call, "assistant", with_policy(opened.binding, semantic=GENERATION))


async def test_what_is_closed_or_unknown_is_not_resumed(world: World) -> None:
    with refused(Reason.SESSION_NOT_FOUND, session_id="assistant"):
        await world.app.sessions.resume(world.call, "assistant", BINDING)
    opened = (await open_session(world)).session
    await world.app.sessions.close(world.request("CloseSession"), "assistant")
    with refused(Reason.SESSION_CLOSED, session_id="assistant"):
        await world.app.sessions.resume(world.call, "assistant", opened.binding)


def test_a_stored_binding_is_read_back_as_it_was() -> None:
    assert decode_binding(BINDING.canonical()) == BINDING


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"schema_version": 2}, "schema_version"),
        ({"a field of a later version": 1}, "schema_version"),
        ({"mode": "A_LATER_MODE"}, "schema_version"),
        ({"max_results": "5"}, "schema_version"),
        ({"lexical_profile": "a later profile"}, "lexical_profile"),
        ({"fusion_profile": "a later profile"}, "fusion_profile"),
        ({"max_results": 0}, "max_results"),
    ],
)
def test_a_stored_binding_that_this_version_does_not_know_is_drift(change: dict[str, Any], field: str) -> None:
    with refused(Reason.BINDING_DRIFT, fields=field):
        decode_binding({**BINDING.canonical(), **change})


# Rebind and close


async def test_rebinding_is_compared_and_kept_with_who_and_when(world: World) -> None:
    opened = (await open_session(world)).session
    world.clock.advance(timedelta(minutes=1))
    rebound = await world.app.sessions.rebind(
        world.request("RebindSession"), "assistant", opened.binding.digest(), PolicyRequest(max_results=9)
    )
    assert rebound.previous_digest == opened.binding.digest()
    assert (rebound.session.binding_version, rebound.session.binding.policy.max_results) == (2, 9)
    assert rebound.session.rebound_at == world.clock.now()
    with refused(Reason.BINDING_DRIFT, fields="digest"):
        await world.app.sessions.rebind(
            world.request("RebindSession"), "assistant", opened.binding.digest(), PolicyRequest()
        )
    records = [record async for record in world.store.export_bindings(world.namespace)]
    assert [(record.binding_version, record.binding.policy.max_results, record.bound_by) for record in records] == [
        (1, 5, "owner"),
        (2, 9, "owner"),
    ]
    assert [record.bound_at for record in records] == [opened.opened_at, world.clock.now()]


async def test_a_session_has_no_more_bindings_than_one_record_can_hold(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("durable_memory.app.sessions.SESSION_MAX_BINDINGS", 2)
    session = (await open_session(world)).session

    async def rebind(most: int) -> Session:
        request, asked = world.request("RebindSession"), PolicyRequest(max_results=most)
        return (await world.app.sessions.rebind(request, "assistant", session.binding.digest(), asked)).session

    session = await rebind(9)
    with refused(Reason.LIMIT_EXCEEDED, field="session_id", limit=2, actual=3):
        await rebind(8)
    assert await world.app.sessions.get(world.call, "assistant") == session


async def test_a_repeated_rebinding_tells_of_the_binding_that_it_made(world: World) -> None:
    opened = (await open_session(world)).session
    call = world.request("RebindSession", "k")
    asked = PolicyRequest(max_results=9)
    first = await world.app.sessions.rebind(call, "assistant", opened.binding.digest(), asked)
    await world.app.sessions.rebind(
        world.request("RebindSession"), "assistant", first.session.binding.digest(), PolicyRequest(max_results=1)
    )
    assert await world.app.sessions.rebind(call, "assistant", opened.binding.digest(), asked) == first
    assert (await world.app.sessions.get(world.call, "assistant")).binding.policy.max_results == 1


async def test_after_a_rebinding_the_session_is_got_by_the_new_request_only(world: World) -> None:
    opened = (await open_session(world)).session
    await world.app.sessions.rebind(
        world.request("RebindSession"), "assistant", opened.binding.digest(), PolicyRequest(max_results=9)
    )
    assert (await open_session(world, max_results=9)).existing
    with refused(Reason.BINDING_DRIFT, fields="max_results"):
        await open_session(world)


async def test_a_closed_session_stays_closed(world: World) -> None:
    opened = (await open_session(world)).session
    world.clock.advance(timedelta(minutes=1))
    closed = await world.app.sessions.close(world.request("CloseSession"), "assistant")
    assert (closed.state, closed.closed_at) == (SessionState.CLOSED, world.clock.now())
    world.clock.advance(timedelta(minutes=1))
    assert await world.app.sessions.close(world.request("CloseSession"), "assistant") == closed
    with refused(Reason.SESSION_CLOSED, session_id="assistant"):
        await open_session(world)
    with refused(Reason.SESSION_CLOSED, session_id="assistant"):
        await world.begin()
    with refused(Reason.SESSION_CLOSED, session_id="assistant"):
        await world.app.sessions.rebind(
            world.request("RebindSession"), "assistant", opened.binding.digest(), PolicyRequest()
        )
    with refused(Reason.SESSION_NOT_FOUND, session_id="missing"):
        await world.app.sessions.close(world.request("CloseSession"), "missing")


async def test_sessions_are_listed_in_id_order_open_or_closed(world: World) -> None:
    for name in ("b", "a", "c"):
        await open_session(world, name)
    await world.app.sessions.close(world.request("CloseSession"), "a")
    page = await world.app.sessions.list(world.call, after_session_id="", limit=2)
    assert [session.session_id for session in page] == ["a", "b"]
    page = await world.app.sessions.list(world.call, after_session_id="b", limit=2)
    assert [session.session_id for session in page] == ["c"]


async def test_sessions_move_no_namespace_revision(world: World) -> None:
    before = await world.app.repository.token(world.call)
    await open_session(world)
    await world.begin()
    await world.app.sessions.close(world.request("CloseSession"), "assistant")
    assert await world.app.repository.token(world.call) == before


class _WithSession:
    """A store whose one session is bound to what this server cannot open yet."""

    def __init__(self, store: Any, session: Any) -> None:
        self._store = store
        self._session = session

    async def get_session(self, namespace: Any, session_id: str) -> Any:
        return self._session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
