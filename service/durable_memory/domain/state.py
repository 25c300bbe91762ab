"""Where a namespace stands."""

from __future__ import annotations

from dataclasses import dataclass

from durable_memory.domain.canonical import digest_hex
from durable_memory.domain.change_set import CHAIN_START
from durable_memory.domain.namespace import Namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeToken:
    """Moves exactly when node state moves; survives restarts, replays and access events unchanged."""

    history_id: str
    namespace_revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The committed state of a namespace, in brief.

    `history_id` names the line of history: a restore or an import mints another. `chain_digest` covers every change
    set up to `revision`; views are keyed by the three. Counts are of current revisions; `active_bytes` is the UTF-8
    size of the ACTIVE nodes' content, author and surroundings. `session_revision` counts the writes that opened,
    rebound or closed a session, so that a copy of a session is known to be current without reading it again.
    """

    history_id: str
    revision: int = 0
    chain_digest: str = CHAIN_START
    node_count: int = 0
    active_count: int = 0
    active_bytes: int = 0
    session_revision: int = 0

    @property
    def token(self) -> ChangeToken:
        return ChangeToken(history_id=self.history_id, namespace_revision=self.revision)


def derived_history_id(store_history_id: str, namespace: Namespace) -> str:
    """A namespace's history id until an import gives it its own: 32 hexadecimal digits.

    It depends on the store's random id and the namespace alone, so it is the same before and after the first write,
    and no two stores share one.
    """
    return digest_hex("history/v1", store_history_id.encode(), namespace.key)[:32]
