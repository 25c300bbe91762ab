"""RecallService: recall, admission, use, through a real channel."""

from datetime import timedelta

import pytest

from durable_memory.domain.errors import Reason
from durable_memory.domain.lexical.profiles import COVERAGE_PROFILE
from durablememory.v1 import access_pb2, error_reason_pb2, node_pb2, recall_pb2
from durablememory.v1 import memory_service_pb2 as memory_pb
from durablememory.v1 import recall_service_pb2 as pb
from durablememory.v1 import repository_service_pb2 as repository_pb
from durablememory.v1 import session_service_pb2 as session_pb
from durablememory.v1 import transfer_service_pb2 as transfer_pb
from tests.rpc.messages import call, change_token, draft, manual_evidence, namespace, ref, remember
from tests.rpc.refusals import refused

AUTO, LEXICAL, SEMANTIC = (
    recall_pb2.RECALL_MODE_AUTO,
    recall_pb2.RECALL_MODE_LEXICAL,
    recall_pb2.RECALL_MODE_SEMANTIC,
)


@pytest.fixture
async def stubs(server_app):
    """Stubs of a server that has an open session called "assistant"."""
    stubs = await server_app.stubs()
    await stubs.sessions.OpenSession(session_pb.OpenSessionRequest(**call(session_id="assistant")))
    return stubs


async def recall(stubs, query="tea", **fields):
    return await stubs.recall.ActiveRecall(
        pb.ActiveRecallRequest(**{"namespace": namespace(), "session_id": "assistant", "query": query, **fields})
    )


async def preview(stubs, query="tea", **fields):
    return await stubs.recall.PreviewRecall(pb.PreviewRecallRequest(namespace=namespace(), query=query, **fields))


async def begin(stubs, run_id="turn-1"):
    answer = await stubs.sessions.BeginRun(
        session_pb.BeginRunRequest(**call(session_id="assistant", run_id=run_id, host_instance="host-1"))
    )
    return answer.run


async def admit(stubs, context_id, *refs):
    items = [{"node_revision": item} for item in refs]
    return await stubs.recall.AdmitMemories(
        pb.AdmitMemoriesRequest(**call(session_id="assistant", context_id=context_id, items=items))
    )


async def record_use(stubs, context_id, *items):
    return await stubs.recall.RecordUse(
        pb.RecordUseRequest(**call(session_id="assistant", context_id=context_id, items=items))
    )


def ids(answer):
    return [hit.citation.node_id for hit in answer.result.hits]


async def test_a_hit_says_what_it_is_and_how_far_to_trust_it(stubs):
    citation = await remember(
        stubs,
        memory=draft(
            "The user prefers green tea.",
            surroundings=["What do you drink?"],
            author="user-1",
            labels={"type": "preference"},
        ),
    )

    answer = await recall(stubs, include_surroundings=True)

    (hit,) = answer.result.hits
    assert hit.citation == citation
    assert (hit.rank, hit.channel) == (1, recall_pb2.RECALL_CHANNEL_LEXICAL)
    assert hit.lexical.rank == 1
    assert hit.score == hit.lexical.score > 0
    assert hit.trust == recall_pb2.TRUST_UNTRUSTED_HISTORY
    assert (hit.content, hit.author, dict(hit.labels)) == (
        "The user prefers green tea.",
        "user-1",
        {"type": "preference"},
    )
    assert list(hit.surroundings) == ["What do you drink?"]
    assert hit.freshness.age.seconds >= 0
    assert not hit.disputed
    assert answer.result.mode_used == LEXICAL
    assert answer.result.degradation.reason == recall_pb2.DEGRADATION_REASON_SEMANTIC_NOT_CONFIGURED
    assert answer.result.searched_node_count == 1
    assert answer.change_token == await change_token(stubs)
    assert not (await recall(stubs)).result.hits[0].surroundings


async def test_a_recall_after_a_write_sees_it(stubs):
    for number in range(5):
        citation = await remember(stubs, f"tea number {number}")
        assert citation.node_id in ids(await recall(stubs))


async def test_only_active_memories_are_recalled(stubs):
    citation = await remember(stubs)
    await stubs.memories.RetireMemory(memory_pb.RetireMemoryRequest(**call(citation=citation)))

    assert ids(await recall(stubs)) == []


async def test_a_filter_narrows_by_kind_label_time_and_id(stubs):
    await remember(stubs, memory=draft("tea a", labels={"x": "1"}, occurred_at={"seconds": 1_000}), node_id="a")
    await remember(
        stubs,
        memory=draft("tea b", kind=node_pb2.NODE_KIND_EPISODIC, occurred_at={"seconds": 2_000}),
        node_id="b",
    )

    async def found(**filter):
        return sorted(ids(await recall(stubs, filter=filter)))

    assert await found() == ["a", "b"]
    assert await found(kinds=[node_pb2.NODE_KIND_EPISODIC]) == ["b"]
    assert await found(labels={"x": "1"}) == ["a"]
    assert await found(labels={"x": "2"}) == []
    assert await found(occurred={"start": {"seconds": 1_500}}) == ["b"]
    assert await found(occurred={"end": {"seconds": 2_000}}) == ["a"]
    assert await found(updated={"end": {"seconds": 2_000}}) == []
    assert await found(excluded_node_ids=["a"]) == ["b"]


async def test_a_dispute_and_a_relation_are_shown(stubs):
    relations = {"a": ("b", node_pb2.RELATION_KIND_CONFLICTS_WITH), "b": ("a", node_pb2.RELATION_KIND_CONFLICTS_WITH)}
    operations = [
        {
            "create": {
                "node_id": node_id,
                "memory": draft(content, evidence=[manual_evidence()]),
                "status": node_pb2.NODE_STATUS_ACTIVE,
                "relations": [{"kind": relations[node_id][1], "node_id": relations[node_id][0]}],
            }
        }
        for node_id, content in (("a", "prefers tea"), ("b", "hates all hot drinks"))
    ]
    await stubs.repository.ApplyChangeSet(repository_pb.ApplyChangeSetRequest(**call(operations=operations)))

    (hit,) = (await recall(stubs)).result.hits

    assert hit.disputed
    (relation,) = hit.relations
    assert (relation.node_id, relation.status) == ("b", node_pb2.NODE_STATUS_ACTIVE)


async def test_related_memories_come_after_the_hits_that_led_to_them(stubs):
    operations = [
        {
            "create": {
                "node_id": node_id,
                "memory": draft(content, evidence=[manual_evidence()]),
                "status": node_pb2.NODE_STATUS_ACTIVE,
                "relations": [{"kind": node_pb2.RELATION_KIND_RELATED_TO, "node_id": other}],
            }
        }
        for node_id, content, other in (("a", "prefers tea", "b"), ("b", "owns a samovar", "a"))
    ]
    await stubs.repository.ApplyChangeSet(repository_pb.ApplyChangeSetRequest(**call(operations=operations)))

    hits = (await preview(stubs, policy={"related_lookups": 4})).result.hits

    assert [(hit.citation.node_id, hit.channel) for hit in hits] == [
        ("a", recall_pb2.RECALL_CHANNEL_LEXICAL),
        ("b", recall_pb2.RECALL_CHANNEL_RELATED),
    ]
    assert hits[1].related_to_node_id == "a"
    assert not hits[0].HasField("related_to_node_id")


async def test_an_explicit_mode_never_turns_into_another(stubs):
    await remember(stubs)
    await stubs.sessions.OpenSession(
        session_pb.OpenSessionRequest(**call(session_id="words", policy={"mode": LEXICAL}))
    )

    assert not (await recall(stubs, mode=LEXICAL)).result.HasField("degradation")
    async with refused(Reason.SEMANTIC_UNAVAILABLE, cause="SEMANTIC_NOT_CONFIGURED"):
        await recall(stubs, mode=SEMANTIC)
    async with refused(Reason.SEMANTIC_UNAVAILABLE, cause="SEMANTIC_NOT_CONFIGURED"):
        await preview(stubs, policy={"mode": SEMANTIC})
    async with refused(Reason.INVALID_FIELD, field="mode"):
        await recall(stubs, mode=AUTO, session_id="words")


async def test_preview_needs_no_session_and_takes_its_own_policy(stubs):
    await remember(stubs, "tea and cake", node_id="a")
    await remember(stubs, "tea and milk", node_id="b")

    answer = await preview(stubs, "tea milk", policy={"lexical_profile": COVERAGE_PROFILE, "max_results": 1})

    (hit,) = answer.result.hits
    assert (hit.citation.node_id, hit.score) == ("b", 1.0)


async def test_recall_records_nothing(stubs):
    await remember(stubs)
    token = await change_token(stubs)

    for _ in range(3):
        await recall(stubs)
        await preview(stubs)

    assert await change_token(stubs) == token
    usage = await stubs.recall.GetUsageSummary(pb.GetUsageSummaryRequest(namespace=namespace()))
    assert not usage.summaries


async def test_an_explanation_names_terms_score_and_what_cut_the_node_off(stubs):
    await remember(stubs, "green tea", node_id="a")
    await remember(stubs, "coffee", node_id="b")
    retired = await remember(stubs, "black tea", node_id="c")
    await stubs.memories.RetireMemory(memory_pb.RetireMemoryRequest(**call(citation=retired)))

    async def explain(node_id, **fields):
        request = pb.ExplainRecallRequest(
            namespace=namespace(), session_id="assistant", node_id=node_id, query="tea", **fields
        )
        return (await stubs.recall.ExplainRecall(request)).explanation

    hit = await explain("a")
    assert hit.recalled
    assert not hit.HasField("exclusion")
    assert (hit.rank, hit.lexical.rank, hit.matched_share) == (1, 1, 1.0)
    (term,) = hit.terms
    assert (term.term, term.document_count, term.in_own_text, term.in_surroundings) == ("tea", 1, True, False)
    assert hit.vector_state == recall_pb2.VECTOR_STATE_NOT_USED
    assert (await explain("b")).exclusion == recall_pb2.RECALL_EXCLUSION_NO_MATCH
    assert (await explain("c")).exclusion == recall_pb2.RECALL_EXCLUSION_NOT_ACTIVE
    assert (await explain("c")).status == node_pb2.NODE_STATUS_ARCHIVED
    assert (await explain("a", filter={"labels": {"x": "1"}})).exclusion == recall_pb2.RECALL_EXCLUSION_LABEL
    async with refused(Reason.NODE_NOT_FOUND, node_id="z"):
        await explain("z")


async def test_admission_takes_the_current_active_revision_only(stubs):
    run = await begin(stubs)
    good = await remember(stubs, "tea", node_id="a")
    old = await remember(stubs, "coffee", node_id="b")
    retired = await stubs.memories.RetireMemory(memory_pb.RetireMemoryRequest(**call(citation=old)))

    answer = await admit(
        stubs, run.context_id, ref(good), ref(old), ref(retired.citation), {"node_id": "z", "revision": 1}
    )

    admitted, stale, archived, missing = answer.outcomes
    assert admitted.verdict == access_pb2.ADMISSION_VERDICT_ADMITTED
    assert admitted.citation == good
    assert admitted.event_id
    assert [item.verdict for item in (stale, archived, missing)] == [access_pb2.ADMISSION_VERDICT_REFUSED] * 3
    assert stale.error.reason == error_reason_pb2.ERROR_REASON_REVISION_CONFLICT
    assert dict(stale.error.metadata) == {"node_id": "b", "expected": "1", "actual": "2"}
    assert archived.error.reason == error_reason_pb2.ERROR_REASON_INVALID_TRANSITION
    assert dict(archived.error.metadata) == {"node_id": "b", "status": "ARCHIVED"}
    assert missing.error.reason == error_reason_pb2.ERROR_REASON_NODE_NOT_FOUND
    assert stale.event_id == ""
    assert answer.next_context_id not in ("", run.context_id)


async def test_admissions_and_uses_are_counted_per_revision_once_per_context(stubs):
    run = await begin(stubs)
    citation = await remember(stubs, node_id="a")
    token = await change_token(stubs)

    first = await admit(stubs, run.context_id, ref(citation))
    await admit(stubs, run.context_id, ref(citation))
    await admit(stubs, first.next_context_id, ref(citation))
    used = await record_use(stubs, run.context_id, {"citation": {"canonical": citation.canonical}})
    await record_use(stubs, run.context_id, {"node_revision": ref(citation)})

    (outcome,) = used.outcomes
    assert (outcome.verdict, outcome.citation) == (access_pb2.USE_VERDICT_RECORDED, citation)
    usage = await stubs.recall.GetUsageSummary(pb.GetUsageSummaryRequest(namespace=namespace(), node_ids=["a", "z"]))
    (summary,) = usage.summaries
    assert (summary.node_revision, summary.admission_count, summary.use_count) == (ref(citation), 2, 1)
    assert summary.HasField("last_admitted_at")
    assert summary.HasField("last_used_at")
    assert usage.change_token == token


async def test_a_use_named_by_another_digest_is_refused(stubs):
    run = await begin(stubs)
    citation = await remember(stubs, node_id="a")
    wrong = {"node_id": "a", "node_revision": 1, "content_digest": "0" * 64}

    answer = await record_use(
        stubs,
        run.context_id,
        {"citation": wrong},
        {"node_revision": ref(citation), "event_id": "use-1"},
        {"node_revision": {"node_id": "a", "revision": 9}},
    )

    assert [item.verdict for item in answer.outcomes] == [
        access_pb2.USE_VERDICT_REFUSED,
        access_pb2.USE_VERDICT_RECORDED,
        access_pb2.USE_VERDICT_REFUSED,
    ]
    assert answer.outcomes[0].error.reason == error_reason_pb2.ERROR_REASON_REVISION_NOT_FOUND
    again = await record_use(
        stubs, run.context_id, {"node_revision": {"node_id": "a", "revision": 1}, "event_id": "use-1"}
    )
    assert again.outcomes[0].verdict == access_pb2.USE_VERDICT_RECORDED
    other = await remember(stubs, "coffee")
    reused = await record_use(stubs, run.context_id, {"node_revision": ref(other), "event_id": "use-1"})
    assert reused.outcomes[0].error.reason == error_reason_pb2.ERROR_REASON_EVENT_ID_REUSED


async def test_a_revision_beyond_all_that_there_can_be_is_refused_at_once(stubs):
    run = await begin(stubs)
    citation = await remember(stubs, node_id="a")
    beyond = citation.canonical.replace("@1#", f"@{2**53}#")

    async with refused(Reason.INVALID_FIELD, field="items[0].node_revision.revision"):
        await admit(stubs, run.context_id, {"node_id": "a", "revision": 2**53})
    async with refused(Reason.INVALID_FIELD, field="items[0].citation.canonical"):
        await record_use(stubs, run.context_id, {"citation": {"canonical": beyond}})
    largest = await admit(stubs, run.context_id, {"node_id": "a", "revision": 2**53 - 1})
    assert largest.outcomes[0].verdict == access_pb2.ADMISSION_VERDICT_REFUSED
    # What is refused one by one is kept with the request, and an export holds all requests.
    export = stubs.transfer.ExportNamespace(transfer_pb.ExportNamespaceRequest(namespace=namespace()))
    records = [record async for message in export for record in message.records]
    assert records[-1].HasField("footer")


async def test_recall_with_admission_returns_the_stored_hits_to_a_retry(stubs):
    run = await begin(stubs)
    citation = await remember(stubs, "tea a", node_id="a")
    request = pb.ActiveRecallRequest(**call(session_id="assistant", query="tea", admit=True, context_id=run.context_id))

    first = await stubs.recall.ActiveRecall(request)
    await remember(stubs, "tea b", node_id="b")
    again = await stubs.recall.ActiveRecall(request)

    assert ids(first) == ids(again) == ["a"]
    assert [item.citation for item in first.admissions] == [citation]
    assert again.admissions == first.admissions
    assert again.next_context_id == first.next_context_id
    assert again.change_token == first.change_token
    request.query = "coffee"
    async with refused(Reason.IDEMPOTENCY_KEY_REUSED, method="ActiveRecall"):
        await stubs.recall.ActiveRecall(request)


async def test_admission_needs_an_open_run_and_an_open_session(stubs):
    run = await begin(stubs)
    citation = await remember(stubs)
    async with refused(Reason.RUN_NOT_FOUND):
        await admit(stubs, "0" * 64, ref(citation))
    await stubs.sessions.EndRun(
        session_pb.EndRunRequest(**call(session_id="assistant", run_id="turn-1", incarnation=run.incarnation))
    )

    async with refused(Reason.RUN_ENDED, run_id="turn-1", incarnation=run.incarnation):
        await admit(stubs, run.context_id, ref(citation))
    late = await record_use(stubs, run.context_id, {"citation": citation})
    assert late.outcomes[0].verdict == access_pb2.USE_VERDICT_RECORDED
    await stubs.sessions.CloseSession(session_pb.CloseSessionRequest(**call(session_id="assistant")))
    for refuse in (
        admit(stubs, run.context_id, ref(citation)),
        record_use(stubs, run.context_id, {"citation": citation}),
        recall(stubs),
    ):
        async with refused(Reason.SESSION_CLOSED, session_id="assistant"):
            await refuse
    async with refused(Reason.SESSION_NOT_FOUND, session_id="nobody's"):
        await recall(stubs, session_id="nobody's")


@pytest.mark.parametrize(
    ("fields", "reason", "field"),
    [
        ({"session_id": ""}, Reason.INVALID_FIELD, "session_id"),
        ({"mode": 0}, Reason.INVALID_FIELD, "mode"),
        ({"admit": True, "request_id": "r"}, Reason.INVALID_FIELD, "context_id"),
        ({"admit": True, "context_id": "0" * 64}, Reason.INVALID_FIELD, "request_id"),
        ({"filter": {"kinds": [0]}}, Reason.INVALID_FIELD, "filter.kinds[0]"),
        ({"filter": {"kinds": [9]}}, Reason.INVALID_FIELD, "filter.kinds[0]"),
        ({"filter": {"labels": {"a\0": "b"}}}, Reason.INVALID_FIELD, "filter.labels"),
        ({"filter": {"labels": {"a": "b" * 1_025}}}, Reason.LIMIT_EXCEEDED, "filter.labels"),
        (
            {"filter": {"labels": {f"k{number}": "v" for number in range(129)}}},
            Reason.LIMIT_EXCEEDED,
            "filter.labels",
        ),
        ({"filter": {"excluded_node_ids": ["a"] * 129}}, Reason.LIMIT_EXCEEDED, "filter.excluded_node_ids"),
        ({"filter": {"excluded_node_ids": ["a", ""]}}, Reason.INVALID_FIELD, "filter.excluded_node_ids[1]"),
        (
            {"filter": {"occurred": {"start": {"seconds": 5}, "end": {"seconds": 5}}}},
            Reason.INVALID_FIELD,
            "filter.occurred.end",
        ),
        (
            {"filter": {"updated": {"start": {"seconds": 253_402_300_800}}}},
            Reason.INVALID_FIELD,
            "filter.updated.start",
        ),
        ({"filter": recall_pb2.RecallFilter.FromString(b"\xf8\x3f\x01")}, Reason.INVALID_FIELD, "filter"),
    ],
)
async def test_a_recall_out_of_form_is_refused_by_its_field(stubs, fields, reason, field):
    async with refused(reason, field=field):
        await recall(stubs, **fields)


async def test_usage_is_listed_in_pages(stubs):
    run = await begin(stubs)
    refs = [ref(await remember(stubs, f"tea {name}", node_id=name)) for name in "abc"]
    await admit(stubs, run.context_id, *refs)
    request = pb.GetUsageSummaryRequest(namespace=namespace(), page_size=2)

    first = await stubs.recall.GetUsageSummary(request)
    request.page_token = first.next_page_token
    second = await stubs.recall.GetUsageSummary(request)

    assert [item.node_revision.node_id for item in (*first.summaries, *second.summaries)] == ["a", "b", "c"]
    assert second.next_page_token == ""


async def test_a_run_that_nobody_used_for_an_hour_has_ended(serve_application):
    app = await serve_application(manual_clock=True)
    stubs = await app.stubs()
    await stubs.sessions.OpenSession(session_pb.OpenSessionRequest(**call(session_id="assistant")))
    citation = await remember(stubs)
    run = await begin(stubs)
    app.clock.advance(timedelta(hours=1))
    context_id = (await admit(stubs, run.context_id, ref(citation))).next_context_id

    app.clock.advance(timedelta(hours=1, seconds=1))

    async with refused(Reason.RUN_ENDED, run_id="turn-1", incarnation=run.incarnation):
        await admit(stubs, context_id, ref(citation))
    again = await begin(stubs)
    assert again.incarnation != run.incarnation


async def test_freshness_is_the_time_since_the_memory_came_to_be(serve_application):
    app = await serve_application(manual_clock=True)
    stubs = await app.stubs()
    await remember(stubs)

    app.clock.advance(timedelta(days=2, microseconds=7))

    (hit,) = (await preview(stubs)).result.hits
    assert hit.freshness.age.ToTimedelta() == timedelta(days=2, microseconds=7)
