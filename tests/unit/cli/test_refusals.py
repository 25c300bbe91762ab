"""What a person is told to do about an error."""

import grpc
import pytest

from durable_memory.cli import refusals
from durable_memory.domain.errors import Reason
from durable_memory_client import MemoryServiceError, MemoryUnavailableError
from durable_memory_client.errors import BY_REASON


def _error(reason: str | None, **metadata: str) -> MemoryServiceError:
    kind = MemoryUnavailableError if reason is None else BY_REASON[reason]
    return kind("refused", code=grpc.StatusCode.UNKNOWN, reason=reason, metadata=metadata)


def test_advice_is_given_for_reasons_that_exist():
    assert {Reason(reason) for reason in refusals._ADVICE}


def test_every_reason_can_be_advised_on_without_its_metadata():
    for reason in Reason:
        assert isinstance(refusals.advice(_error(reason.value), address="127.0.0.1:7447"), str)


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (_error("REVISION_CONFLICT", node_id="tea", expected="1", actual="2"), "tea@2"),
        (_error("REVISION_CONFLICT", expected="0", actual="2"), "import"),
        (_error("PERMISSION_DENIED", required_role="activator"), "role activator"),
        (_error("PERMISSION_DENIED", field="namespace.tenant_id"), "--tenant"),
        (_error("INVALID_FIELD", field="namespace.principal_id"), "--principal"),
        (_error("INVALID_TRANSITION", **{"from": "ARCHIVED", "to": "ARCHIVED"}), "reactivate"),
        (_error("NODE_FROZEN", status="SUPERSEDED"), "final"),
        (_error("OVERLOADED"), "Try again"),
        (_error(None), "durable-memory serve --address 127.0.0.1:7447"),
    ],
)
def test_advice_names_the_next_step(error: MemoryServiceError, part: str):
    assert part in refusals.advice(error, address="127.0.0.1:7447")


@pytest.mark.parametrize(
    ("reason", "code"), [("REVISION_CONFLICT", 1), ("INVALID_FIELD", 1), ("NOT_SERVING", 3), (None, 3)]
)
def test_only_a_service_that_cannot_answer_is_unavailable(reason: str | None, code: int):
    assert refusals.exit_code(_error(reason)) == code
