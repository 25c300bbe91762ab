"""Requests and their parts as tests need them: short to write, valid unless a test makes them otherwise."""

from __future__ import annotations

import itertools
from typing import Any

from durablememory.v1 import (
    citation_pb2,
    decision_pb2,
    memory_service_pb2,
    namespace_pb2,
    node_pb2,
    repository_service_pb2,
)

_numbers = itertools.count(1)

SEMANTIC = node_pb2.NODE_KIND_SEMANTIC


def namespace(tenant: str = "acme", principal: str = "user-1", scope: str = "default") -> namespace_pb2.NamespaceRef:
    return namespace_pb2.NamespaceRef(tenant_id=tenant, principal_id=principal, scope_id=scope)


def request_id() -> str:
    """One that no other request has."""
    return f"request-{next(_numbers)}"


def call(**fields: Any) -> dict[str, Any]:
    """The fields that every mutation has, and more."""
    return {"namespace": namespace(), "request_id": request_id(), **fields}


def draft(content: str = "The user prefers tea.", **fields: Any) -> node_pb2.MemoryDraft:
    return node_pb2.MemoryDraft(**{"kind": SEMANTIC, "content": content, **fields})


def turn(number: int = 1, **fields: Any) -> node_pb2.Evidence:
    """A turn of a session as evidence, its body stated."""
    source = {} if "digest" in fields else {"body": f"turn {number}".encode()}
    return node_pb2.Evidence(
        **{
            "uri": f"session:demo/turn/{number}",
            "kind": node_pb2.EVIDENCE_KIND_SESSION_TURN,
            **source,
            **fields,
        }
    )


def manual_evidence(number: int = 1) -> node_pb2.Evidence:
    """Evidence that decides, as ApplyChangeSet wants it."""
    return node_pb2.Evidence(
        uri=f"review:{number}", body=f"review {number}".encode(), kind=node_pb2.EVIDENCE_KIND_MANUAL
    )


def manual(note: str = "") -> decision_pb2.Decision:
    return decision_pb2.Decision(kind=decision_pb2.DECISION_KIND_MANUAL, note=note)


def ref(citation: citation_pb2.Citation) -> citation_pb2.NodeRevisionRef:
    return citation_pb2.NodeRevisionRef(node_id=citation.node_id, revision=citation.node_revision)


async def remember(stubs: Any, content: str = "The user prefers tea.", **fields: Any) -> citation_pb2.Citation:
    """The citation of `content` remembered at once; `fields` are the request's."""
    request = memory_service_pb2.RememberRequest(**{**call(), "memory": draft(content), **fields})
    answer: memory_service_pb2.RememberResponse = await stubs.memories.Remember(request)
    return answer.citation


async def change_token(stubs: Any, where: namespace_pb2.NamespaceRef | None = None) -> Any:
    request = repository_service_pb2.GetChangeTokenRequest(namespace=where or namespace())
    return (await stubs.repository.GetChangeToken(request)).change_token
