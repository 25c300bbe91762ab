"""MemoryService: one memory in one call, through a real channel."""

import pytest

from durable_memory.domain.errors import Reason
from durablememory.v1 import change_set_pb2, decision_pb2, node_pb2
from durablememory.v1 import memory_service_pb2 as pb
from durablememory.v1 import repository_service_pb2 as repository_pb
from tests.rpc.messages import call, change_token, draft, manual, namespace, remember, request_id, turn
from tests.rpc.refusals import refused


@pytest.fixture
async def stubs(server_app):
    return await server_app.stubs()


async def read(stubs, citation):
    return await stubs.memories.GetMemory(pb.GetMemoryRequest(namespace=namespace(), citation=citation))


async def test_what_is_remembered_is_active_and_says_who_decided(stubs):
    answer = await stubs.memories.Remember(
        pb.RememberRequest(
            **call(
                memory=draft(
                    "The user prefers tea.",
                    surroundings=["What do you drink?"],
                    author="user-1",
                    confidence=0.75,
                    labels={"type": "preference"},
                    evidence=[turn(7)],
                ),
                node_id="prefers-tea",
                decision=manual("said so"),
            )
        )
    )

    assert answer.outcome == pb.REMEMBER_OUTCOME_CREATED
    assert answer.change_token.namespace_revision == 1
    assert answer.citation.node_id == "prefers-tea"
    assert answer.citation.canonical.startswith("dm1:1:prefers-tea@1#")
    got = await read(stubs, answer.citation)
    node = got.node
    assert (node.id, node.revision, node.status) == ("prefers-tea", 1, node_pb2.NODE_STATUS_ACTIVE)
    assert node.content == "The user prefers tea."
    assert list(node.surroundings) == ["What do you drink?"]
    assert (node.author, node.confidence, node.importance) == ("user-1", 0.75, 0.5)
    assert dict(node.labels) == {"type": "preference"}
    assert node.decided_by == "development"
    source, decision = node.evidence
    assert (source.uri, source.kind) == ("session:demo/turn/7", node_pb2.EVIDENCE_KIND_SESSION_TURN)
    assert source.digest.startswith("sha256:")
    assert decision.uri.startswith("dm:decision/development/")
    assert decision.kind == node_pb2.EVIDENCE_KIND_MANUAL
    assert got.current_citation == answer.citation
    assert got.current_status == node_pb2.NODE_STATUS_ACTIVE
    assert got.change_token == answer.change_token


async def test_remembering_equal_content_again_is_a_no_op(stubs):
    first = await remember(stubs)
    token = await change_token(stubs)

    again = await stubs.memories.Remember(pb.RememberRequest(**call(memory=draft())))

    assert again.outcome == pb.REMEMBER_OUTCOME_UNCHANGED
    assert again.citation == first
    assert await change_token(stubs) == token


async def test_a_repeated_request_id_returns_the_first_answer_whatever_happened_since(stubs):
    request = pb.RememberRequest(**call(memory=draft()))
    first = await stubs.memories.Remember(request)
    await stubs.memories.RetireMemory(pb.RetireMemoryRequest(**call(citation=first.citation)))

    assert await stubs.memories.Remember(request) == first


async def test_a_request_id_that_comes_with_another_command_is_refused(stubs):
    request = pb.RememberRequest(**call(memory=draft()))
    await stubs.memories.Remember(request)
    request.memory.content = "The user prefers coffee."

    async with refused(Reason.IDEMPOTENCY_KEY_REUSED, request_id=request.request_id, method="Remember"):
        await stubs.memories.Remember(request)


async def test_a_remembered_node_id_that_is_taken_is_refused_without_an_operation_index(stubs):
    await remember(stubs, node_id="drink")

    async with refused(Reason.NODE_ALREADY_EXISTS, node_id="drink") as info:
        await remember(stubs, "The user prefers coffee.", node_id="drink")
    assert "operation_index" not in info.metadata


async def test_remember_compares_the_namespace_revision_that_the_caller_expects(stubs):
    await remember(stubs, expected_namespace_revision=0)

    async with refused(Reason.REVISION_CONFLICT, expected=0, actual=1):
        await remember(stubs, "The user prefers coffee.", expected_namespace_revision=0)


async def test_put_creates_revises_and_leaves_alone(stubs):
    async def put(content, **fields):
        return await stubs.memories.PutMemory(
            pb.PutMemoryRequest(**call(node_id="drink", memory=draft(content), **fields))
        )

    created = await put("tea", expected_revision=0)
    revised = await put("coffee", revision_kind=change_set_pb2.REVISION_KIND_REFINEMENT, expected_revision=1)
    unchanged = await put("coffee")

    assert [created.outcome, revised.outcome, unchanged.outcome] == [
        pb.PUT_MEMORY_OUTCOME_CREATED,
        pb.PUT_MEMORY_OUTCOME_REVISED,
        pb.PUT_MEMORY_OUTCOME_UNCHANGED,
    ]
    assert revised.citation.node_revision == 2
    assert unchanged.citation == revised.citation
    async with refused(Reason.REVISION_CONFLICT, node_id="drink", expected=0, actual=2):
        await put("water", expected_revision=0)


async def test_put_refuses_another_kind_and_names_the_field_that_was_sent(stubs):
    await remember(stubs, node_id="drink")

    async with refused(Reason.INVALID_FIELD, field="memory.kind"):
        await stubs.memories.PutMemory(
            pb.PutMemoryRequest(**call(node_id="drink", memory=draft("tea", kind=node_pb2.NODE_KIND_EPISODIC)))
        )


async def test_a_correction_keeps_the_old_citation_readable(stubs):
    old = await remember(stubs, "The user lives in Berlin.")

    new = await stubs.memories.ReviseMemory(
        pb.ReviseMemoryRequest(
            **call(
                citation={"canonical": old.canonical},
                revision_kind=change_set_pb2.REVISION_KIND_CORRECTION,
                content="The user lives in Bern.",
                set_labels={"topic": "home"},
                evidence=[turn(3)],
            )
        )
    )

    then = await read(stubs, old)
    now = await read(stubs, new.citation)
    assert then.node.content == "The user lives in Berlin."
    assert then.current_citation == new.citation
    assert then.node.superseded_at_namespace_revision == new.change_token.namespace_revision
    assert now.node.content == "The user lives in Bern."
    assert dict(now.node.labels) == {"topic": "home"}
    assert not now.node.HasField("superseded_at_namespace_revision")


async def test_present_and_empty_surroundings_are_removed_and_absent_ones_stay(stubs):
    old = await remember(stubs, memory=draft(surroundings=["before"]))
    revise = pb.ReviseMemoryRequest(
        **call(citation=old, revision_kind=change_set_pb2.REVISION_KIND_REFINEMENT, confidence=0.9)
    )
    kept = await stubs.memories.ReviseMemory(revise)
    assert list((await read(stubs, kept.citation)).node.surroundings) == ["before"]

    revise = pb.ReviseMemoryRequest(
        **call(citation=kept.citation, revision_kind=change_set_pb2.REVISION_KIND_REFINEMENT, surroundings={})
    )
    removed = await stubs.memories.ReviseMemory(revise)
    assert list((await read(stubs, removed.citation)).node.surroundings) == []


async def test_a_stale_citation_is_a_conflict_that_names_the_actual_revision(stubs):
    old = await remember(stubs)
    await stubs.memories.RetireMemory(pb.RetireMemoryRequest(**call(citation=old)))

    async with refused(Reason.REVISION_CONFLICT, node_id=old.node_id, expected=1, actual=2):
        await stubs.memories.RetireMemory(pb.RetireMemoryRequest(**call(citation=old)))


async def test_retire_archives_and_reactivate_brings_back(stubs):
    active = await remember(stubs)
    retired = await stubs.memories.RetireMemory(
        pb.RetireMemoryRequest(**call(citation=active, decision=manual("not needed")))
    )
    assert (await read(stubs, active)).current_status == node_pb2.NODE_STATUS_ARCHIVED

    back = await stubs.memories.ReactivateMemory(pb.ReactivateMemoryRequest(**call(citation=retired.citation)))
    same = await stubs.memories.ReactivateMemory(pb.ReactivateMemoryRequest(**call(citation=back.citation)))

    assert back.outcome == pb.REACTIVATE_MEMORY_OUTCOME_REACTIVATED
    assert same.outcome == pb.REACTIVATE_MEMORY_OUTCOME_UNCHANGED
    assert same.citation == back.citation


async def test_supersede_relates_both_ways_and_freezes_the_old_one(stubs):
    old = await remember(stubs, "The user works at Initech.")

    answer = await stubs.memories.SupersedeMemory(
        pb.SupersedeMemoryRequest(**call(citation=old, memory=draft("The user works at Initrode."), node_id="job"))
    )

    new = (await read(stubs, answer.citation)).node
    frozen = (await read(stubs, answer.superseded_citation)).node
    assert [(item.kind, item.node_id) for item in new.relations] == [(node_pb2.RELATION_KIND_SUPERSEDES, old.node_id)]
    assert [(item.kind, item.node_id) for item in frozen.relations] == [(node_pb2.RELATION_KIND_SUPERSEDED_BY, "job")]
    assert frozen.status == node_pb2.NODE_STATUS_SUPERSEDED
    async with refused(Reason.NODE_FROZEN, node_id=old.node_id, status="SUPERSEDED"):
        await stubs.memories.ReviseMemory(
            pb.ReviseMemoryRequest(
                **call(
                    citation=answer.superseded_citation,
                    revision_kind=change_set_pb2.REVISION_KIND_CORRECTION,
                    content="The user works.",
                )
            )
        )


async def test_a_verification_names_its_rule_in_the_evidence(stubs):
    rule = decision_pb2.Decision(kind=decision_pb2.DECISION_KIND_VERIFICATION, decider="rule:ci-green@3")

    citation = await remember(stubs, decision=rule)

    (evidence,) = (await read(stubs, citation)).node.evidence
    assert evidence.kind == node_pb2.EVIDENCE_KIND_VERIFICATION
    assert evidence.uri.startswith("dm:decision/rule:ci-green@3/")


@pytest.mark.parametrize(
    ("decision", "field"),
    [
        ({"kind": 0}, "decision.kind"),
        ({"kind": 9}, "decision.kind"),
        ({"kind": "DECISION_KIND_VERIFICATION"}, "decision.decider"),
        ({"kind": "DECISION_KIND_VERIFICATION", "decider": "ci-green"}, "decision.decider"),
        ({"kind": "DECISION_KIND_MANUAL", "decider": "rule:ci-green@3"}, "decision.decider"),
        ({"kind": "DECISION_KIND_MANUAL", "decider": "a\nb"}, "decision.decider"),
    ],
)
async def test_a_decision_out_of_form_is_refused_by_its_field(stubs, decision, field):
    async with refused(Reason.INVALID_FIELD, field=field):
        await remember(stubs, decision=decision_pb2.Decision(**decision))


async def test_a_time_ahead_of_the_server_is_refused_by_the_field_that_was_sent(stubs):
    async with refused(Reason.INVALID_FIELD, field="memory.occurred_at") as info:
        await remember(stubs, memory=draft(occurred_at={"seconds": 32_503_680_000}))
    assert set(info.metadata) == {"field", "given", "bound"}
    async with refused(Reason.INVALID_FIELD, field="memory.evidence[1].occurred_at"):
        await remember(stubs, memory=draft(evidence=[turn(1), turn(2, occurred_at={"seconds": 32_503_680_000})]))


async def test_times_are_kept_to_the_microsecond(stubs):
    citation = await remember(stubs, memory=draft(occurred_at={"seconds": -1, "nanos": 123_456_789}))

    occurred = (await read(stubs, citation)).node.occurred_at
    assert (occurred.seconds, occurred.nanos) == (-1, 123_456_000)


async def test_a_citation_may_come_as_its_string_as_its_parts_or_as_both(stubs):
    citation = await remember(stubs)

    for given in (
        {"canonical": citation.canonical},
        {
            "node_id": citation.node_id,
            "node_revision": citation.node_revision,
            "content_digest": citation.content_digest,
        },
        citation,
    ):
        assert (await read(stubs, given)).current_citation == citation


async def test_a_citation_that_contradicts_itself_is_refused(stubs):
    citation = await remember(stubs)
    citation.node_revision = 2

    async with refused(Reason.INVALID_FIELD, field="citation.node_revision"):
        await read(stubs, citation)


async def test_a_citation_with_another_digest_or_revision_names_nothing(stubs):
    citation = await remember(stubs)
    parts = {"node_id": citation.node_id, "node_revision": 1, "content_digest": "0" * 64}

    async with refused(Reason.REVISION_NOT_FOUND, node_id=citation.node_id, revision=1):
        await read(stubs, parts)
    async with refused(Reason.REVISION_NOT_FOUND, node_id=citation.node_id, revision=2):
        await read(stubs, {**parts, "node_revision": 2, "content_digest": citation.content_digest})


async def test_reads_of_an_unwritten_namespace_answer_from_revision_0(stubs):
    where = namespace(scope="untouched")
    token = await change_token(stubs, where)

    answer = await stubs.repository.ListNodes(repository_pb.ListNodesRequest(namespace=where))

    assert token.namespace_revision == 0
    assert token.history_id
    assert answer.change_token == token
    assert not answer.nodes


async def test_a_mutation_without_a_request_id_is_refused(stubs):
    async with refused(Reason.INVALID_FIELD, field="request_id"):
        await stubs.memories.Remember(pb.RememberRequest(namespace=namespace(), memory=draft()))
    async with refused(Reason.LIMIT_EXCEEDED, field="request_id", limit=256, actual=257, unit="bytes"):
        await stubs.memories.Remember(pb.RememberRequest(namespace=namespace(), memory=draft(), request_id="r" * 257))
    assert request_id()


async def test_labels_that_a_revision_would_have_too_many_of_are_refused_by_the_field_that_adds_them(stubs):
    citation = await remember(stubs, memory=draft(labels={f"k{number}": "" for number in range(60)}))

    async with refused(Reason.LIMIT_EXCEEDED, field="set_labels", limit=64, actual=65) as info:
        await stubs.memories.ReviseMemory(
            pb.ReviseMemoryRequest(
                **call(
                    citation=citation,
                    revision_kind=change_set_pb2.REVISION_KIND_REFINEMENT,
                    set_labels={f"new{number}": "" for number in range(5)},
                )
            )
        )
    assert "operation_index" not in info.metadata


async def test_a_namespace_has_a_largest_size_and_retiring_makes_room(stubs, monkeypatch):
    monkeypatch.setattr("durable_memory.domain.staging.NAMESPACE_MAX_ACTIVE_NODES", 2)
    first = await remember(stubs, "one")
    await remember(stubs, "two")

    async with refused(Reason.NAMESPACE_TOO_LARGE, active_nodes=3, max_active_nodes=2):
        await remember(stubs, "three")
    await stubs.memories.RetireMemory(pb.RetireMemoryRequest(**call(citation=first)))
    await remember(stubs, "three")
