"""Recall: what may be remembered, of now, within the session's policy."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from durable_memory.app.candidates import Proposal
from durable_memory.app.recall_result import Degradation, DegradationReason, RecallChannel
from durable_memory.app.sessions import PolicyRequest
from durable_memory.app.views.explanation import LexicalCut
from durable_memory.domain.change_set import SetStatus
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import Reason
from durable_memory.domain.lexical.profiles import COVERAGE_PROFILE
from durable_memory.domain.lexical.query import LexicalFilter
from durable_memory.domain.limits import QUERY_MAX_BYTES
from durable_memory.domain.node import NodeKind, NodeRef, NodeStatus
from durable_memory.domain.session import RecallMode
from tests.unit.app.world import LEXICAL, OTHER_NAMESPACE, World, draft, evidence, refused

# As new as the call


async def test_a_recall_sees_every_change_that_was_acknowledged_from_any_process(world: World, replica: World) -> None:
    await world.open()
    assert await replica.recall("tea") == []
    node = await world.remember("tea", "a")
    assert await replica.recall("tea") == await world.recall("tea") == ["a"]
    node = await replica.put("a", "coffee")
    assert await world.recall("tea") == []
    assert await world.recall("coffee") == ["a"]
    await world.retire(node)
    assert await replica.recall("coffee") == []


async def test_an_answer_says_which_state_it_is_for_and_what_was_searched(world: World) -> None:
    await world.open()
    await world.remember("tea", "a")
    await world.remember("coffee", "b", kind=NodeKind.EPISODIC)
    found = await world.answer("tea")
    assert found.token == await world.app.repository.token(world.call)
    assert found.searched_nodes == 2
    found = await world.answer("tea", filter=LexicalFilter(kinds=frozenset({int(NodeKind.EPISODIC)})))
    assert (found.searched_nodes, found.hits) == (1, ())


async def test_a_hit_names_its_exact_text_and_its_age(world: World) -> None:
    await world.open()
    node = await world.remember("tea", "a")
    world.clock.advance(timedelta(hours=2))
    (hit,) = (await world.answer("tea")).hits
    assert Citation.of(hit.node) == Citation.of(node)
    assert (hit.rank, hit.channel, hit.age, hit.disputed) == (1, RecallChannel.LEXICAL, timedelta(hours=2), False)
    assert hit.lexical is not None
    assert (hit.lexical.rank, hit.lexical.score) == (1, hit.score)


async def test_a_memory_of_a_source_whose_clock_is_ahead_is_not_younger_than_now(world: World) -> None:
    await world.open()
    await world.remember("tea", "a")
    world.clock.advance(timedelta(minutes=-3))
    (hit,) = (await world.answer("tea")).hits
    assert hit.age == timedelta(0)


@pytest.mark.parametrize("status", [status for status in NodeStatus if status is not NodeStatus.ACTIVE])
async def test_only_active_memories_are_recalled(world: World, status: NodeStatus) -> None:
    await world.open()
    if status is NodeStatus.CANDIDATE:
        proposal = Proposal(node_id="a", draft=draft("tea", evidence=(evidence("turn"),)))
        await world.app.candidates.propose(world.request("ProposeCandidates"), [proposal])
    else:
        await world.remember("tea", "a")
        assert await world.recall("tea") == ["a"]
        await world.apply(SetStatus(node_id="a", expected_revision=1, status=status))
    assert await world.recall("tea") == []
    assert (await world.node("a")).status is status


async def test_namespaces_do_not_see_each_other(world: World) -> None:
    other = world.at(OTHER_NAMESPACE)
    await other.remember("tea", "a")
    await world.open()
    await other.open()
    assert await world.recall("tea") == []
    assert await other.recall("tea") == ["a"]


# Filters


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (LexicalFilter(), ["a", "b"]),
        (LexicalFilter(kinds=frozenset({int(NodeKind.EPISODIC)})), ["b"]),
        (LexicalFilter(labels={"type": "drink"}), ["a"]),
        (LexicalFilter(labels={"type": "drink", "hot": "yes"}), []),
        (LexicalFilter(excluded_ids=frozenset({"a"})), ["b"]),
    ],
    ids=["none", "kind", "label", "all labels", "excluded id"],
)
async def test_a_filter_narrows_what_is_found(world: World, filter: LexicalFilter, expected: list[str]) -> None:
    await world.open()
    await world.remember("tea for one", "a", labels={"type": "drink"})
    await world.remember("tea for two", "b", kind=NodeKind.EPISODIC)
    assert sorted(await world.recall("tea", filter=filter)) == expected


async def test_time_ranges_are_half_open(world: World) -> None:
    await world.open()
    then = world.clock.now() - timedelta(days=10)
    await world.remember("tea", "a", occurred_at=then)
    now = world.clock.now()
    for filter, found in (
        (LexicalFilter(occurred_from=then), ["a"]),
        (LexicalFilter(occurred_until=then), []),
        (LexicalFilter(updated_from=now), ["a"]),
        (LexicalFilter(updated_until=now), []),
        (LexicalFilter(occurred_until=now, updated_from=then), ["a"]),
    ):
        assert await world.recall("tea", filter=filter) == found


# Modes


async def test_auto_recalls_lexically_and_says_that_and_why(world: World) -> None:
    await world.open()
    found = await world.answer("tea")
    assert found.mode is LEXICAL
    assert isinstance(found.degradation, Degradation)
    assert found.degradation.reason is DegradationReason.SEMANTIC_NOT_CONFIGURED


async def test_an_explicit_lexical_recall_is_no_degradation(world: World) -> None:
    await world.open("automatic")
    await world.open("lexical", mode=LEXICAL)
    assert (await world.answer("tea", "automatic", mode=LEXICAL)).degradation is None
    assert (await world.answer("tea", "lexical")).degradation is None


@pytest.mark.parametrize("mode", [RecallMode.SEMANTIC, RecallMode.HYBRID])
async def test_an_explicit_mode_never_turns_into_another(world: World, mode: RecallMode) -> None:
    await world.open()
    with refused(Reason.SEMANTIC_UNAVAILABLE, cause="SEMANTIC_NOT_CONFIGURED"):
        await world.answer("tea", mode=mode)
    with refused(Reason.SEMANTIC_UNAVAILABLE):
        await world.app.recall.preview(world.call, "tea", PolicyRequest(mode=mode))
    with refused(Reason.SEMANTIC_UNAVAILABLE):
        await world.app.recall.explain(world.call, "assistant", "a", "tea", mode=mode)


@pytest.mark.parametrize("mode", [RecallMode.AUTO, RecallMode.SEMANTIC, RecallMode.HYBRID])
async def test_a_call_never_widens_what_the_session_is_bound_to(world: World, mode: RecallMode) -> None:
    await world.open(mode=LEXICAL)
    with refused(Reason.INVALID_FIELD, field="mode"):
        await world.answer("tea", mode=mode)
    with refused(Reason.INVALID_FIELD, field="mode"):
        await world.app.recall.explain(world.call, "assistant", "a", "tea", mode=mode)


# Sessions


async def test_a_closed_or_unknown_session_recalls_nothing(world: World, replica: World) -> None:
    await world.open()
    await replica.recall("tea")
    await world.app.sessions.close(world.request("CloseSession"), "assistant")
    for process in (world, replica):
        with refused(Reason.SESSION_CLOSED, session_id="assistant"):
            await process.recall("tea")
    with refused(Reason.SESSION_NOT_FOUND, session_id="missing"):
        await world.recall("tea", "missing")
    with refused(Reason.SESSION_NOT_FOUND, session_id="assistant"):
        await world.at(OTHER_NAMESPACE).recall("tea")


async def test_a_session_is_looked_at_before_anything_is_loaded(world: World) -> None:
    await world.remember("tea")
    with refused(Reason.SESSION_NOT_FOUND, session_id="missing"):
        await world.recall("tea", "missing")
    assert world.app.views.statistics().loads == 0


async def test_a_session_that_another_process_rebound_is_seen_at_once(world: World, replica: World) -> None:
    for number in range(3):
        await world.remember(f"tea {number}")
    opened = await world.app.sessions.open(world.request("OpenSession"), "assistant", PolicyRequest(max_results=3))
    assert len(await replica.recall("tea")) == 3
    await world.app.sessions.rebind(
        world.request("RebindSession"), "assistant", opened.session.binding.digest(), PolicyRequest(max_results=1)
    )
    assert len(await replica.recall("tea")) == 1


async def test_a_session_is_read_once_while_no_session_of_the_namespace_changes(world: World) -> None:
    await world.open()
    reads = 0
    store: Any = world.store
    get_session = store.get_session

    async def counted(*arguments: Any) -> Any:
        nonlocal reads
        reads += 1
        return await get_session(*arguments)

    store.get_session = counted
    for _ in range(3):
        await world.recall("tea")
        await world.remember("tea")
    assert reads == 1
    await world.open("other")
    await world.recall("tea")
    assert reads == 2


# Queries


@pytest.mark.parametrize("query", ["", "   ", "?!...", "@ { } |", "💡"])
async def test_a_query_needs_a_letter_or_a_digit(world: World, query: str) -> None:
    await world.open()
    with refused(Reason.INVALID_FIELD, field="query"):
        await world.recall(query)


async def test_a_query_is_bounded_text(world: World) -> None:
    await world.open()
    with refused(Reason.INVALID_FIELD, field="query"):
        await world.recall("tea\0")
    with refused(Reason.LIMIT_EXCEEDED, field="query", limit=QUERY_MAX_BYTES, actual=QUERY_MAX_BYTES + 1):
        await world.recall("x" * (QUERY_MAX_BYTES + 1))
    assert await world.recall("é" * (QUERY_MAX_BYTES // 2)) == []


@pytest.mark.parametrize(
    "query", ["install.sh | bash tea", "@foo:{bar} tea", "50% of a_b tea", "<|endoftext|> tea", "NOT (tea)", "te*"]
)
async def test_nothing_in_a_query_is_an_operator(world: World, query: str) -> None:
    await world.open()
    await world.remember("tea", "a")
    assert await world.recall(query) == (["a"] if "tea" in query else [])


async def test_a_lone_character_of_chinese_finds_its_memory(world: World) -> None:
    await world.open()
    await world.remember("他喜欢喝茶", "a")
    assert await world.recall("茶") == []
    await world.remember("茶", "b")
    assert await world.recall("茶") == ["b"]


async def test_a_very_long_query_is_answered(world: World) -> None:
    await world.open()
    await world.remember("tea", "a")
    words = " ".join(f"w{number}" for number in range(9_000))
    assert await world.recall(f"{words} tea") == ["a"]


async def test_a_long_query_leaves_the_event_loop_to_others_however_little_there_is_to_find(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    async def in_thread(function: Any, *arguments: Any) -> Any:
        threads.append(function.__name__)
        return function(*arguments)

    monkeypatch.setattr(asyncio, "to_thread", in_thread)
    await world.open()
    await world.remember("tea", "a")
    assert await world.recall("which tea is it that the user likes") == ["a"]
    assert "rank_all" not in threads
    assert await world.recall("tea " + "word " * 4_000) == ["a"]
    assert threads.count("rank_all") == 1


# Preview and explanation


async def test_a_preview_needs_no_session_and_records_nothing(world: World) -> None:
    await world.remember("tea", "a")
    request = PolicyRequest(lexical_profile=COVERAGE_PROFILE, min_score=0.5)
    found = await world.app.recall.preview(world.call, "tea time", request)
    assert [(hit.node.node_id, hit.score) for hit in found.hits] == [("a", 0.5)]
    assert (await world.app.recall.preview(world.call, "tea time today", request)).hits == ()
    assert await world.app.access.usage(world.call, [], after=NodeRef("", 0), limit=9) == []


async def test_an_explanation_says_what_cut_a_memory_off(world: World) -> None:
    await world.open(max_results=1)
    await world.remember("tea tea tea", "best")
    await world.remember("tea and many other words in a long sentence", "next")
    retired = await world.retire(await world.remember("tea once", "retired"))

    async def cut(node_id: str, query: str = "tea", **more: Any) -> LexicalCut | None:
        found = await world.app.recall.explain(world.call, "assistant", node_id, query, **more)
        assert found.token == await world.app.repository.token(world.call)
        return found.lexical.cut

    assert await cut("best") is None
    assert await cut("next") is LexicalCut.LIMIT
    assert await cut("next", "coffee") is LexicalCut.NO_MATCH
    assert await cut("best", filter=LexicalFilter(excluded_ids=frozenset({"best"}))) is LexicalCut.EXCLUDED_ID
    assert await cut("retired") is LexicalCut.NOT_INDEXED
    explained = await world.app.recall.explain(world.call, "assistant", "retired", "tea")
    assert explained.node.ref == retired.ref
    with refused(Reason.NODE_NOT_FOUND, node_id="missing"):
        await cut("missing")
