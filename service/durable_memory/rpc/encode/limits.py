"""The bounds that this server enforces, as GetServerInfo reports them."""

from __future__ import annotations

from durable_memory.domain import limits
from durable_memory.rpc.encode.times import encode_duration
from durable_memory.rpc.options import CallOptions
from durablememory.v1.session_service_pb2 import ServerLimits


def encode_limits(calls: CallOptions) -> ServerLimits:
    return ServerLimits(
        max_request_bytes=calls.max_request_bytes,
        max_response_bytes=calls.max_response_bytes,
        max_id_bytes=limits.NAME_MAX_BYTES,
        max_content_bytes=limits.CONTENT_MAX_BYTES,
        max_surroundings=limits.SURROUNDINGS_MAX_COUNT,
        max_surrounding_bytes=limits.SURROUNDING_MAX_BYTES,
        max_author_bytes=limits.AUTHOR_MAX_BYTES,
        max_evidence=limits.EVIDENCE_MAX_COUNT,
        max_evidence_uri_bytes=limits.EVIDENCE_URI_MAX_BYTES,
        max_evidence_body_bytes=limits.EVIDENCE_BODY_MAX_BYTES,
        max_relations=limits.RELATIONS_MAX_COUNT,
        max_labels=limits.LABELS_MAX_COUNT,
        max_label_key_bytes=limits.LABEL_KEY_MAX_BYTES,
        max_label_value_bytes=limits.LABEL_VALUE_MAX_BYTES,
        max_note_bytes=limits.NOTE_MAX_BYTES,
        max_operations=limits.CHANGE_SET_MAX_OPERATIONS,
        max_batch_items=limits.BATCH_MAX_ITEMS,
        max_query_bytes=limits.QUERY_MAX_BYTES,
        max_results=limits.MAX_RESULTS_MAX,
        max_related_lookups=limits.RELATED_LOOKUPS_MAX,
        max_filter_values=limits.FILTER_MAX_VALUES,
        max_page_size=limits.PAGE_SIZE_MAX,
        default_page_size=limits.PAGE_SIZE_DEFAULT,
        max_snapshot_nodes=limits.SNAPSHOT_MAX_NODES,
        max_snapshot_bytes=limits.SNAPSHOT_MAX_BYTES,
        max_namespace_active_nodes=limits.NAMESPACE_MAX_ACTIVE_NODES,
        max_namespace_active_bytes=limits.NAMESPACE_MAX_ACTIVE_BYTES,
        max_clock_skew=encode_duration(limits.CLOCK_SKEW_MAX),
        run_idle_timeout=encode_duration(limits.RUN_IDLE_MAX),
        max_import_bytes=limits.IMPORT_MAX_BYTES,
    )
