"""Every RPC of the contract as a running server describes it, and a way to call any of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.rpc.conftest import CALL_SECONDS, token_of

PACKAGE = "durablememory.v1."


@dataclass(frozen=True, slots=True)
class ReflectedRpc:
    """One RPC. `request_class` is the generated class of its request."""

    service: str
    method: str
    request_class: type[Any]
    response_class: type[Any]
    client_streaming: bool
    server_streaming: bool

    @property
    def name(self) -> str:
        return f"{self.service}.{self.method}"

    async def call(
        self, channel: grpc.aio.Channel, request: Any, key: str | None = None, *, token: str | None = None
    ) -> list[Any]:
        """The responses; of an endless stream the first. `key` is one of the credentials of the fixtures, `token` any
        other bearer token."""
        path = f"/{PACKAGE}{self.service}/{self.method}"
        bearer = token_of(key) if key is not None else token
        metadata = None if bearer is None else (("authorization", f"Bearer {bearer}"),)
        serializers = {
            "request_serializer": self.request_class.SerializeToString,
            "response_deserializer": self.response_class.FromString,
        }
        if self.client_streaming:
            return [
                await channel.stream_unary(path, **serializers)(
                    iter([request]), metadata=metadata, timeout=CALL_SECONDS
                )
            ]
        if not self.server_streaming:
            return [await channel.unary_unary(path, **serializers)(request, metadata=metadata, timeout=CALL_SECONDS)]
        stream = channel.unary_stream(path, **serializers)(request, metadata=metadata, timeout=CALL_SECONDS)
        responses = []
        async for response in stream:
            responses.append(response)
            if self.method == "WatchNamespace":
                stream.cancel()
                break
        return responses


async def reflected_rpcs(channel: grpc.aio.Channel) -> list[ReflectedRpc]:
    """All RPCs of the contract that the server behind `channel` says it has."""
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)  # type: ignore[arg-type] # its types know no aio channel
    (listed,) = await _ask(stub, reflection_pb2.ServerReflectionRequest(list_services=""))
    names = [service.name for service in listed.list_services_response.service if service.name.startswith(PACKAGE)]
    rpcs = []
    for name in names:
        (answer,) = await _ask(stub, reflection_pb2.ServerReflectionRequest(file_containing_symbol=name))
        for raw in answer.file_descriptor_response.file_descriptor_proto:
            for service in descriptor_pb2.FileDescriptorProto.FromString(raw).service:
                if PACKAGE + service.name == name:
                    rpcs += [_rpc(service.name, method) for method in service.method]
    return rpcs


async def _ask(stub: Any, request: Any) -> list[Any]:
    return [answer async for answer in stub.ServerReflectionInfo(iter([request]), timeout=CALL_SECONDS)]


def _rpc(service: str, method: descriptor_pb2.MethodDescriptorProto) -> ReflectedRpc:
    return ReflectedRpc(
        service=service,
        method=method.name,
        request_class=_class(method.input_type),
        response_class=_class(method.output_type),
        client_streaming=method.client_streaming,
        server_streaming=method.server_streaming,
    )


def _class(type_name: str) -> type[Any]:
    return message_factory.GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(type_name.lstrip(".")))
