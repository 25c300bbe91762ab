"""What goes out comes back as it was: times, citations, bindings, and every record of an export."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from durable_memory.app.transfer_records import ExportFooter, ExportHeader, ExportRecord, SessionExport, TransferCounts
from durable_memory.domain.access import AccessEvent, AccessKind
from durable_memory.domain.change_set import ChangeSetRecord, NodeChange
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.evidence import Evidence, EvidenceKind
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeKind, NodeRevision, NodeStatus, Relation, RelationKind, content_digest
from durable_memory.domain.session import (
    BindingRecord,
    Context,
    RecallMode,
    RecallPolicy,
    Run,
    RunState,
    SemanticGeneration,
    Session,
    SessionBinding,
    SessionState,
)
from durable_memory.domain.state import ChangeToken
from durable_memory.ports.store import RequestKey, RequestRecord
from durable_memory.rpc.change_paths import restated
from durable_memory.rpc.decode.citation import decode_citation
from durable_memory.rpc.decode.fields import time
from durable_memory.rpc.decode.session import decode_binding
from durable_memory.rpc.decode.transfer import decode_record
from durable_memory.rpc.encode.node import encode_citation
from durable_memory.rpc.encode.session import encode_binding
from durable_memory.rpc.encode.times import encode_duration, encode_time
from durable_memory.rpc.encode.transfer import encode_record
from durablememory.v1 import session_pb2, transfer_pb2

NAMESPACE = Namespace("acme", "user-1", "default")
THEN = datetime(2024, 2, 29, 12, 30, 15, 123_456, tzinfo=UTC)
DIGEST = "ab" * 32
POLICY = RecallPolicy(
    mode=RecallMode.HYBRID,
    max_results=7,
    min_score=0.25,
    min_relative_score=0.5,
    related_lookups=3,
    lexical_profile="dm.lexical.bm25f.v1",
    fusion_profile="dm.fusion.convex.v1",
    semantic=SemanticGeneration(
        authority_digest=DIGEST,
        provider="local",
        model="small",
        model_revision="1",
        dimension=384,
        normalization="L2",
        metric="COSINE",
        candidate_limit=100,
        min_similarity=-1.0,
    ),
)
BINDING = SessionBinding(namespace=NAMESPACE, policy=POLICY)
RECORDS: list[ExportRecord] = [
    ExportHeader(
        namespace=NAMESPACE,
        token=ChangeToken(history_id="h", namespace_revision=9),
        chain_digest=DIGEST,
        exported_at=THEN,
    ),
    NodeRevision(
        node_id="a/b c",
        revision=3,
        kind=NodeKind.PROCEDURAL,
        status=NodeStatus.SUPERSEDED,
        content="how to 猫",
        content_digest=content_digest("how to 猫"),
        surroundings=("nearest", "next"),
        author="user-1",
        occurred_at=THEN,
        confidence=0.1,
        importance=1.0,
        evidence=(Evidence(uri="dm:x", digest=f"sha256:{DIGEST}", kind=EvidenceKind.MANUAL, occurred_at=THEN),),
        relations=(Relation(RelationKind.SUPERSEDED_BY, "new"),),
        labels={"dm.decision": "rejected", "type": ""},
        created_at=THEN,
        updated_at=THEN,
        committed_at=THEN,
        decided_by="reviewer-1",
        valid_from=9,
    ),
    ChangeSetRecord(
        namespace_revision=9,
        method="Remember",
        request_id="r-1",
        caller="user-1",
        note="",
        occurred_at=THEN,
        committed_at=THEN,
        changes=(
            NodeChange(
                node_id="a",
                revision=1,
                content_digest=DIGEST,
                content_changed=True,
                revision_digest=DIGEST,
                operations=("create", "set_status"),
                status_before=None,
                status_after=NodeStatus.CANDIDATE,
            ),
            NodeChange(
                node_id="b",
                revision=2,
                content_digest=DIGEST,
                content_changed=False,
                revision_digest=DIGEST,
                operations=("activate", "corroborate", "revise", "add_relation", "remove_relation"),
                status_before=NodeStatus.CANDIDATE,
                status_after=NodeStatus.ACTIVE,
            ),
        ),
        chain_digest=DIGEST,
    ),
    RequestRecord(
        request=RequestKey(method="Remember", key="r-1", fingerprint=f"v1:{DIGEST}"),
        result={"at": 9, "items": [{"score": 0.25, "error": None, "changed": True}]},
        namespace_revision=9,
    ),
    SessionExport(
        session=Session(
            session_id="s",
            binding=BINDING,
            binding_version=2,
            request_digest=DIGEST,
            state=SessionState.CLOSED,
            opened_by="user-1",
            opened_at=THEN,
            rebound_at=THEN,
            closed_at=None,
        ),
        bindings=(BindingRecord(session_id="s", binding_version=1, binding=BINDING, bound_at=THEN, bound_by="user-1"),),
    ),
    Run(
        session_id="s",
        run_id="r",
        incarnation="i",
        host_instance="h",
        state=RunState.TAKEN_OVER,
        sequence=4,
        context_id=Context.of("s", "r", "i", 4).context_id,
        begun_by="user-1",
        opened_at=THEN,
        active_at=THEN,
        ended_at=THEN,
    ),
    AccessEvent(
        event_id="e",
        kind=AccessKind.USE,
        session_id="s",
        context_id=DIGEST,
        node_id="a",
        revision=2,
        caller="user-1",
        at=THEN,
    ),
    ExportFooter(counts=TransferCounts(nodes=1, node_revisions=2, runs=3), digest=DIGEST),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_an_exported_record_comes_back_equal_also_by_way_of_bytes(record):
    raw = encode_record(NAMESPACE, "0.1.0", record).SerializeToString()

    assert decode_record("records[0]", transfer_pb2.ExportRecord.FromString(raw)) == record


def test_a_record_without_a_required_part_is_refused_by_its_path():
    raw = encode_record(NAMESPACE, "0.1.0", RECORDS[1])
    raw.node_revision.ClearField("committed_at")

    with pytest.raises(DomainError) as caught:
        decode_record("records[4]", raw)
    assert caught.value.metadata == {"field": "records[4].node_revision.committed_at"}


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31, 23, 59, 59, 999_999)))  # noqa: DTZ001
def test_times_come_back_to_the_microsecond(naive):
    aware = naive.replace(tzinfo=UTC)

    assert time("t", encode_time(aware)) == aware
    assert encode_time(aware).ToDatetime(tzinfo=UTC) == aware


def test_a_time_of_another_zone_is_the_same_moment():
    local = THEN.astimezone(timezone(timedelta(hours=-8)))

    assert encode_time(local) == encode_time(THEN)


@pytest.mark.parametrize("nanos", [0, 999, 1_000, 123_456_789, 999_999_999])
def test_what_is_finer_than_a_microsecond_is_dropped_also_before_1970(nanos):
    assert time("t", Timestamp(seconds=-5, nanos=nanos)) == datetime(1969, 12, 31, 23, 59, 55, nanos // 1_000, UTC)


def test_a_span_is_exact_and_never_negative():
    exact = encode_duration(timedelta(days=2, microseconds=1))
    backwards = encode_duration(-timedelta(seconds=1))

    assert (exact.seconds, exact.nanos) == (172_800, 1_000)
    assert (backwards.seconds, backwards.nanos) == (0, 0)


@given(
    st.builds(
        Citation,
        st.integers(1, 2**53 - 1),
        st.text(min_size=1, max_size=40).filter(lambda text: text.isprintable() and text.strip()),
        st.integers(1, 2**53 - 1),
        st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
    )
)
def test_a_citation_is_its_string_and_its_parts(citation):
    whole = encode_citation(citation)

    assert decode_citation("citation", whole) == citation
    assert decode_citation("citation", type(whole)(canonical=str(citation))) == citation


def test_a_binding_comes_back_with_the_digest_it_had():
    raw = encode_binding(BINDING).SerializeToString()

    assert decode_binding("binding", session_pb2.SessionBinding.FromString(raw)).digest() == BINDING.digest()


def test_paths_of_the_change_set_become_paths_of_the_request():
    error = DomainError(
        Reason.INVALID_FIELD,
        "operations[0].create.memory.occurred_at is later than it may be",
        field="operations[0].create.memory.occurred_at",
        operation_index=0,
    )

    assert restated(error).metadata == {"field": "memory.occurred_at"}
    assert restated(error).message == "memory.occurred_at is later than it may be"
