"""The checks of refreshes that race find what they are for, in records that are bad by hand."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from durable_memory.domain.semantic.embedded_text import text_digest
from durable_memory_client import ChangeToken, Citation, Node, NodeKind, NodeStatus, RefreshReceipt
from durable_memory_client.values.enums import IndexConsistency
from durable_memory_client.values.semantic import RefreshWork
from tests.qualification.checks.moments import PARTITION, receipt
from tests.qualification.checks.partitions import SegmentRecord
from tests.qualification.checks.publications import (
    NO_ANSWER,
    Asked,
    failures,
    passage_digest,
    records_and_memories,
    shared_fences,
    skipped_publications,
    unrecorded,
    without_memories,
)
from tests.qualification.observers.receipts import RecordedReceipt

NAME = PARTITION[:8]
NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


def published(fence: int, index_revision: int) -> RecordedReceipt:
    return replace(receipt(fence, index_revision, 0.0), work={"added": 1})


def unchanged(fence: int, index_revision: int, **changes) -> RecordedReceipt:
    return replace(receipt(fence, index_revision, 0.0), **changes)


def asked(fence: int, index_revision: int, *, digest: str = "") -> Asked:
    told = RefreshReceipt(
        authority_digest="b" * 64,
        fence=fence,
        index_revision=index_revision,
        index_history_digest=digest or f"{index_revision:064x}",
        source=ChangeToken("history", 1),
        active_count=1,
        indexed_count=1,
        consistency=IndexConsistency.INDEX_REVISION_CAS,
        work=RefreshWork(
            **dict.fromkeys(("added", "replaced", "removed", "cache_hits", "refused"), 0),
            **dict.fromkeys(("provider_calls", "provider_inputs", "provider_bytes", "staged_bytes"), 0),
            duration=timedelta(),
        ),
        completed_by_successor=False,
        written_at=NOON,
    )
    return Asked(server=0, began=1.0, ended=2.0, receipt=told)


def failed(reason: str) -> Asked:
    return Asked(server=1, began=1.0, ended=2.0, reason=reason)


def node(node_id: str, status: NodeStatus = NodeStatus.ACTIVE, **changes) -> Node:
    made = Node(
        id=node_id,
        revision=1,
        kind=NodeKind.SEMANTIC,
        status=status,
        content=f" content of {node_id}\n",
        surroundings=(),
        content_digest="0" * 64,
        author="",
        occurred_at=None,
        confidence=0.5,
        importance=0.5,
        evidence=(),
        relations=(),
        labels={},
        created_at=NOON,
        updated_at=NOON,
        committed_at=NOON,
        decided_by="",
        citation=Citation(1, node_id, 1, "0" * 64),
        valid_from=1,
        superseded_at=None,
    )
    return replace(made, **changes)


def record(of: Node) -> SegmentRecord:
    return SegmentRecord(of.id, passage_digest(of), b"")


def test_receipts_that_rise_by_one_per_publication_have_no_problems():
    receipts = [unchanged(1, 0), published(2, 1), unchanged(3, 1), published(5, 2)]
    assert skipped_publications(reversed(receipts)) == []


def test_a_publication_that_skips_a_revision_is_found():
    assert skipped_publications([published(1, 1), published(2, 3)]) == [
        f"{NAME}: the receipt of fence 2 has index revision 3, not 2"
    ]


def test_two_publications_of_one_revision_are_found():
    assert skipped_publications([published(1, 1), published(2, 1)]) == [
        f"{NAME}: the receipt of fence 2 has index revision 1, not 2"
    ]


def test_a_refresh_that_found_another_revision_or_another_index_is_found():
    assert skipped_publications([published(1, 1), unchanged(2, 2)]) == [
        f"{NAME}: the receipt of fence 2 has index revision 2, not 1"
    ]
    assert skipped_publications([published(1, 1), unchanged(2, 1, history_digest="e" * 64)]) == [
        f"{NAME}: index revision 1 has become another under 2"
    ]


def test_an_answer_that_is_not_on_record_is_found():
    receipts = [published(1, 1), published(2, 2)]
    assert unrecorded([asked(1, 1), asked(2, 2), failed("LEASE_HELD")], receipts) == []
    text = "a refresh by server 0 got index revision 2 under fence 3, which is not on record"
    assert unrecorded([asked(3, 2)], receipts) == [text]
    assert len(unrecorded([asked(2, 2, digest="e" * 64)], receipts)) == 1


def test_two_answers_under_one_fence_are_found():
    assert shared_fences([asked(1, 1), asked(2, 2), failed("LEASE_HELD")]) == []
    assert shared_fences([asked(1, 1), asked(1, 2)]) == ["2 refreshes were answered under fence 1"]


def test_a_refresh_that_fails_for_no_reason_of_others_is_found():
    turned_away = [asked(1, 1), failed("LEASE_HELD"), failed("SOURCE_DRIFT"), failed("LEASE_FENCED")]
    conflict = ["a refresh by server 1 at 1.000 failed: INDEX_REVISION_CONFLICT"]
    for quiet_since in (0.5, 1.5):
        assert failures(turned_away, quiet_since=quiet_since) == []
        assert failures([failed("INDEX_REVISION_CONFLICT")], quiet_since=quiet_since) == conflict


def test_a_refresh_that_comes_to_nothing_for_want_of_time_is_found_once_nobody_writes():
    busy = [failed(NO_ANSWER), failed("DEPENDENCY_UNAVAILABLE")]
    assert failures(busy, quiet_since=1.5) == []
    assert failures(busy, quiet_since=1.0) == [
        "a refresh by server 1 at 1.000 failed: NO_ANSWER",
        "a refresh by server 1 at 1.000 failed: DEPENDENCY_UNAVAILABLE",
    ]


def test_a_passage_is_digested_as_the_service_does():
    assert passage_digest(node("a")) == text_digest("content of a")
    told = node("a", author="user-1", surroundings=("before", "long before"))
    assert passage_digest(told) == text_digest("before\nuser-1: content of a")


def test_an_index_of_all_that_is_active_has_no_problems():
    nodes = [node("a"), node("b"), node("c", NodeStatus.ARCHIVED)]
    assert records_and_memories(map(record, nodes[:2]), nodes) == []


def test_a_memory_without_a_record_with_another_text_or_with_two_is_found():
    a, b, c = nodes = [node("a"), node("b"), node("c")]
    records = [replace(record(b), text_digest="0" * 64), record(c), record(c)]
    assert records_and_memories(records, nodes) == [
        "a is ACTIVE, and has no record",
        "b is ACTIVE, and has the record of another text",
        "c is ACTIVE, and has 2 records",
    ]
    assert records_and_memories([record(a), record(b), record(c)], nodes) == []


def test_a_record_of_what_is_not_active_or_not_there_is_found():
    archived = node("a", NodeStatus.ARCHIVED)
    assert records_and_memories([record(archived), record(node("b"))], [archived]) == [
        "a is ARCHIVED, and has a record",
        "b has a record, and is no memory",
    ]


def test_a_process_whose_memories_are_gone_is_found():
    nodes = [node("a"), node("b", NodeStatus.ARCHIVED)]
    made_by = {"a": "one", "b": "two"}
    assert without_memories(made_by, nodes, ["one"]) == []
    assert without_memories(made_by, nodes, ["one", "two"]) == ["two has no ACTIVE memory"]
