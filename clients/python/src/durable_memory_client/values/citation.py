"""Citations: names of exact text, and whatever can be cited."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias
from urllib.parse import quote, unquote

from durable_memory_client.values.wire import stated
from durablememory.v1 import citation_pb2

_FORM: Final = re.compile(r"dm1:([0-9]{1,19}):([^:@#\s]+)@([1-9][0-9]{0,18})#([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Citation:
    """One committed revision of one node, and the digest of its content.

    `str(citation)` is its one form, `dm1:<namespace revision>:<node id, percent-encoded>@<revision>#<digest>`.
    Every method that takes a citation takes that string as well.
    """

    namespace_revision: int
    node_id: str
    node_revision: int
    content_digest: str

    def __str__(self) -> str:
        node = quote(self.node_id, safe="")
        return f"dm1:{self.namespace_revision}:{node}@{self.node_revision}#{self.content_digest}"

    @classmethod
    def parse(cls, text: str) -> Citation:
        """The inverse of `str`. Raises: ValueError."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError("not a citation (dm1:<namespace revision>:<node id>@<revision>#<digest>)")
        return cls(int(match[1]), unquote(match[2]), int(match[3]), match[4])

    @classmethod
    def from_proto(cls, message: citation_pb2.Citation) -> Citation:
        return cls(message.namespace_revision, message.node_id, message.node_revision, message.content_digest)

    def to_proto(self) -> citation_pb2.Citation:
        return stated(
            citation_pb2.Citation,
            namespace_revision=self.namespace_revision,
            node_id=self.node_id,
            node_revision=self.node_revision,
            content_digest=self.content_digest,
        )


class Cited(Protocol):
    """Anything that has a citation: a hit, a node, the result of a write."""

    @property
    def citation(self) -> Citation: ...


Citable: TypeAlias = Citation | Cited | str
"""A citation, its canonical string, or anything that has one."""


def citation_of(cited: Citable) -> Citation:
    """The citation that is meant. Raises: ValueError for a string that is none."""
    if isinstance(cited, str):
        return Citation.parse(cited)
    return cited if isinstance(cited, Citation) else cited.citation


def revision_ref(cited: Citable) -> citation_pb2.NodeRevisionRef:
    """The node revision that is meant, where no digest is needed."""
    citation = citation_of(cited)
    return stated(citation_pb2.NodeRevisionRef, node_id=citation.node_id, revision=citation.node_revision)


@dataclass(frozen=True, slots=True)
class NodeRevision:
    """One revision of one node, where no digest is needed."""

    node_id: str
    revision: int

    @classmethod
    def from_proto(cls, message: citation_pb2.NodeRevisionRef) -> NodeRevision:
        return cls(message.node_id, message.revision)

    def to_proto(self) -> citation_pb2.NodeRevisionRef:
        return stated(citation_pb2.NodeRevisionRef, node_id=self.node_id, revision=self.revision)
