"""What the service's own history says that a namespace was at each of its revisions."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from durable_memory_client import ChangeSet
from tests.qualification.recorder.history import Call, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRevision:
    """A revision of a node as the history has it. `text` is the digest of what its command brought, if known."""

    valid_from: int
    node_id: str
    revision: int
    status: str
    content_digest: str
    text: str | None


class Replay:
    """The listed change sets, node by node, with the texts that the callers sent."""

    def __init__(self, changes: Iterable[ChangeSet], calls: Iterable[Call] = ()) -> None:
        texts = sent_texts(calls)
        self._nodes: dict[str, list[KeptRevision]] = defaultdict(list)
        self.last = 0
        for change in changes:
            self.last = change.namespace_revision
            brought = texts.get((change.method, change.idempotency_key), {})
            for one in change.changes:
                cited = one.citation
                before = self._nodes[cited.node_id]
                text = before[-1].text if before else None
                if one.content_changed:
                    text = brought.get(cited.node_id, brought.get(""))
                before.append(
                    KeptRevision(
                        valid_from=change.namespace_revision,
                        node_id=cited.node_id,
                        revision=cited.node_revision,
                        status=one.status_after,
                        content_digest=cited.content_digest,
                        text=text,
                    )
                )

    def at(self, node_id: str, namespace_revision: int) -> KeptRevision | None:
        """The revision that was current; None if the node was not there."""
        revisions = self._nodes.get(node_id, [])
        place = bisect.bisect_right(revisions, namespace_revision, key=lambda one: one.valid_from)
        return revisions[place - 1] if place else None


def sent_texts(calls: Iterable[Call]) -> Mapping[Key, Mapping[str, str]]:
    """The digest of the text that each command brings each node; "" is the node that the answer named."""
    return {call.key: {write.node_id: write.text for write in call.writes if write.text is not None} for call in calls}
