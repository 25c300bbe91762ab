"""What the use cases tell whoever counts: events as they happen, and how the process stands.

Nothing here names a tenant, a namespace, a memory or a text, or carries one: every value is a number or out of a closed
list, so that the number of series is bounded. Observers never raise and never wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final, Protocol

from durable_memory.ports.embedder import EmbeddingUsage
from durable_memory.ports.semantic_records import Receipt


@dataclass(slots=True)
class RefreshNotes:
    """What a refresh leaves for its observer: the receipt, once there is one."""

    receipt: Receipt | None = None


class Observer(Protocol):
    """Receives events; see the module's docstring."""

    def recall_answered(self, channels: Iterable[str]) -> None:
        """An answer went out; the channel of each of its hits."""
        ...

    def recall_degraded(self, *, mode: str, reason: str) -> None:
        """The semantic branch could not answer a recall in `mode`: AUTO went on without it, others were refused."""
        ...

    def vectors_searched(self, *, searched: int, dropped: int, refilled: int) -> None:
        """What one semantic branch looked through, did not trust, and found in its place."""
        ...

    def embeddings_cached(self, *, hits: int, misses: int) -> None:
        """A refresh asked the repository for vectors: how many it had."""
        ...

    def index_unserved(self, state: str) -> None:
        """A partition's index was found REGRESSED or CORRUPTED that was not known to be."""
        ...

    def lease_lost(self) -> None:
        """Work under a lease was cancelled because the lease could not be trusted any more."""
        ...

    def refreshing(self, partition: str, authority_digest: str) -> AbstractContextManager[RefreshNotes]:
        """Around one refresh. Both names are digests; they are for spans alone."""
        ...


class Unobserved:
    """Nobody counts."""

    def recall_answered(self, channels: Iterable[str]) -> None: ...

    def recall_degraded(self, *, mode: str, reason: str) -> None: ...

    def vectors_searched(self, *, searched: int, dropped: int, refilled: int) -> None: ...

    def embeddings_cached(self, *, hits: int, misses: int) -> None: ...

    def index_unserved(self, state: str) -> None: ...

    def lease_lost(self) -> None: ...

    def refreshing(self, partition: str, authority_digest: str) -> AbstractContextManager[RefreshNotes]:
        return nullcontext(RefreshNotes())


UNOBSERVED: Final[Observer] = Unobserved()


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewState:
    """Namespace views in memory, and counts since the start of the process."""

    views: int
    bytes: int
    hits: int
    loads: int
    deltas: int
    evictions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticState:
    """Semantic recall of this process at one moment.

    `unserved_partitions`: how many this process knows of, by state (REGRESSED, CORRUPTED). `unembedded_nodes`: ACTIVE
    memories without a vector of their present text, in the partitions that were looked at lately. `vectors` and
    `vector_bytes` are what is held in memory.
    """

    serving: bool
    index_available: bool
    embedder_available: bool
    unserved_partitions: Mapping[str, int]
    unembedded_nodes: int
    vector_views: int
    vectors: int
    vector_bytes: int
    maintenance_running: int
    maintenance_runs: int
    maintenance_failures: int
    usage: EmbeddingUsage = field(default_factory=EmbeddingUsage)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """`semantic` is `None` where the server makes no vectors."""

    views: ViewState
    semantic: SemanticState | None
