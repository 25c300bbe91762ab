"""Values: what Python sees of the contract's messages, and what it may not send."""

import copy
import dataclasses
import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_memory_client import (
    Citation,
    Decision,
    Draft,
    Evidence,
    EvidenceKind,
    Namespace,
    Node,
    NodeKind,
    NodeStatus,
    RecallFilter,
    RelationKind,
    ServerInfo,
    relate,
)
from durable_memory_client.values.change_set import INVERSE, surroundings_to_proto
from durable_memory_client.values.citation import citation_of
from durable_memory_client.values.memory import draft_of
from durable_memory_client.values.session import policy_of, policy_to_proto
from durable_memory_client.values.times import to_timestamp
from durable_memory_client.values.transfer import ImportChunks, record_of_line, record_to_line
from durablememory.v1 import node_pb2, session_service_pb2, transfer_pb2
from tests.clients.python.messages import DIGEST, hit_value, node

NODE_IDS = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=40)


@given(node_id=NODE_IDS, revisions=st.tuples(st.integers(1, 2**62), st.integers(1, 2**62)))
def test_a_citation_is_its_string(node_id: str, revisions: tuple[int, int]):
    citation = Citation(revisions[0], node_id, revisions[1], DIGEST)
    assert Citation.parse(str(citation)) == citation
    assert Citation.from_proto(citation.to_proto()) == citation


@given(node_id=NODE_IDS)
def test_a_citation_is_written_as_the_server_writes_it(node_id: str):
    from durable_memory.domain.citation import Citation as ServerCitation

    assert str(Citation(7, node_id, 3, DIGEST)) == str(ServerCitation(7, node_id, 3, DIGEST))


@pytest.mark.parametrize(
    "text", ["", "dm1:1:a@1#ff", f"dm1:1:a@0#{DIGEST}", f"dm2:1:a@1#{DIGEST}", f"x dm1:1:a@1#{DIGEST}"]
)
def test_what_is_no_citation_is_refused_before_anything_is_sent(text: str):
    with pytest.raises(ValueError, match="not a citation"):
        citation_of(text)


def test_whatever_has_a_citation_can_be_cited():
    hit = hit_value()
    assert citation_of(hit) == citation_of(hit.citation) == citation_of(str(hit.citation)) == hit.citation


def test_an_enum_value_of_a_newer_server_is_kept():
    status = NodeStatus.from_number(77)

    assert (status, status.number, status.is_known) == ("UNKNOWN_77", 77, False)
    assert NodeStatus.from_number(77) is status
    assert pickle.loads(pickle.dumps(status)) is status
    assert copy.deepcopy(status) is status
    assert status not in list(NodeStatus)
    assert NodeStatus.from_number(0) == "UNSPECIFIED"
    assert NodeStatus.from_number(0).number == 0


def test_a_node_with_values_of_a_newer_server_is_read():
    message = node()
    message.status = 77  # type: ignore[assignment]
    message.relations.add(kind=99, node_id="other")

    read = Node.from_proto(node_pb2.Node.FromString(message.SerializeToString()))

    assert read.status == "UNKNOWN_77"
    assert read.relations[0].to_proto() == message.relations[0]


def test_a_misspelt_enum_value_is_an_error():
    with pytest.raises(ValueError, match="ACTVE"):
        NodeStatus("ACTVE")
    assert NodeStatus("ACTIVE") is NodeStatus.ACTIVE
    assert f"{NodeKind.SEMANTIC}" == "SEMANTIC"


def test_times_are_aware_and_in_utc():
    noon = datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    timestamp = to_timestamp(noon, "occurred_at")
    assert timestamp is not None
    assert timestamp.ToDatetime(tzinfo=UTC) == noon

    read = Node.from_proto(node())
    assert read.created_at.tzinfo is UTC
    assert read.occurred_at is None


def test_a_time_without_a_zone_is_refused_by_name():
    with pytest.raises(ValueError, match="occurred_from"):
        RecallFilter(occurred_from=datetime(2030, 1, 1)).to_proto()  # noqa: DTZ001
    with pytest.raises(ValueError, match="occurred_at"):
        Draft(content="x", occurred_at=datetime(2030, 1, 1)).to_proto()  # noqa: DTZ001


def test_a_draft_is_text_with_fields_or_a_draft_with_other_fields():
    assert draft_of("tea", kind=NodeKind.EPISODIC) == Draft(content="tea", kind=NodeKind.EPISODIC)
    draft = Draft(content="tea", author="user-1")
    assert draft_of(draft) == draft
    assert draft_of(draft, author="user-2") == Draft(content="tea", author="user-2")


def test_what_a_draft_leaves_open_stays_absent():
    message = Draft(content="tea").to_proto()
    assert not message.HasField("confidence")
    assert not message.HasField("occurred_at")
    assert Draft(content="tea", confidence=0.0).to_proto().HasField("confidence")


def test_one_text_where_several_are_meant_is_refused():
    with pytest.raises(TypeError, match="surroundings"):
        Draft(content="tea", surroundings="one text").to_proto()
    with pytest.raises(TypeError, match="surroundings"):
        surroundings_to_proto("one text")
    assert surroundings_to_proto(()) is not None
    assert surroundings_to_proto(None) is None


def test_evidence_of_a_turn_names_it_without_ambiguity():
    evidence = Evidence.session_turn("a/b", "c d", "I prefer tea.")
    assert evidence.uri == "session:a%2Fb/turn/c%20d"
    assert evidence.kind is EvidenceKind.SESSION_TURN
    assert evidence.to_proto().body == b"I prefer tea."


def test_evidence_with_both_its_body_and_a_digest_is_refused():
    with pytest.raises(ValueError, match="not both"):
        Evidence(uri="chat:1", kind=EvidenceKind.USER_STATEMENT, body=b"Tea.", digest=f"sha256:{DIGEST}")


def test_a_decision_names_its_rule():
    assert Decision.by_rule("said-twice", 1).to_proto().decider == "rule:said-twice@1"
    assert Decision.manual(note="asked").to_proto().note == "asked"


def test_a_relation_is_written_on_both_ends():
    assert all(INVERSE[INVERSE[kind]] is kind for kind in RelationKind)
    new, old = Node.from_proto(node("new")), Node.from_proto(node("old"))
    here, there = relate(new, RelationKind.SUPERSEDES, old)
    assert (here.node_id, here.relation.node_id, here.relation.kind) == ("new", "old", "SUPERSEDES")
    assert (there.node_id, there.relation.node_id, there.relation.kind) == ("old", "new", "SUPERSEDED_BY")


def test_values_are_frozen_and_mean_what_they_hold():
    hit = hit_value()
    assert Namespace("a", "b", "c") == Namespace("a", "b", "c")
    assert {hit: 1}[hit_value()] == 1
    with pytest.raises(AttributeError):
        hit.rank = 2  # type: ignore[misc]


def test_values_can_be_copied_pickled_and_taken_apart():
    hit = hit_value()
    assert pickle.loads(pickle.dumps(hit)) == copy.deepcopy(hit) == hit
    assert dataclasses.asdict(hit)["citation"]["node_id"] == "prefers-tea"


def test_the_policy_of_a_server_can_be_asked_for_again():
    message = session_service_pb2.GetServerInfoResponse()
    message.default_policy.max_results = 5
    message.default_policy.semantic.candidate_limit = 100
    message.limits.max_content_bytes = 65_536
    message.limits.run_idle_timeout.FromTimedelta(timedelta(hours=1))

    info = ServerInfo.from_proto(message)

    assert info.default_policy["max_results"] == 5
    assert policy_to_proto(policy_of(message.default_policy)) == message.default_policy
    assert info.limits["max_content_bytes"] == 65_536
    assert info.limits["run_idle_timeout"] == timedelta(hours=1)


def test_a_record_of_an_export_is_one_line():
    record = transfer_pb2.ExportRecord(node_revision=node(content="first\nsecond 茶"))
    line = record_to_line(record)
    assert "\n" not in line
    assert "茶" in line
    assert record_of_line(line) == record


def test_a_line_that_is_no_record_is_not_quoted_in_the_error():
    deep = "[" * 100_000
    lines = (
        "secret text",
        '{"unknown_secret": 1}',
        "[]",
        "3",
        "true",
        "null",
        '"secret"',
        '{"node_revision": 3}',
        deep,
    )
    for line in lines:
        with pytest.raises(ValueError, match="not a record") as caught:
            record_of_line(line)
        assert "secret" not in str(caught.value)


def test_an_import_is_sent_in_bounded_requests():
    chunks = ImportChunks()
    records = [transfer_pb2.ExportRecord(node_revision=node(f"n-{place}")) for place in range(600)]
    large = transfer_pb2.ExportRecord(node_revision=node("large", "x" * 65_536))
    requests = [request for record in [*records, *[large] * 40] for request in chunks.add(record)]
    requests += chunks.rest()

    sent = [record for request in requests for record in request.records]
    assert sent == [*records, *[large] * 40]
    assert max(len(request.records) for request in requests) == 256
    assert max(request.ByteSize() for request in requests) < 1_200_000
    assert not list(chunks.rest())
