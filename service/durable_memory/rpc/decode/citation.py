"""Citations and references to node revisions."""

from __future__ import annotations

from google.protobuf.message import Message

from durable_memory.domain.citation import Citation, parse_citation
from durable_memory.domain.errors import invalid_field
from durable_memory.domain.node import NodeRef
from durable_memory.domain.text import check_name
from durable_memory.rpc.decode.fields import hex_digest, namespace_revision, revision
from durablememory.v1 import citation_pb2
from durablememory.v1.access_pb2 import UseEvent
from durablememory.v1.repository_service_pb2 import GetRevisionRequest


def decode_citation(field: str, given: citation_pb2.Citation) -> Citation:
    """A citation by its canonical string, by its parts, or by both where they agree.

    A namespace revision that is not stated is 0 and stands for any: node, revision and digest name the text.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    if not given.canonical:
        return Citation(
            namespace_revision(f"{field}.namespace_revision", given.namespace_revision),
            check_name(f"{field}.node_id", given.node_id),
            revision(f"{field}.node_revision", given.node_revision),
            hex_digest(f"{field}.content_digest", given.content_digest),
        )
    citation = parse_citation(f"{field}.canonical", given.canonical)
    for name, stated, meant in (
        ("namespace_revision", given.namespace_revision, citation.namespace_revision),
        ("node_id", given.node_id, citation.node_id),
        ("node_revision", given.node_revision, citation.revision),
        ("content_digest", given.content_digest, citation.content_digest),
    ):
        if stated and stated != meant:
            raise invalid_field(f"{field}.{name}", f"contradicts {field}.canonical")
    return citation


def required_citation(field: str, message: Message) -> Citation:
    """The citation `message.<field>`.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    if not message.HasField(field):
        raise invalid_field(field, "is missing")
    return decode_citation(field, getattr(message, field))


def decode_ref(field: str, given: citation_pb2.NodeRevisionRef) -> NodeRef:
    """Raises: INVALID_FIELD, LIMIT_EXCEEDED."""
    return NodeRef(check_name(f"{field}.node_id", given.node_id), revision(f"{field}.revision", given.revision))


def decode_target(field: str, given: UseEvent | GetRevisionRequest) -> NodeRef | Citation:
    """The `target` of a message that names a node revision by citation or by reference; `field` is a prefix.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    target = given.WhichOneof("target")
    if target == "citation":
        return decode_citation(f"{field}citation", given.citation)
    if target == "node_revision":
        return decode_ref(f"{field}node_revision", given.node_revision)
    raise invalid_field(f"{field}target", "is missing: state a citation or a node revision")
