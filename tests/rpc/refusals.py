"""What a refused call says on the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from durable_memory.domain.errors import Reason
from durable_memory.rpc.errors import ERROR_TABLE

_AnswerT = TypeVar("_AnswerT")


async def answer_or_error(calling: Awaitable[_AnswerT]) -> _AnswerT | grpc.aio.AioRpcError:
    """What a call came to, for tests that compare whole outcomes."""
    try:
        return await calling
    except grpc.aio.AioRpcError as error:
        return error


def error_info(error: grpc.aio.AioRpcError) -> error_details_pb2.ErrorInfo:
    """The one ErrorInfo that a refusal carries."""
    details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
    assert isinstance(details, bytes), f"no details: {error.code()} {error.details()}"
    infos = []
    for packed in status_pb2.Status.FromString(details).details:
        info = error_details_pb2.ErrorInfo()
        if packed.Unpack(info):
            infos.append(info)
    (info,) = infos
    assert info.domain == "durablememory.dev"
    return info


@asynccontextmanager
async def refused(reason: Reason, **metadata: object) -> AsyncIterator[error_details_pb2.ErrorInfo]:
    """The calls inside end with `reason`, its status, and at least this metadata; yields what to look at afterwards."""
    info = error_details_pb2.ErrorInfo()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        yield info
    info.CopyFrom(error_info(caught.value))
    assert info.reason == f"ERROR_REASON_{reason.value}", (info.reason, caught.value.details())
    if reason is not Reason.SEMANTIC_UNAVAILABLE:  # its status depends on the cause
        assert caught.value.code() is ERROR_TABLE[reason].status
    assert {name: info.metadata.get(name) for name in metadata} == {
        name: str(value) for name, value in metadata.items()
    }
