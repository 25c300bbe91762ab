"""The status machine: which moves exist, and which of them are decisions."""

from __future__ import annotations

from typing import Final

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.node import NodeStatus

_S = NodeStatus

TRANSITIONS: Final[dict[NodeStatus, frozenset[NodeStatus]]] = {
    _S.CANDIDATE: frozenset({_S.ACTIVE, _S.CONFLICTED, _S.TOMBSTONED}),
    _S.ACTIVE: frozenset({_S.SUPERSEDED, _S.CONFLICTED, _S.ARCHIVED, _S.TOMBSTONED}),
    _S.CONFLICTED: frozenset({_S.ACTIVE, _S.SUPERSEDED, _S.TOMBSTONED}),
    _S.ARCHIVED: frozenset({_S.ACTIVE, _S.TOMBSTONED}),
    _S.SUPERSEDED: frozenset({_S.TOMBSTONED}),
    _S.TOMBSTONED: frozenset(),
}
"""From each status to those it may become. A move to ACTIVE needs an Activate with decision evidence."""

INITIAL: Final = frozenset({_S.CANDIDATE, _S.ACTIVE})
"""What a node may be created as; ACTIVE needs decision evidence."""

IRREVOCABLE: Final = frozenset({_S.SUPERSEDED, _S.TOMBSTONED})
"""Frozen for good: no move leads back to ACTIVE. What has been decided on leaves only by a decision."""


def check_transition(node_id: str, source: NodeStatus, target: NodeStatus) -> None:
    """Raises: INVALID_TRANSITION (node_id, from, to)."""
    if target not in TRANSITIONS[source]:
        raise DomainError(
            Reason.INVALID_TRANSITION,
            f"node {node_id} cannot go from {source.name} to {target.name}",
            node_id=node_id,
            **{"from": source.name, "to": target.name},
        )
