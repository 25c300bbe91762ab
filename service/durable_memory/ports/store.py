"""The repository of record.

One port for every mutation, `Store.transact`: a plan says what to lock and load, and a pure function decides on what
was loaded; the store owns begin, commit and retry. Everything else reads.

Promises that every adapter keeps (tests/conformance/ has a test for each):

- **Atomic and durable.** When `transact` returns, all effects of the decision and its request record are on stable
  storage, or, if it raised, none is, with one exception: OUTCOME_UNKNOWN means the commit was sent and its answer
  lost. Cancelling the caller before the commit leaves nothing behind; during it, the commit is finished first.
- **Idempotent.** With a request key, the record is looked up before anything is compared. A known key with an equal
  fingerprint returns the stored result and `replayed=True`, without calling `decide`; with another fingerprint it
  raises IDEMPOTENCY_KEY_REUSED. Of two concurrent first attempts one decides and the other replays.
- **Serial per namespace.** Plans with `Lock.NAMESPACE` in one namespace run one after the other. Plans with
  `Lock.NODES` run beside each other, but never beside a change of a node that they named.
- **Linearizable.** `head`, and every read that names no revision, sees each `transact` that returned before it
  began, through whichever replica.
- **Isolated.** Every call names one namespace, compared by exact value; nothing of another can be read or touched.
- **Absent means empty.** A namespace nobody wrote to has revision 0, a stable history id and no rows.

Errors: DomainError with DEPENDENCY_UNAVAILABLE if the database cannot be reached before any write was sent,
OUTCOME_UNKNOWN as above, DATA_CORRUPTED if what is stored cannot be read back, NOT_SERVING after `close`, and whatever
`decide` raises, as it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from durable_memory.domain.access import AccessEvent, AccessKind, UsageSummary
from durable_memory.domain.canonical import JsonObject
from durable_memory.domain.change_set import ChangeSetRecord
from durable_memory.domain.errors import idempotency_key_reused
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeKind, NodeRef, NodeRevision, NodeStatus
from durable_memory.domain.session import BindingRecord, Context, Run, Session
from durable_memory.domain.staging import StagedChange
from durable_memory.domain.state import Head


class Lock(Enum):
    """What a plan excludes while it runs."""

    NAMESPACE = "namespace"
    """Every other NAMESPACE plan of the namespace: change sets, sessions, runs."""

    NODES = "nodes"
    """Changes of the nodes in `Reads.node_ids` only: admissions and uses, which are frequent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKey:
    """Identity of a logical call in its namespace: `method` and `key` name it, `fingerprint` says what was asked."""

    method: str
    key: str
    fingerprint: str

    def require_same(self, fingerprint: str) -> None:
        """Raises: IDEMPOTENCY_KEY_REUSED if the stored call asked for something else."""
        if self.fingerprint != fingerprint:
            raise idempotency_key_reused(self.method, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What a decision has to see. Absent things are simply missing from `Loaded`.

    `evidence`: (node id, uri, digest) to look up in nodes' histories. `content_digests`: current revisions with this
    content, whatever their status. `content_evidence`: (content digest, uri, digest) to look up in the histories of the
    nodes that are found by that content. `revisions`: exact ones, current or not. `latest_runs`: (session id, run id),
    of which the newest incarnation is loaded: the greatest by (`opened_at`, `incarnation`), so whoever opens another
    one opens it later than the one before. `contexts`: loaded together with their runs' incarnations.
    """

    node_ids: frozenset[str] = frozenset()
    evidence: frozenset[tuple[str, str, str]] = frozenset()
    content_digests: frozenset[str] = frozenset()
    content_evidence: frozenset[tuple[str, str, str]] = frozenset()
    revisions: frozenset[NodeRef] = frozenset()
    session_ids: frozenset[str] = frozenset()
    latest_runs: frozenset[tuple[str, str]] = frozenset()
    contexts: frozenset[str] = frozenset()
    event_ids: frozenset[str] = frozenset()

    def evidence_of(self, by_content: Mapping[str, Sequence[NodeRevision]]) -> frozenset[tuple[str, str, str]]:
        """`content_evidence` as `evidence`, once it is known which nodes have the content."""
        return frozenset(
            (node.node_id, uri, digest)
            for content, uri, digest in self.content_evidence
            for node in by_content.get(content, ())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What was found, as of one moment under the plan's lock.

    `nodes`: current revisions by id, of `node_ids`. `known_evidence`: those of `evidence`, and of `content_evidence`
    by the ids of the nodes, that some revision has.
    `by_content`: current revisions by content digest, in id order. `runs` has, by (session id, run id, incarnation),
    the newest incarnation of each of `latest_runs` and the incarnation of each context; `latest_runs` maps
    (session id, run id) to the newest of them.
    """

    head: Head
    nodes: Mapping[str, NodeRevision] = field(default_factory=dict)
    known_evidence: frozenset[tuple[str, str, str]] = frozenset()
    by_content: Mapping[str, Sequence[NodeRevision]] = field(default_factory=dict)
    revisions: Mapping[NodeRef, NodeRevision] = field(default_factory=dict)
    sessions: Mapping[str, Session] = field(default_factory=dict)
    latest_runs: Mapping[tuple[str, str], Run] = field(default_factory=dict)
    runs: Mapping[tuple[str, str, str], Run] = field(default_factory=dict)
    contexts: Mapping[str, Context] = field(default_factory=dict)
    events: Mapping[str, AccessEvent] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to write, and the result to keep with the request.

    `result` holds ids, revisions and outcomes, never text. `change` needs `Lock.NAMESPACE`. `sessions` and `runs`
    replace the rows with the same identity ((session id), (session id, run id, incarnation)) or add them; a `Context`
    or a piece of `change.new_evidence` that exists already is left as it is. Bindings and events are new. A decision
    that repeats one, or names a row that does not exist, is a defect: it is refused (INTERNAL where the store can tell
    it from a race that was lost) and nothing of it is written. Everything may be empty: then only the request record
    is written.
    """

    result: JsonObject
    change: StagedChange | None = None
    sessions: tuple[Session, ...] = ()
    bindings: tuple[BindingRecord, ...] = ()
    runs: tuple[Run, ...] = ()
    contexts: tuple[Context, ...] = ()
    events: tuple[AccessEvent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One mutation. `decide` is pure and may be called more than once; only its last decision is written."""

    lock: Lock
    reads: Reads
    decide: Callable[[Loaded], Decision]
    request: RequestKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of the first attempt, and the head that this attempt left or found."""

    result: JsonObject
    replayed: bool
    head: Head


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelection:
    """Which nodes to list; an empty collection selects all. `labels` must all be equal."""

    statuses: frozenset[NodeStatus] = frozenset()
    kinds: frozenset[NodeKind] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """A stored request: what `transact` replays. Exported and imported with its namespace."""

    request: RequestKey
    result: JsonObject
    namespace_revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceCopy:
    """Everything a namespace holds, for an import. The order of each sequence is that of the export.

    `revisions` in (valid_from, node id) order; `valid_to` is derived by the store from the order of revisions.
    `evidence` is derived from the revisions.
    """

    chain_digest: str
    revision: int
    revisions: Sequence[NodeRevision]
    change_sets: Sequence[ChangeSetRecord]
    requests: Sequence[RequestRecord]
    sessions: Sequence[Session]
    bindings: Sequence[BindingRecord]
    runs: Sequence[Run]
    contexts: Sequence[Context]
    events: Sequence[AccessEvent]


class Store(Protocol):
    """See the module's docstring for what holds for every method."""

    # Life

    async def open(self) -> None:
        """Connect and check the schema; an embedded store also migrates itself.

        Raises: NOT_SERVING (have, want) if the schema is not the one that this version needs.
        """
        ...

    async def close(self) -> None:
        """Finish what was sent, then let go of every connection, thread and file. Idempotent."""
        ...

    async def check(self) -> None:
        """One cheap round trip, for readiness. Raises as `open` or any read would."""
        ...

    async def page_token_keys(self) -> Sequence[bytes]:
        """The keys of page tokens, 32 random bytes each, one or two: the first signs, and each verifies.

        One that is new signs after five minutes, and the one before it until then: whoever reads them every minute
        knows each key before a token comes that is signed with it. Where there is none one is minted.
        """
        ...

    async def renew_page_token_keys(self) -> None:
        """Mint another where the newest is older than six days, and forget all but the two newest."""
        ...

    # Writing

    async def transact(self, namespace: Namespace, plan: Plan) -> Outcome:
        """Run one mutation; see the module's docstring."""
        ...

    async def import_namespace(self, namespace: Namespace, copy: NamespaceCopy, history_id: str) -> Head:
        """Write a whole namespace at once, under the given new history id; all or nothing.

        Raises: REVISION_CONFLICT (expected 0, actual) if the namespace holds anything already.
        """
        ...

    # Reading

    async def head(self, namespace: Namespace) -> Head:
        """Where the namespace stands. Linearizable; concurrent calls may share one query that began after them."""
        ...

    async def wait_for_change(self, namespace: Namespace, revision: int) -> None:
        """Return when the namespace's revision is, or may be, above `revision`; a hint, never a guarantee.

        Returns after a few seconds at the latest, so a lost notification only delays. The truth is the next read.
        """
        ...

    async def find_request(self, namespace: Namespace, method: str, key: str) -> RequestRecord | None:
        """The stored request, if there is one."""
        ...

    async def current_nodes(self, namespace: Namespace, node_ids: Collection[str]) -> Mapping[str, NodeRevision]:
        """Current revisions of those that exist."""
        ...

    async def nodes_at(
        self, namespace: Namespace, node_ids: Collection[str], namespace_revision: int
    ) -> Mapping[str, NodeRevision]:
        """The revisions that were current at a namespace revision (`valid_from <= it < valid_to`)."""
        ...

    async def revisions(self, namespace: Namespace, refs: Collection[NodeRef]) -> Mapping[NodeRef, NodeRevision]:
        """Exact revisions, current or not, of those that exist."""
        ...

    async def list_nodes(
        self,
        namespace: Namespace,
        selection: NodeSelection,
        *,
        at_revision: int,
        after_node_id: str,
        limit: int,
    ) -> Sequence[NodeRevision]:
        """Nodes as they were at a namespace revision, in byte order of their ids, those after `after_node_id` only.

        The selection is applied to that state, before the limit.
        """
        ...

    async def list_revisions(
        self, namespace: Namespace, node_id: str, *, after_revision: int, limit: int
    ) -> Sequence[NodeRevision]:
        """All revisions of one node, oldest first; empty if the node does not exist."""
        ...

    async def changed_nodes(
        self, namespace: Namespace, *, after_revision: int, at_revision: int, after_node_id: str, limit: int
    ) -> Sequence[NodeRevision]:
        """The revisions current at `at_revision` that were committed after `after_revision`, in byte order of ids.

        This is what a view at `after_revision` has to take in to stand at `at_revision`. Later commits do not show.
        """
        ...

    async def list_change_sets(
        self, namespace: Namespace, *, after_revision: int, limit: int
    ) -> Sequence[ChangeSetRecord]:
        """In order of namespace revision, without gaps."""
        ...

    async def revisions_committed_at(
        self, namespace: Namespace, namespace_revisions: Collection[int]
    ) -> Mapping[int, Sequence[NodeRevision]]:
        """The node revisions that each change set produced, in byte order of node ids."""
        ...

    async def get_session(self, namespace: Namespace, session_id: str) -> Session | None: ...

    async def list_sessions(self, namespace: Namespace, *, after_session_id: str, limit: int) -> Sequence[Session]:
        """In byte order of session ids."""
        ...

    async def get_context(self, namespace: Namespace, context_id: str) -> tuple[Context, Run] | None:
        """A context and the run incarnation that it belongs to."""
        ...

    async def usage(
        self, namespace: Namespace, *, node_ids: Collection[str], after: NodeRef, limit: int
    ) -> Sequence[UsageSummary]:
        """Per node revision with at least one event, in byte order of ids, then revision; no ids means all."""
        ...

    async def list_events(
        self, namespace: Namespace, *, kind: AccessKind | None, after_event_id: str, limit: int
    ) -> Sequence[AccessEvent]:
        """In byte order of event ids."""
        ...

    def export_requests(self, namespace: Namespace) -> AsyncIterator[RequestRecord]:
        """In order of (method, key)."""
        ...

    def export_bindings(self, namespace: Namespace) -> AsyncIterator[BindingRecord]:
        """In order of (session id, binding version)."""
        ...

    def export_runs(self, namespace: Namespace) -> AsyncIterator[tuple[Run, Sequence[Context]]]:
        """In order of (session id, run id, opened at, incarnation), with the contexts in order of sequence."""
        ...
