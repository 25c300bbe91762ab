"""Citations: names of exact text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from durable_memory.domain.canonical import INTEGER_MAX
from durable_memory.domain.errors import invalid_field
from durable_memory.domain.node import NodeRef, NodeRevision
from durable_memory.domain.text import check_name

_FORM: Final = re.compile(r"dm1:([1-9][0-9]{0,18}):([^:@#\s]{1,768})@([1-9][0-9]{0,18})#([0-9a-f]{64})")
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9_.~-]+")  # what percent-encoding leaves as it is


@dataclass(frozen=True, slots=True)
class Citation:
    """Namespace revision that committed the text, node, node revision, and the content's digest.

    One text has one citation, and one string:
    `dm1:<namespace revision>:<node id, percent-encoded>@<revision>#<digest>`.
    """

    namespace_revision: int
    node_id: str
    revision: int
    content_digest: str

    @classmethod
    def of(cls, node: NodeRevision) -> Citation:
        return cls(node.valid_from, node.node_id, node.revision, node.content_digest)

    @property
    def ref(self) -> NodeRef:
        return NodeRef(self.node_id, self.revision)

    def names(self, node: NodeRevision) -> bool:
        """Whether this is `node`'s text: revision and digest decide, not what else the namespace did meanwhile.

        A namespace revision of 0 is one that the caller left out; any other has to be the right one.
        """
        return (
            self.node_id == node.node_id
            and self.revision == node.revision
            and self.content_digest == node.content_digest
            and self.namespace_revision in (0, node.valid_from)
        )

    def __str__(self) -> str:
        node_id = self.node_id if _UNRESERVED.fullmatch(self.node_id) else quote(self.node_id, safe="")
        return f"dm1:{self.namespace_revision}:{node_id}@{self.revision}#{self.content_digest}"


def parse_citation(field: str, text: str) -> Citation:
    """The inverse of `str(citation)`, for canonical strings only.

    Raises: INVALID_FIELD.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise invalid_field(field, "is not a citation (dm1:<revision>:<node>@<revision>#<digest>)")
    namespace_revision, node_id, revision, digest = match.groups()
    citation = Citation(int(namespace_revision), unquote(node_id, errors="replace"), int(revision), digest)
    check_name(f"{field}.node_id", citation.node_id)
    if max(citation.namespace_revision, citation.revision) > INTEGER_MAX:
        raise invalid_field(field, f"names a revision beyond {INTEGER_MAX}, the largest there can be")
    if str(citation) != text:
        raise invalid_field(field, "is not in its canonical form")
    return citation
