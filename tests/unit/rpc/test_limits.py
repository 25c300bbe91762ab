"""The bounds are said three times: in the domain, to callers who ask, and in the contract's comments."""

from datetime import timedelta
from pathlib import Path

import pytest

from durable_memory.domain import limits
from durable_memory.rpc.encode.limits import encode_limits
from durable_memory.rpc.options import CallOptions

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
NOT_REPORTED = {"SERVER_LABEL_PREFIX", "IMPORT_MAX_CONTEXTS"}


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
