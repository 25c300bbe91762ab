"""Nodes, citations, change tokens and namespaces."""

from __future__ import annotations

from collections.abc import Iterable

from durable_memory.domain.citation import Citation
from durable_memory.domain.evidence import Evidence
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRef, NodeRevision, Relation
from durable_memory.domain.state import ChangeToken
from durable_memory.rpc.encode.enums import number
from durable_memory.rpc.encode.times import encode_time
from durablememory.v1 import change_token_pb2, citation_pb2, namespace_pb2, node_pb2


def encode_namespace(namespace: Namespace) -> namespace_pb2.NamespaceRef:
    return namespace_pb2.NamespaceRef(
        tenant_id=namespace.tenant_id, principal_id=namespace.principal_id, scope_id=namespace.scope_id
    )


def encode_token(token: ChangeToken) -> change_token_pb2.ChangeToken:
    return change_token_pb2.ChangeToken(history_id=token.history_id, namespace_revision=token.namespace_revision)


def encode_citation(citation: Citation) -> citation_pb2.Citation:
    return citation_pb2.Citation(
        namespace_revision=citation.namespace_revision,
        node_id=citation.node_id,
        node_revision=citation.revision,
        content_digest=citation.content_digest,
        canonical=str(citation),
    )


def encode_ref(ref: NodeRef) -> citation_pb2.NodeRevisionRef:
    return citation_pb2.NodeRevisionRef(node_id=ref.node_id, revision=ref.revision)


def encode_node(node: NodeRevision, *, with_content: bool = True, with_surroundings: bool = True) -> node_pb2.Node:
    """One revision, whole but for what the request left out. Without content there are no surroundings either."""
    return node_pb2.Node(
        id=node.node_id,
        revision=node.revision,
        kind=number(node.kind),
        status=number(node.status),
        content=node.content if with_content else "",
        surroundings=node.surroundings if with_content and with_surroundings else (),
        content_digest=node.content_digest,
        author=node.author,
        occurred_at=encode_time(node.occurred_at),
        confidence=node.confidence,
        importance=node.importance,
        evidence=encode_evidence(node.evidence),
        relations=encode_relations(node.relations),
        labels=node.labels,
        created_at=encode_time(node.created_at),
        updated_at=encode_time(node.updated_at),
        committed_at=encode_time(node.committed_at),
        decided_by=node.decided_by,
        citation=encode_citation(Citation.of(node)),
        valid_from_namespace_revision=node.valid_from,
        superseded_at_namespace_revision=node.valid_to,
    )


def encode_evidence(evidence: Iterable[Evidence]) -> list[node_pb2.Evidence]:
    return [
        node_pb2.Evidence(
            uri=item.uri, digest=item.digest, kind=number(item.kind), occurred_at=encode_time(item.occurred_at)
        )
        for item in evidence
    ]


def encode_relations(relations: Iterable[Relation]) -> list[node_pb2.Relation]:
    return [node_pb2.Relation(kind=number(relation.kind), node_id=relation.node_id) for relation in relations]
