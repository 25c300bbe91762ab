"""Refusals of single items of a batch."""

from __future__ import annotations

from durable_memory.domain.errors import DomainError
from durable_memory.rpc.errors import reason_name
from durablememory.v1.item_error_pb2 import ItemError


def encode_item_error(error: DomainError) -> ItemError:
    return ItemError(reason=reason_name(error.reason), message=error.message, metadata=error.metadata)
