"""The bounds are said three times: in the domain, to callers who ask, and in the contract's comments."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from durable_memory.app.access import AccessOutcome
from durable_memory.app.recall_result import BranchScore, HitRelation, RecallAnswer, RecallChannel, RecallHit
from durable_memory.app.views.revisions import HeldRevision
from durable_memory.config import CallSettings
from durable_memory.domain import limits
from durable_memory.domain.canonical import INTEGER_MAX
from durable_memory.domain.citation import Citation
from durable_memory.domain.node import NodeKind, NodeRevision, NodeStatus, RelationKind
from durable_memory.domain.session import RecallMode
from durable_memory.domain.state import ChangeToken
from durable_memory.rpc.encode.access import encode_admission
from durable_memory.rpc.encode.limits import encode_limits
from durable_memory.rpc.encode.recall import fill_result
from durable_memory.rpc.options import CallOptions
from durablememory.v1.recall_service_pb2 import ActiveRecallResponse

PROTO = Path(__file__).parents[3] / "proto" / "durablememory" / "v1"
CALLS = CallOptions(
    default_deadline_seconds=1,
    maximum_deadline_seconds=1,
    max_calls=1,
    max_calls_per_caller=1,
    max_streams=1,
    max_streams_per_caller=1,
    max_request_bytes=1_111,
    max_response_bytes=2_222,
    maximum_upload_seconds=1,
)
# For each bound that GetServerInfo reports: the domain's constant, and how the contract words it.
BOUNDS = {
    "max_id_bytes": ("NAME_MAX_BYTES", "node.proto", "1..{} bytes, without control"),
    "max_content_bytes": ("CONTENT_MAX_BYTES", "node.proto", "1..{} UTF-8 bytes"),
    "max_surroundings": ("SURROUNDINGS_MAX_COUNT", "node.proto", "0..{} texts"),
    "max_surrounding_bytes": ("SURROUNDING_MAX_BYTES", "node.proto", "texts of 1..{} bytes"),
    "max_author_bytes": ("AUTHOR_MAX_BYTES", "node.proto", "at its source: 0..{} bytes"),
    "max_evidence": ("EVIDENCE_MAX_COUNT", "node.proto", "0..{} references"),
    "max_evidence_uri_bytes": ("EVIDENCE_URI_MAX_BYTES", "node.proto", "1..{} bytes, for example `session:"),
    "max_evidence_body_bytes": ("EVIDENCE_BODY_MAX_BYTES", "node.proto", "1..{} of them"),
    "max_relations": ("RELATIONS_MAX_COUNT", "node.proto", "other nodes of the namespace: 0..{}"),
    "max_labels": ("LABELS_MAX_COUNT", "node.proto", "0..{} pairs"),
    "max_label_key_bytes": ("LABEL_KEY_MAX_BYTES", "node.proto", "keys 1..{} bytes"),
    "max_label_value_bytes": ("LABEL_VALUE_MAX_BYTES", "node.proto", "values 0..{} bytes"),
    "max_note_bytes": ("NOTE_MAX_BYTES", "decision.proto", "0..{} bytes"),
    "max_operations": ("CHANGE_SET_MAX_OPERATIONS", "repository_service.proto", "The operations: 1..{}"),
    "max_batch_items": ("BATCH_MAX_ITEMS", "candidate_service.proto", "The proposals: 1..{}"),
    "max_query_bytes": ("QUERY_MAX_BYTES", "recall_service.proto", "plain text: 1..{} bytes"),
    "max_results": ("MAX_RESULTS_MAX", "session.proto", "The most hits: 1..{}"),
    "max_related_lookups": ("RELATED_LOOKUPS_MAX", "session.proto", "targets to read: 0..{}"),
    "max_filter_values": ("FILTER_MAX_VALUES", "recall.proto", "at most {}"),
    "max_page_size": ("PAGE_SIZE_MAX", "repository_service.proto", "nodes to return: 1..{}"),
    "default_page_size": ("PAGE_SIZE_DEFAULT", "repository_service.proto", "default {} (when 0)"),
    "max_snapshot_nodes": ("SNAPSHOT_MAX_NODES", "repository_service.proto", "at most {} nodes"),
    "max_snapshot_bytes": ("SNAPSHOT_MAX_BYTES", "repository_service.proto", "{} bytes of content"),
    "max_namespace_active_nodes": ("NAMESPACE_MAX_ACTIVE_NODES", "error_reason.proto", "{} ACTIVE nodes"),
    "max_import_bytes": ("IMPORT_MAX_BYTES", "transfer_service.proto", "at most {} bytes"),
    "max_namespace_active_bytes": ("NAMESPACE_MAX_ACTIVE_BYTES", "error_reason.proto", "{} bytes of"),
}
DURATIONS = {
    "max_clock_skew": ("CLOCK_SKEW_MAX", "node.proto", "At most five minutes ahead", timedelta(minutes=5)),
    "run_idle_timeout": ("RUN_IDLE_MAX", "session.proto", "idle for an hour", timedelta(hours=1)),
}
OF_THE_SERVER = {"max_request_bytes": 1_111, "max_response_bytes": 2_222}
NOT_REPORTED = {"SERVER_LABEL_PREFIX", "IMPORT_MAX_EMPTY_CONTEXTS", "SESSION_MAX_BINDINGS"}


def comments_of(file):
    return " ".join((PROTO / file).read_text().replace("//", " ").split())


def test_every_bound_of_the_domain_is_reported_and_the_other_way_round():
    reported = {field.name for field in encode_limits(CALLS).DESCRIPTOR.fields}
    constants = {name for name in vars(limits) if name.isupper()}

    assert reported == set(BOUNDS) | set(DURATIONS) | set(OF_THE_SERVER)
    assert constants == {constant for constant, *_ in (BOUNDS | DURATIONS).values()} | NOT_REPORTED


@pytest.mark.parametrize("field", BOUNDS)
def test_a_reported_bound_is_the_domains_and_stands_in_the_contract(field):
    constant, file, words = BOUNDS[field]
    value = getattr(limits, constant)

    assert getattr(encode_limits(CALLS), field) == value
    assert words.format(f"{value:,}") in comments_of(file)


def test_durations_and_the_servers_own_bounds_are_reported():
    answer = encode_limits(CALLS)

    for field, (constant, file, words, value) in DURATIONS.items():
        assert getattr(answer, field).ToTimedelta() == getattr(limits, constant) == value
        assert words in comments_of(file)
    assert {field: getattr(answer, field) for field in OF_THE_SERVER} == OF_THE_SERVER


def largest_hit():
    """A hit of a memory that is at every bound."""
    now = datetime(2026, 1, 1, 0, 0, 0, 999_999, tzinfo=UTC)
    node = NodeRevision(
        node_id="é" * (limits.NAME_MAX_BYTES // 2),  # percent-encoded in its citation
        revision=INTEGER_MAX,
        kind=NodeKind.SEMANTIC,
        status=NodeStatus.ACTIVE,
        content="x" * limits.CONTENT_MAX_BYTES,
        content_digest="f" * 64,
        surroundings=("x" * limits.SURROUNDING_MAX_BYTES,) * limits.SURROUNDINGS_MAX_COUNT,
        author="x" * limits.AUTHOR_MAX_BYTES,
        occurred_at=now,
        labels={
            f"{number:0{limits.LABEL_KEY_MAX_BYTES}}": "x" * limits.LABEL_VALUE_MAX_BYTES
            for number in range(limits.LABELS_MAX_COUNT)
        },
        created_at=now,
        updated_at=now,
        committed_at=now,
        valid_from=INTEGER_MAX,
    )
    relation = HitRelation(RelationKind.CONFLICTS_WITH, "x" * limits.NAME_MAX_BYTES, NodeStatus.TOMBSTONED)
    return RecallHit(
        held=HeldRevision(node, size=0),
        rank=limits.MAX_RESULTS_MAX,
        score=0.1,
        channel=RecallChannel.HYBRID,
        lexical=BranchScore(limits.MAX_RESULTS_MAX, 0.1),
        semantic=BranchScore(limits.MAX_RESULTS_MAX, 0.1),
        relations=(relation,) * limits.RELATIONS_MAX_COUNT,
        age=timedelta(days=10_000, microseconds=1),
        related_to="x" * limits.NAME_MAX_BYTES,
    )


def test_no_setting_bounds_answers_so_that_a_recall_that_admitted_is_refused():
    hit = largest_hit()
    answer = RecallAnswer(
        token=ChangeToken(history_id="f" * 32, namespace_revision=INTEGER_MAX),
        mode=RecallMode.HYBRID,
        degradation=None,
        searched_nodes=limits.NAMESPACE_MAX_ACTIVE_NODES,
        hits=(hit,) * limits.MAX_RESULTS_MAX,
    )
    admission = AccessOutcome(ref=hit.node.ref, event_id="f" * 64, citation=Citation.of(hit.node))
    response = ActiveRecallResponse(
        admissions=[encode_admission(admission)] * limits.MAX_RESULTS_MAX, next_context_id="f" * 64
    )
    fill_result(response.result, answer, with_surroundings=True)
    rest = 4_096  # the token, the index that was searched, a degradation

    largest = response.ByteSize() + rest
    assert CallSettings().max_response_bytes > largest
    with pytest.raises(ValidationError):
        CallSettings(max_response_bytes=largest)
