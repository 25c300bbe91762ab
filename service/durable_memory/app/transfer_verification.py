"""What an export has to prove before a byte of it is written.

Digests of every text and revision, the chain over all change sets, the order of revisions, the status machine and its
gate, and that every reference leads somewhere. So a damaged file is refused, and one written by hand cannot bring a
memory into recall that no decision let in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from durable_memory.app.transfer_records import (
    ExportFooter,
    ExportHeader,
    ExportRecord,
    RecordDigest,
    SessionExport,
    TransferCounts,
)
from durable_memory.domain.access import AccessEvent, AccessKind
from durable_memory.domain.change_set import CHAIN_START, ChangeSetRecord, NodeChange, chain
from durable_memory.domain.errors import DomainError, Reason, invalid_field
from durable_memory.domain.limits import (
    IMPORT_MAX_EMPTY_CONTEXTS,
    NAMESPACE_MAX_ACTIVE_BYTES,
    NAMESPACE_MAX_ACTIVE_NODES,
)
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRef, NodeRevision, NodeStatus, Relation, content_digest
from durable_memory.domain.session import Context, Run
from durable_memory.domain.status import INITIAL, TRANSITIONS
from durable_memory.ports.store import NamespaceCopy, RequestRecord

_REVISABLE: Final = (
    "content", "surroundings", "author", "occurred_at", "confidence", "importance", "labels",
)  # fmt: skip


def verified_copy(namespace: Namespace, records: Sequence[ExportRecord]) -> tuple[NamespaceCopy, TransferCounts]:
    """The namespace that `records` describe, if all of it verifies.

    Raises: DATA_CORRUPTED (record: its place from 0, problem), INVALID_FIELD for another namespace,
    NAMESPACE_TOO_LARGE.
    """
    if len(records) < 2 or not isinstance(records[0], ExportHeader) or not isinstance(records[-1], ExportFooter):
        raise _refused(max(len(records) - 1, 0), "the export is not complete: its header or footer is missing")
    header, footer = records[0], records[-1]
    if header.namespace != namespace:
        raise invalid_field("namespace", "is not the one that was exported")
    verification = _Verification(namespace, max_contexts=len(records) + IMPORT_MAX_EMPTY_CONTEXTS)
    for place, record in enumerate(records[1:-1], start=1):
        verification.add(place, record)
    return verification.finish(len(records) - 1, header, footer)


class _Verification:
    def __init__(self, namespace: Namespace, *, max_contexts: int) -> None:
        self._namespace = namespace
        self._max_contexts = max_contexts
        self._digest = RecordDigest()
        self._chain = CHAIN_START
        self._latest: dict[str, NodeRevision] = {}
        self._evidence: dict[str, set[tuple[str, str]]] = {}
        self._pending: dict[NodeRef, tuple[NodeRevision | None, NodeRevision]] = {}
        self._statuses: dict[NodeRef, NodeStatus] = {}
        self._revisions: list[NodeRevision] = []
        self._change_sets: list[ChangeSetRecord] = []
        self._requests: dict[tuple[str, str], RequestRecord] = {}
        self._sessions: dict[str, SessionExport] = {}
        self._runs: list[Run] = []
        self._contexts: dict[str, Context] = {}
        self._events: dict[str, AccessEvent] = {}

    def add(self, place: int, record: ExportRecord) -> None:
        match record:
            case NodeRevision():
                self._node(place, record)
            case ChangeSetRecord():
                self._change_set(place, record)
            case RequestRecord():
                key = (record.request.method, record.request.key)
                _require(place, key not in self._requests, "a request occurs twice")
                _require(place, 0 <= record.namespace_revision <= len(self._change_sets), "a request has no revision")
                self._requests[key] = record
            case SessionExport():
                self._session(place, record)
            case Run():
                self._run(place, record)
            case AccessEvent():
                self._event(place, record)
            case ExportHeader() | ExportFooter():
                raise _refused(place, "a header or footer stands inside the export")
        self._digest.add(record)

    def finish(self, place: int, header: ExportHeader, footer: ExportFooter) -> tuple[NamespaceCopy, TransferCounts]:
        _require(place, not self._pending, "a node revision belongs to no change set")
        _require(place, self._digest.counts() == footer.counts, "the counts do not agree")
        _require(place, self._digest.hex() == footer.digest, "the digest over all records does not agree")
        _require(place, header.token.namespace_revision == len(self._change_sets), "change sets are missing")
        _require(place, header.chain_digest == self._chain, "the history's chain digest does not agree")
        active = [node.active_bytes for node in self._latest.values() if node.status is NodeStatus.ACTIVE]
        if len(active) > NAMESPACE_MAX_ACTIVE_NODES or sum(active) > NAMESPACE_MAX_ACTIVE_BYTES:
            raise _namespace_too_large(len(active), sum(active))
        copy = NamespaceCopy(
            chain_digest=self._chain,
            revision=len(self._change_sets),
            revisions=self._revisions,
            change_sets=self._change_sets,
            requests=list(self._requests.values()),
            sessions=[item.session for item in self._sessions.values()],
            bindings=[binding for item in self._sessions.values() for binding in item.bindings],
            runs=self._runs,
            contexts=list(self._contexts.values()),
            events=list(self._events.values()),
        )
        return copy, footer.counts

    def _node(self, place: int, node: NodeRevision) -> None:
        before = self._latest.get(node.node_id)
        _require(place, node.valid_to is None, "a node revision says when it ended")
        _require(place, node.content_digest == content_digest(node.content), "a content digest does not agree")
        _require(place, node.valid_from == len(self._change_sets) + 1, "a node revision is out of order")
        _require(place, all(ref.node_id < node.node_id for ref in self._pending), "a node revision is out of order")
        _require(place, node.revision == (before.revision if before else 0) + 1, "a node revision is missing")
        _require(place, len({item.uri for item in node.evidence}) == len(node.evidence), "evidence occurs twice")
        if before is None:
            _require(place, node.status in INITIAL, "a node begins with a status that none can begin with")
        else:
            self._successor(place, before, node)
        known = self._evidence.setdefault(node.node_id, set())
        if node.status is NodeStatus.ACTIVE and (before is None or _needs_decision(before, node)):
            decided = any(item.kind.decides and item.identity not in known for item in node.evidence)
            _require(place, decided and bool(node.decided_by), "a memory is ACTIVE without a decision")
        known.update(item.identity for item in node.evidence)
        self._latest[node.node_id] = node
        self._pending[node.ref] = (before, node)
        self._statuses[node.ref] = node.status
        self._revisions.append(node)

    def _successor(self, place: int, before: NodeRevision, node: NodeRevision) -> None:
        moved = before.status is not node.status
        _require(place, not moved or node.status in TRANSITIONS[before.status], "a status move does not exist")
        _require(place, not before.frozen or not _grown(before, node), "a frozen memory was revised")
        same = (before.kind, before.created_at) == (node.kind, node.created_at)
        _require(place, same, "a memory's kind or creation changed")
        _require(place, before.updated_at <= node.updated_at, "a memory's time goes back")

    def _change_set(self, place: int, record: ChangeSetRecord) -> None:
        _require(place, record.namespace_revision == len(self._change_sets) + 1, "a change set is out of order")
        _require(place, bool(record.changes), "a change set changes nothing")
        changed: list[tuple[NodeRevision | None, NodeRevision]] = []
        for change in record.changes:
            found = self._pending.pop(NodeRef(change.node_id, change.revision), None)
            if found is None:
                raise _refused(place, "a change set names a node revision that is not there")
            _require(place, found[1].digest() == change.revision_digest, "a node revision's digest does not agree")
            _require(place, _describes(change, *found), "a change set says something else than its node revision")
            changed.append(found)
        _require(place, not self._pending, "a node revision belongs to no change set")
        for before, node in changed:
            self._relations(place, before, node)
        self._chain = chain(self._chain, record.namespace_revision, record.digest())
        _require(place, self._chain == record.chain_digest, "the chain digest does not agree")
        self._change_sets.append(record)

    def _relations(self, place: int, before: NodeRevision | None, node: NodeRevision) -> None:
        """Both ends of every edge that a change set added or removed."""
        held = set(node.relations)
        for relation in held.symmetric_difference(before.relations if before else ()):
            other = self._latest.get(relation.node_id)
            if other is None or other is node:
                raise _refused(place, "a relation leads nowhere")
            inverse = Relation(relation.kind.inverse, node.node_id)
            _require(place, (inverse in other.relations) == (relation in held), "a relation has one end only")

    def _session(self, place: int, record: SessionExport) -> None:
        session_id = record.session.session_id
        _require(place, session_id not in self._sessions, "a session occurs twice")
        versions = [item.binding_version for item in record.bindings]
        _require(place, versions == list(range(1, len(versions) + 1)) and bool(versions), "a binding is missing")
        for item in record.bindings:
            _require(place, item.session_id == session_id, "a binding belongs to another session")
            _require(place, item.binding.namespace == self._namespace, "a binding names another namespace")
        last = record.bindings[-1]
        current = (last.binding, last.binding_version) == (record.session.binding, record.session.binding_version)
        _require(place, current, "a session's binding is not its last one")
        self._sessions[session_id] = record

    def _run(self, place: int, run: Run) -> None:
        _require(place, run.session_id in self._sessions, "a run belongs to no session")
        room = self._max_contexts - len(self._contexts)
        _require(place, 0 <= run.sequence < room, "the runs have more contexts than an import may bring")
        contexts = [
            Context.of(run.session_id, run.run_id, run.incarnation, sequence) for sequence in range(run.sequence + 1)
        ]
        _require(place, contexts[-1].context_id == run.context_id, "a context id does not agree")
        _require(place, contexts[0].context_id not in self._contexts, "a run occurs twice")
        self._contexts.update((context.context_id, context) for context in contexts)
        self._runs.append(run)

    def _event(self, place: int, event: AccessEvent) -> None:
        _require(place, event.event_id not in self._events, "an access event occurs twice")
        context = self._contexts.get(event.context_id)
        known = context is not None and context.session_id == event.session_id
        _require(place, known, "an access event belongs to no context")
        status = self._statuses.get(event.ref)
        _require(place, status is not None, "an access event names a revision that is not there")
        admissible = event.kind is not AccessKind.ADMISSION or status is NodeStatus.ACTIVE
        _require(place, admissible, "a revision was admitted that was not ACTIVE")
        self._events[event.event_id] = event


def _revised(before: NodeRevision, node: NodeRevision) -> bool:
    """Whether anything differs that only a Revise changes."""
    return any(getattr(before, name) != getattr(node, name) for name in _REVISABLE)


def _grown(before: NodeRevision, node: NodeRevision) -> bool:
    """Whether a node has anything that none can be given any more. What moves it may have its evidence."""
    supported = before.status is node.status and before.evidence != node.evidence
    return supported or _revised(before, node) or not set(node.relations) <= set(before.relations)


def _needs_decision(before: NodeRevision, node: NodeRevision) -> bool:
    return before.status is not NodeStatus.ACTIVE or _revised(before, node)


def _describes(change: NodeChange, before: NodeRevision | None, node: NodeRevision) -> bool:
    """Whether a change set's entry says what became of the node."""
    return (change.content_digest, change.content_changed, change.status_before, change.status_after) == (
        node.content_digest,
        before is None or before.content_digest != node.content_digest,
        None if before is None else before.status,
        node.status,
    )


def _require(place: int, holds: bool, problem: str) -> None:
    if not holds:
        raise _refused(place, problem)


def _namespace_too_large(active_nodes: int, active_bytes: int) -> DomainError:
    return DomainError(
        Reason.NAMESPACE_TOO_LARGE,
        "the import has more ACTIVE memories than a namespace may hold",
        active_nodes=active_nodes,
        active_bytes=active_bytes,
        max_active_nodes=NAMESPACE_MAX_ACTIVE_NODES,
        max_active_bytes=NAMESPACE_MAX_ACTIVE_BYTES,
    )


def _refused(place: int, problem: str) -> DomainError:
    return DomainError(
        Reason.DATA_CORRUPTED, f"the import is refused at record {place}: {problem}", record=place, problem=problem
    )
