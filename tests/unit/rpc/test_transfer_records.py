"""Records of an export go over the wire and come back as they were."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.limits import LABELS_MAX_COUNT
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeKind, NodeRevision, NodeStatus, content_digest
from durable_memory.ports.store import RequestKey, RequestRecord
from durable_memory.rpc.decode.transfer import decode_record
from durable_memory.rpc.encode.transfer import encode_record
from durablememory.v1 import transfer_pb2 as pb

NAMESPACE = Namespace("acme", "user-1", "project-a")
NOW = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def test_a_result_keeps_ids_byte_for_byte() -> None:
    decomposed = "cafe\u0301"
    record = RequestRecord(
        request=RequestKey(method="Remember", key=decomposed, fingerprint="v1:x"),
        result={"at": 1, "node": {"node_id": decomposed, "revision": 1}, "score": 0.25, "nothing": None},
        namespace_revision=1,
    )
    assert decode_record("records[0]", encode_record(NAMESPACE, "0.1.0", record)) == record


def test_a_rejected_candidate_may_have_the_servers_label_beside_all_of_its_own() -> None:
    labels = {"dm.decision": "rejected", **{f"label-{number:02}": "x" for number in range(LABELS_MAX_COUNT)}}
    node = NodeRevision(
        node_id="a",
        revision=2,
        kind=NodeKind.SEMANTIC,
        status=NodeStatus.TOMBSTONED,
        content="tea",
        content_digest=content_digest("tea"),
        occurred_at=NOW,
        created_at=NOW,
        updated_at=NOW,
        committed_at=NOW,
        labels=labels,
        valid_from=2,
    )
    assert decode_record("records[0]", encode_record(NAMESPACE, "0.1.0", node)) == node


@pytest.mark.parametrize("text", ["", "[]", "{", '{"x": NaN}', '{"x": 9007199254740993}', '{"x": "\\ud800"}'])
def test_a_result_that_has_no_canonical_form_is_refused(text: str) -> None:
    given = pb.ExportRecord(
        request=pb.RequestRecord(method="Remember", request_id="k", fingerprint="v1:x", result_json=text)
    )
    with pytest.raises(DomainError) as caught:
        decode_record("records[7]", given)
    assert caught.value.reason is Reason.INVALID_FIELD
    assert caught.value.metadata["field"] == "records[7].request.result_json"
