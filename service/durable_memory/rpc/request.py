"""The first steps of every call: may this caller do this here, and under which key.

The order of checks is the contract's: authenticated by the interceptors, then `authorised`, then the decoding of the
fields, then `keyed`; the stores look up the request id before they compare anything.
"""

from __future__ import annotations

from typing import Protocol

from google.protobuf.message import Message

from durable_memory.app.call import Call, Mutation
from durable_memory.domain.text import check_name
from durable_memory.ports.store import RequestKey
from durable_memory.rpc.authentication import current_caller
from durable_memory.rpc.fingerprint import fingerprint
from durable_memory.rpc.interceptors.call import current_end
from durable_memory.rpc.roles import ROLES
from durablememory.v1.namespace_pb2 import NamespaceRef


class NamespacedRequest(Protocol):
    """Every request that names a namespace, which all do but GetServerInfo."""

    @property
    def namespace(self) -> NamespaceRef: ...


def authorised(rpc: str, request: NamespacedRequest) -> Call:
    """The call, if the current caller has the roles of `rpc` ("Service.Method") and may use the namespace.

    Raises: PERMISSION_DENIED, whatever exists there; INVALID_FIELD, LIMIT_EXCEEDED for the namespace's form.
    """
    caller = current_caller()
    for role in ROLES[rpc]:
        caller.require(role)
    given = request.namespace
    return Call(
        caller=caller,
        namespace=caller.resolve(
            given.tenant_id if given.HasField("tenant_id") else None,
            given.principal_id if given.HasField("principal_id") else None,
            given.scope_id if given.HasField("scope_id") else None,
        ),
        ends_at=current_end(),
    )


def keyed(call: Call, rpc: str, request: Message, request_id: str) -> Mutation:
    """The call with the identity that makes its repeats return the first result.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED for the request id.
    """
    method = rpc.partition(".")[2]
    return Mutation(
        caller=call.caller,
        namespace=call.namespace,
        ends_at=call.ends_at,
        request=RequestKey(
            method=method, key=check_name("request_id", request_id), fingerprint=fingerprint(method, request)
        ),
    )
