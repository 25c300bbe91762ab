"""The error table against the contract, and the status that a caller gets."""

import json
import re
from pathlib import Path

import pytest
from google.rpc import code_pb2, error_details_pb2
from grpc import StatusCode

from durable_memory.domain.errors import DomainError, Reason, revision_conflict
from durable_memory.rpc.errors import DOMAIN, ERROR_TABLE, ErrorRow, reason_name, rich_status, row_of
from durablememory.v1 import error_reason_pb2

_MAX_HEADER_BYTES = 8 * 1024


def _info(status) -> error_details_pb2.ErrorInfo:
    infos = [detail for detail in status.details if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR)]
    assert len(infos) == 1
    info = error_details_pb2.ErrorInfo()
    infos[0].Unpack(info)
    return info


def test_the_table_has_a_row_for_every_reason_and_no_other():
    assert set(ERROR_TABLE) == set(Reason)


def test_domain_and_contract_name_the_same_reasons():
    contract = set(error_reason_pb2.ErrorReason.keys()) - {"ERROR_REASON_UNSPECIFIED"}
    assert {reason_name(reason) for reason in Reason} == contract


@pytest.mark.parametrize(
    ("reason", "status", "definite"),
    [
        (Reason.LIMIT_EXCEEDED, StatusCode.INVALID_ARGUMENT, True),
        (Reason.REVISION_CONFLICT, StatusCode.ABORTED, True),
        (Reason.REQUEST_IN_PROGRESS, StatusCode.ABORTED, False),
        (Reason.NOT_SERVING, StatusCode.UNAVAILABLE, True),
        (Reason.OUTCOME_UNKNOWN, StatusCode.UNAVAILABLE, False),
        (Reason.DEADLINE_EXCEEDED, StatusCode.DEADLINE_EXCEEDED, False),
        (Reason.CONTENT_ERASED, StatusCode.NOT_FOUND, None),
        (Reason.INTERNAL, StatusCode.INTERNAL, False),
    ],
)
def test_a_row_says_status_and_whether_the_change_certainly_did_not_happen(reason, status, definite):
    assert (ERROR_TABLE[reason].status, ERROR_TABLE[reason].definite) == (status, definite)


def test_the_contracts_comments_say_the_same_status_and_certainty():
    proto = (Path(__file__).parents[3] / "proto/durablememory/v1/error_reason.proto").read_text()
    comments = re.findall(r"((?:^  //.*\n)+)  ERROR_REASON_(\w+) = \d+;", proto, re.MULTILINE)
    said = {}
    for comment, name in comments[1:]:  # the first is UNSPECIFIED
        text = " ".join(line.strip().removeprefix("//").strip() for line in comment.splitlines())
        status, _, certainty = text.partition(".")[0].partition(", ")
        definite = {"definite": True, "not definite": False}.get(certainty)
        said[Reason(name)] = (status.split()[0], definite)
    assert said == {reason: (row.status.name, row.definite) for reason, row in ERROR_TABLE.items()}


def test_the_clients_table_is_the_same():
    path = Path(__file__).parents[3] / "clients/python/src/durable_memory_client/reasons.json"
    published = json.loads(path.read_text("utf-8"))
    assert published["domain"] == DOMAIN

    def retry(row: ErrorRow) -> str:
        if row.retry_after_ms is not None:
            return "retry_info"
        return "backoff" if row.retryable else "never"

    assert {row["reason"]: (row["code"], row["definite"], row["retry"]) for row in published["reasons"]} == {
        reason_name(reason): (row.status.name, row.definite, retry(row)) for reason, row in ERROR_TABLE.items()
    }


def test_clients_repeat_by_themselves_only_what_may_pass():
    assert {reason for reason, row in ERROR_TABLE.items() if row.retryable} == {
        Reason.REQUEST_IN_PROGRESS,
        Reason.RATE_LIMITED,
        Reason.OVERLOADED,
        Reason.NOT_SERVING,
        Reason.DEPENDENCY_UNAVAILABLE,
        Reason.OUTCOME_UNKNOWN,
    }


@pytest.mark.parametrize(
    ("cause", "status"),
    [
        ("SEMANTIC_NOT_CONFIGURED", StatusCode.FAILED_PRECONDITION),
        ("GENERATION_NOT_SERVED", StatusCode.FAILED_PRECONDITION),
        ("INDEX_UNAVAILABLE", StatusCode.UNAVAILABLE),
        ("PROVIDER_FAILED", StatusCode.UNAVAILABLE),
    ],
)
def test_an_unavailable_mode_is_a_precondition_without_a_generation_and_an_outage_with_one(cause, status):
    row = row_of(DomainError(Reason.SEMANTIC_UNAVAILABLE, "no vectors", cause=cause))
    assert (row.status, row.definite) == (status, None)


def test_a_status_carries_one_error_info_with_the_full_reason_and_all_metadata():
    status = rich_status(revision_conflict("node-1", 3, 5, operation_index=2))

    assert status.code == code_pb2.ABORTED
    info = _info(status)
    assert (info.domain, info.reason) == (DOMAIN, "ERROR_REASON_REVISION_CONFLICT")
    assert dict(info.metadata) == {"node_id": "node-1", "expected": "3", "actual": "5", "operation_index": "2"}
    assert len(status.details) == 1


@pytest.mark.parametrize("reason", [Reason.RATE_LIMITED, Reason.OVERLOADED, Reason.REQUEST_IN_PROGRESS])
def test_a_refusal_that_will_pass_says_when_to_come_back(reason):
    status = rich_status(DomainError(reason, "later"))

    assert len(status.details) == 2
    _info(status)
    retry = error_details_pb2.RetryInfo()
    assert status.details[1].Unpack(retry)
    assert 0 < retry.retry_delay.ToMilliseconds() <= 1_000


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_becomes_a_failed_status(reason):
    status = rich_status(DomainError(reason, "refused"))
    assert status.code == code_pb2.Code.Value(ERROR_TABLE[reason].status.name)
    assert status.code != code_pb2.OK


def test_a_status_fits_into_the_headers_that_peers_accept():
    error = DomainError(Reason.NODE_FROZEN, "長" * 100_000, node_id="長" * 100_000, status="SUPERSEDED")
    status = rich_status(error)

    on_the_wire = len(status.SerializeToString()) * 4 / 3 + len(status.message.encode()) * 3
    assert on_the_wire < _MAX_HEADER_BYTES
    assert _info(status).metadata["node_id"].endswith("…")
