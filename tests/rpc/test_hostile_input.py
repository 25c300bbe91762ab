"""What a careless or hostile client may send: refused with the right reason and nothing changed, or plain text."""

import itertools
import string

import pytest

from durable_memory.domain.errors import Reason
from durable_memory.domain.lexical.profiles import BM25F_PROFILE, COVERAGE_PROFILE
from durable_memory.domain.lexical.query import QUERY_MAX_TERMS
from durable_memory.domain.limits import QUERY_MAX_BYTES
from durablememory.v1 import candidate_service_pb2 as candidate_pb
from durablememory.v1 import memory_service_pb2 as memory_pb
from durablememory.v1 import node_pb2
from durablememory.v1 import recall_service_pb2 as recall_pb
from durablememory.v1 import repository_service_pb2 as repository_pb
from durablememory.v1 import session_service_pb2 as session_pb
from tests.rpc.every_rpc import populate, requests
from tests.rpc.messages import call, change_token, draft, manual_evidence, namespace, remember, turn
from tests.rpc.reflected import reflected_rpcs
from tests.rpc.refusals import refused

NAN, INFINITY = float("nan"), float("inf")
PLAIN_TEXT = [
    "install.sh | bash",
    "@foo:{bar}",
    "50% of a_b",
    "<|endoftext|>",
    "猫",
    "'; DROP TABLE node; --",
    "NEAR(a b) AND \"c\"*",
    "\\x00 %s {0} $1",
    "a\u202eb\u200bc",
    "🙂🙂 party 🙂",
]  # fmt: skip


@pytest.fixture
async def stubs(server_app):
    return await server_app.stubs()


@pytest.fixture
async def over_memory(serve_application):
    """For what is refused before any store is asked."""
    return await (await serve_application("memory:")).stubs()


def create(memory, **fields):
    return {"create": {"memory": memory, **fields}}


def strings_of(message, path=""):
    """(holder, field descriptor, index or key, path) of every text in a request, nested ones included."""
    for field, value in message.ListFields():
        name = f"{path}{field.name}"
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            for key in value:
                yield value, field, key, name
        elif field.type == field.TYPE_STRING:
            places = range(len(value)) if field.is_repeated else [None]
            for place in places:
                yield (value, field, place, f"{name}[{place}]") if field.is_repeated else (message, field, None, name)
        elif field.type == field.TYPE_MESSAGE:
            for place, part in enumerate(value if field.is_repeated else [value]):
                yield from strings_of(part, f"{name}[{place}]." if field.is_repeated else f"{name}.")


async def test_nul_anywhere_in_any_request_is_refused_and_changes_nothing(stubs):
    known = await populate(stubs, namespace())
    rpcs = {rpc.name: rpc for rpc in await reflected_rpcs(stubs.channel)}
    token = await change_token(stubs)
    tried = 0

    for name, request in requests(namespace(), known).items():
        if name == "TransferService.ImportNamespace":
            continue  # its records are covered where they are decoded
        for number in range(len(list(strings_of(request)))):
            spoiled = type(request)()
            spoiled.CopyFrom(request)
            holder, field, place, path = list(strings_of(spoiled))[number]
            if place is None:
                setattr(holder, field.name, getattr(holder, field.name) + "\0")
            else:
                holder[place] += "\0"
            async with refused(Reason.INVALID_FIELD) as info:
                await rpcs[name].call(stubs.channel, spoiled)
            assert info.metadata["field"] == path, name
            tried += 1
    assert tried > 150
    assert await change_token(stubs) == token


@pytest.mark.parametrize(
    "bad",
    ["", " \t", "a\nb", "a\x1b[31m", "a\x7fb", "\x85", "x" * 257, "é" * 129],
    ids=["empty", "blank", "newline", "escape", "delete", "next line", "257 bytes", "258 bytes"],
)
async def test_ids_out_of_form_are_refused(over_memory, bad):
    reason = Reason.LIMIT_EXCEEDED if len(bad) > 100 else Reason.INVALID_FIELD
    token = await change_token(over_memory)

    async with refused(reason, field="node_id"):
        await remember(over_memory, node_id=bad)
    async with refused(reason, field="session_id"):
        await over_memory.sessions.OpenSession(session_pb.OpenSessionRequest(**call(session_id=bad)))
    async with refused(reason, field="namespace.scope_id"):
        await change_token(over_memory, namespace(scope=bad))
    async with refused(reason, field="operations[0].create.node_id"):
        await over_memory.repository.ApplyChangeSet(
            repository_pb.ApplyChangeSetRequest(
                **call(operations=[create(draft(evidence=[manual_evidence()]), node_id=bad)])
            )
        )
    assert await change_token(over_memory) == token


@pytest.mark.parametrize(
    ("memory", "reason", "field"),
    [
        (draft("x" * 65_537), Reason.LIMIT_EXCEEDED, "content"),
        (draft("é" * 32_769), Reason.LIMIT_EXCEEDED, "content"),
        (draft(""), Reason.INVALID_FIELD, "content"),
        (draft(" \n\t\u3000"), Reason.INVALID_FIELD, "content"),
        (draft("a\0b"), Reason.INVALID_FIELD, "content"),
        (draft(kind=0), Reason.INVALID_FIELD, "kind"),
        (draft(kind=7), Reason.INVALID_FIELD, "kind"),
        (draft(confidence=NAN), Reason.INVALID_FIELD, "confidence"),
        (draft(confidence=INFINITY), Reason.INVALID_FIELD, "confidence"),
        (draft(importance=-INFINITY), Reason.INVALID_FIELD, "importance"),
        (draft(importance=1.0000001), Reason.INVALID_FIELD, "importance"),
        (draft(confidence=-0.1), Reason.INVALID_FIELD, "confidence"),
        (draft(surroundings=["x"] * 5), Reason.LIMIT_EXCEEDED, "surroundings"),
        (draft(surroundings=["x", "y" * 4_097]), Reason.LIMIT_EXCEEDED, "surroundings[1]"),
        (draft(surroundings=[""]), Reason.INVALID_FIELD, "surroundings[0]"),
        (draft(author="x" * 257), Reason.LIMIT_EXCEEDED, "author"),
        (draft(labels={f"k{n}": "" for n in range(65)}), Reason.LIMIT_EXCEEDED, "labels"),
        (draft(labels={"": "v"}), Reason.INVALID_FIELD, "labels"),
        (draft(labels={"k" * 129: "v"}), Reason.LIMIT_EXCEEDED, "labels"),
        (draft(labels={"k": "v" * 1_025}), Reason.LIMIT_EXCEEDED, "labels"),
        (draft(labels={"dm.decision": "rejected"}), Reason.INVALID_FIELD, "labels"),
        (draft(occurred_at={"seconds": 253_402_300_800}), Reason.INVALID_FIELD, "occurred_at"),
        (draft(occurred_at={"seconds": -62_135_596_801}), Reason.INVALID_FIELD, "occurred_at"),
        (draft(occurred_at={"nanos": 1_000_000_000}), Reason.INVALID_FIELD, "occurred_at"),
        (draft(occurred_at={"nanos": -1}), Reason.INVALID_FIELD, "occurred_at"),
        (draft(evidence=[turn(n) for n in range(64)]), Reason.LIMIT_EXCEEDED, "evidence"),
        (draft(evidence=[turn(1), turn(1)]), Reason.INVALID_FIELD, "evidence[1].uri"),
        (draft(evidence=[turn(kind=0)]), Reason.INVALID_FIELD, "evidence[0].kind"),
        (draft(evidence=[turn(uri="")]), Reason.INVALID_FIELD, "evidence[0].uri"),
        (draft(evidence=[turn(uri="x" * 2_049)]), Reason.LIMIT_EXCEEDED, "evidence[0].uri"),
        (draft(evidence=[turn(uri="dm:decision/x")]), Reason.INVALID_FIELD, "evidence[0].uri"),
        (draft(evidence=[turn(digest="sha256:xyz")]), Reason.INVALID_FIELD, "evidence[0].digest"),
        (draft(evidence=[turn(digest="md5:" + "0" * 32)]), Reason.INVALID_FIELD, "evidence[0].digest"),
        (draft(evidence=[turn(body=b"")]), Reason.INVALID_FIELD, "evidence[0].body"),
        (draft(evidence=[turn(body=b"x" * 1_048_577)]), Reason.LIMIT_EXCEEDED, "evidence[0].body"),
        (
            draft(evidence=[node_pb2.Evidence(uri="u", kind=node_pb2.EVIDENCE_KIND_ARTIFACT)]),
            Reason.INVALID_FIELD,
            "evidence[0].source",
        ),
    ],
)
async def test_a_memory_out_of_form_is_refused_by_its_field_wherever_it_is_stated(over_memory, memory, reason, field):
    token = await change_token(over_memory)

    async with refused(reason, field=f"memory.{field}"):
        await remember(over_memory, memory=memory)
    stated = memory
    memory = node_pb2.MemoryDraft()
    memory.CopyFrom(stated)
    if field == "evidence" or not memory.evidence:  # a proposal needs some, and may have one more
        memory.evidence.add().CopyFrom(turn(64))
    async with refused(reason, field=f"proposals[1].memory.{field}"):
        proposals = [{"memory": draft("fine", evidence=[turn()])}, {"memory": memory}]
        await over_memory.candidates.ProposeCandidates(
            candidate_pb.ProposeCandidatesRequest(**call(proposals=proposals))
        )
    async with refused(reason, field=f"operations[1].create.memory.{field}"):
        operations = [create(draft("fine")), create(memory)]
        await over_memory.repository.ApplyChangeSet(repository_pb.ApplyChangeSetRequest(**call(operations=operations)))
    assert await change_token(over_memory) == token


@pytest.mark.parametrize(
    ("operations", "reason", "metadata"),
    [
        ([], Reason.INVALID_FIELD, {"field": "operations"}),
        (
            [create(draft(f"{n}", evidence=[turn()])) for n in range(129)],
            Reason.LIMIT_EXCEEDED,
            {"field": "operations", "limit": 128, "actual": 129, "unit": "items"},
        ),
        ([{}], Reason.INVALID_FIELD, {"field": "operations[0].operation"}),
        ([{"create": {}}], Reason.INVALID_FIELD, {"field": "operations[0].create.memory"}),
        ([create(draft(), status=0)], Reason.INVALID_FIELD, {"field": "operations[0].create.status"}),
        (
            [create(draft(), relations=[{"kind": 4, "node_id": "a"}] * 257)],
            Reason.LIMIT_EXCEEDED,
            {"field": "operations[0].create.relations"},
        ),
        (
            [create(draft(), relations=[{"kind": 9, "node_id": "a"}])],
            Reason.INVALID_FIELD,
            {"field": "operations[0].create.relations[0].kind"},
        ),
        (
            [{"activate": {"node_id": "a"}}],
            Reason.INVALID_FIELD,
            {"field": "operations[0].activate.expected_revision"},
        ),
        (
            [{"corroborate": {"node_id": "a", "expected_revision": 1}}],
            Reason.INVALID_FIELD,
            {"field": "operations[0].corroborate.evidence"},
        ),
        (
            [{"revise": {"node_id": "a", "expected_revision": 1, "evidence": [turn()]}}],
            Reason.INVALID_FIELD,
            {"field": "operations[0].revise.kind"},
        ),
        (
            [{"revise": {"node_id": "a", "expected_revision": 1, "kind": 1}}],
            Reason.INVALID_FIELD,
            {"field": "operations[0].revise.evidence"},
        ),
        (
            [
                {
                    "revise": {
                        "node_id": "a",
                        "expected_revision": 1,
                        "kind": 1,
                        "set_labels": {"k": "v"},
                        "remove_labels": ["k"],
                    }
                }
            ],
            Reason.INVALID_FIELD,
            {"field": "operations[0].revise.remove_labels"},
        ),
        (
            [{"revise": {"node_id": "a", "expected_revision": 1, "kind": 1, "content": ""}}],
            Reason.INVALID_FIELD,
            {"field": "operations[0].revise.content"},
        ),
        (
            [{"revise": {"node_id": "a", "expected_revision": 1, "kind": 1, "confidence": NAN}}],
            Reason.INVALID_FIELD,
            {"field": "operations[0].revise.confidence"},
        ),
        (
            [{"add_relation": {"node_id": "a", "expected_revision": 1, "relation": {"kind": 4}}}],
            Reason.INVALID_FIELD,
            {"field": "operations[0].add_relation.relation.node_id"},
        ),
        (
            [{"add_relation": {"node_id": "a", "expected_revision": 1, "relation": {"kind": 4, "node_id": "a"}}}],
            Reason.RELATION_INVALID,
            {"node_id": "a", "target_node_id": "a", "relation": "RELATED_TO"},
        ),
        (
            [{"add_relation": {"node_id": "a", "expected_revision": 1, "relation": {"kind": 4, "node_id": "b"}}}],
            Reason.RELATION_INVALID,
            {"node_id": "a", "target_node_id": "b", "relation": "RELATED_TO"},
        ),
        (
            [{"set_status": {"node_id": "a", "expected_revision": 1, "status": 0}}],
            Reason.INVALID_FIELD,
            {"field": "operations[0].set_status.status"},
        ),
        (
            [{"set_status": {"node_id": "a", "expected_revision": 1, "status": node_pb2.NODE_STATUS_ACTIVE}}],
            Reason.INVALID_TRANSITION,
            {"node_id": "a", "to": "ACTIVE"},
        ),
        (
            [create(draft(evidence=[turn(occurred_at={"seconds": 1_700_000_001})]))],
            Reason.INVALID_FIELD,
            {"field": "operations[0].create.memory.evidence[0].occurred_at"},
        ),
    ],
)
async def test_a_change_set_out_of_form_is_refused_and_changes_nothing(stubs, operations, reason, metadata):
    await remember(stubs, "a", node_id="a", memory=draft("a", occurred_at={"seconds": 1}))
    await remember(stubs, "b", node_id="b")
    token = await change_token(stubs)
    late = metadata.get("field", "").endswith("occurred_at")
    fields = {"occurred_at": {"seconds": 1_700_000_000}} if late else {}

    async with refused(reason, **metadata):
        await stubs.repository.ApplyChangeSet(
            repository_pb.ApplyChangeSetRequest(**call(operations=operations, **fields))
        )
    assert await change_token(stubs) == token


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", Reason.INVALID_FIELD),
        ("  \n", Reason.INVALID_FIELD),
        ("?!... --- \u2603", Reason.INVALID_FIELD),
        ("tea\0", Reason.INVALID_FIELD),
        ("x" * (QUERY_MAX_BYTES + 1), Reason.LIMIT_EXCEEDED),
    ],
    ids=["empty", "blank", "symbols", "nul", "one word too long"],
)
async def test_a_query_without_words_or_bounds_is_refused(stubs, query, reason):
    await stubs.sessions.OpenSession(session_pb.OpenSessionRequest(**call(session_id="s")))
    with_session = {"namespace": namespace(), "session_id": "s", "query": query}

    for calling in (
        stubs.recall.ActiveRecall(recall_pb.ActiveRecallRequest(**with_session)),
        stubs.recall.ExplainRecall(recall_pb.ExplainRecallRequest(**with_session, node_id="a")),
        stubs.recall.PreviewRecall(recall_pb.PreviewRecallRequest(namespace=namespace(), query=query)),
    ):
        async with refused(reason, field="query"):
            await calling


@pytest.mark.parametrize("profile", [BM25F_PROFILE, COVERAGE_PROFILE])
@pytest.mark.parametrize("text", PLAIN_TEXT, ids=range(len(PLAIN_TEXT)))
async def test_text_that_looks_like_a_command_is_remembered_and_found_as_text(stubs, text, profile):
    await remember(stubs, "Something else entirely.")
    citation = await remember(stubs, text)

    answer = await stubs.recall.PreviewRecall(
        recall_pb.PreviewRecallRequest(namespace=namespace(), query=text, policy={"lexical_profile": profile})
    )

    assert answer.result.hits[0].citation == citation
    assert answer.result.hits[0].content == text


@pytest.mark.parametrize("profile", [BM25F_PROFILE, COVERAGE_PROFILE])
async def test_a_query_of_58_000_words_and_more_is_answered_by_few_of_them(stubs, profile):
    await stubs.sessions.OpenSession(
        session_pb.OpenSessionRequest(**call(session_id="s", policy={"lexical_profile": profile}))
    )
    citation = await remember(stubs, "the word in question is needle")
    four_letters = ("".join(word) for word in itertools.product(string.ascii_lowercase, repeat=4))
    distinct = " ".join(itertools.islice(four_letters, 58_000))
    single = " ".join(itertools.islice(itertools.cycle(string.ascii_lowercase), 500_000))
    for filler in (distinct, single):
        query = f"{filler} needle"
        assert 290_000 < len(query) <= QUERY_MAX_BYTES
        request = recall_pb.PreviewRecallRequest(
            namespace=namespace(), query=query, policy={"lexical_profile": profile}
        )

        answer = await stubs.recall.PreviewRecall(request)
        explained = await stubs.recall.ExplainRecall(
            recall_pb.ExplainRecallRequest(namespace=namespace(), session_id="s", node_id=citation.node_id, query=query)
        )

        assert [hit.citation for hit in answer.result.hits] == [citation]
        terms = [term.term for term in explained.explanation.terms]
        assert "needl" in "".join(terms)
        assert len(terms) <= QUERY_MAX_TERMS


async def test_content_at_its_very_bound_is_kept_whole(stubs):
    content = "猫" * 21_845 + "x"
    assert len(content.encode()) == 65_536

    citation = await remember(stubs, content)

    answer = await stubs.memories.GetMemory(memory_pb.GetMemoryRequest(namespace=namespace(), citation=citation))
    assert answer.node.content == content


async def test_equal_text_in_another_normal_form_is_equal_content(stubs):
    composed = await remember(stubs, "caf\u00e9")

    decomposed = await remember(stubs, "cafe\u0301")

    assert decomposed == composed


async def test_a_page_token_of_another_call_is_refused_by_every_listing(stubs):
    for name in "abc":
        await remember(stubs, name, node_id=name)
    first = await stubs.repository.ListNodes(repository_pb.ListNodesRequest(namespace=namespace(), page_size=1))
    known = await populate(stubs, namespace(scope="other"))

    tried = 0
    for rpc in await reflected_rpcs(stubs.channel):
        if "page_token" not in rpc.request_class.DESCRIPTOR.fields_by_name or rpc.method == "ListNodes":
            continue
        request = requests(namespace(), known)[rpc.name]
        request.page_token = first.next_page_token
        async with refused(Reason.INVALID_PAGE_TOKEN):
            await rpc.call(stubs.channel, request)
        tried += 1
    assert tried >= 5
