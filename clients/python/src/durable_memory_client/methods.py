"""The RPCs of the contract, found in its descriptors by the type of their request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from durable_memory_client.call_policy import CallPolicy, call_policy
from durablememory.v1 import (
    candidate_service_pb2,
    memory_service_pb2,
    recall_service_pb2,
    repository_service_pb2,
    semantic_service_pb2,
    session_service_pb2,
    transfer_service_pb2,
)

_FILES: Final = (
    candidate_service_pb2,
    memory_service_pb2,
    recall_service_pb2,
    repository_service_pb2,
    semantic_service_pb2,
    session_service_pb2,
    transfer_service_pb2,
)


@dataclass(frozen=True)
class Method:
    """One RPC. `changes`: whether it may change anything, and so has a request id."""

    path: str
    name: str
    request_type: type[Message]
    response_type: type[Message]
    changes: bool
    policy: CallPolicy

    @classmethod
    def of(cls, descriptor: MethodDescriptor) -> Method:
        service = descriptor.containing_service
        pure = descriptor.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
        return cls(
            path=f"/{service.full_name}/{descriptor.name}",
            name=f"{service.name}.{descriptor.name}",
            request_type=GetMessageClass(descriptor.input_type),
            response_type=GetMessageClass(descriptor.output_type),
            changes=not pure,
            policy=call_policy(service.full_name, descriptor.name),
        )

    # Messages are encoded and decoded here and not by grpc: it would only log why that failed, and go on with None or
    # with a status that a proxy could also have sent.
    def encode(self, request: Message) -> bytes:
        """The request as it is sent. Raises: ValueError."""
        try:
            return request.SerializeToString()
        except EncodeError as error:
            raise ValueError(f"{self.name}: the request cannot be encoded: {error}") from error

    def decode(self, answer: bytes) -> Message:
        """An answer that was received. Raises: google.protobuf.message.DecodeError."""
        return self.response_type.FromString(answer)

    @cached_property
    def has_request_id(self) -> bool:
        return "request_id" in self.request_type.DESCRIPTOR.fields_by_name


# Each RPC has a request message of its own, so the request alone says which RPC is meant.
METHODS: Final[Mapping[type[Message], Method]] = MappingProxyType(
    {
        method.request_type: method
        for file in _FILES
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in map(Method.of, service.methods)
    }
)
