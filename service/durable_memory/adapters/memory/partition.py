"""All that one namespace holds, in plain collections."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from durable_memory.domain.access import AccessEvent
from durable_memory.domain.change_set import ChangeSetRecord
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.node import NodeRef, NodeRevision, NodeStatus
from durable_memory.domain.session import BindingRecord, Context, Run, Session
from durable_memory.domain.state import Head
from durable_memory.ports.store import Decision, Loaded, NamespaceCopy, Reads, RequestRecord

RunKey = tuple[str, str, str]
"""(session id, run id, incarnation)"""


def run_key(run: Run | Context) -> RunKey:
    return (run.session_id, run.run_id, run.incarnation)


def in_byte_order(ids: Iterable[str]) -> list[str]:
    """UTF-8 sorts as code points do, which is how Python compares text."""
    return sorted(ids)


@dataclass(slots=True)
class Partition:
    """`revisions` are by node, oldest first; `change_sets` start at namespace revision 1."""

    head: Head
    revisions: dict[str, list[NodeRevision]] = field(default_factory=dict)
    evidence: set[tuple[str, str, str]] = field(default_factory=set)
    change_sets: list[ChangeSetRecord] = field(default_factory=list)
    requests: dict[tuple[str, str], RequestRecord] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    bindings: dict[tuple[str, int], BindingRecord] = field(default_factory=dict)
    runs: dict[RunKey, Run] = field(default_factory=dict)
    contexts: dict[str, Context] = field(default_factory=dict)
    events: dict[str, AccessEvent] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        return not (self.change_sets or self.requests or self.sessions or self.events)

    # Reading

    def current(self, node_id: str) -> NodeRevision | None:
        revisions = self.revisions.get(node_id)
        return revisions[-1] if revisions else None

    def at(self, node_id: str, namespace_revision: int) -> NodeRevision | None:
        for node in self.revisions.get(node_id, ()):
            if node.valid_from <= namespace_revision and (node.valid_to is None or node.valid_to > namespace_revision):
                return node
        return None

    def exact(self, ref: NodeRef) -> NodeRevision | None:
        return next((node for node in self.revisions.get(ref.node_id, ()) if node.revision == ref.revision), None)

    def all_at(self, namespace_revision: int) -> list[NodeRevision]:
        """The state at a namespace revision, in byte order of ids."""
        found = (self.at(node_id, namespace_revision) for node_id in in_byte_order(self.revisions))
        return [node for node in found if node is not None]

    def latest_run(self, session_id: str, run_id: str) -> Run | None:
        incarnations = [run for run in self.runs.values() if (run.session_id, run.run_id) == (session_id, run_id)]
        return max(incarnations, key=lambda run: (run.opened_at, run.incarnation), default=None)

    def load(self, reads: Reads) -> Loaded:
        nodes = {node_id: self.current(node_id) for node_id in reads.node_ids}
        revisions = {ref: self.exact(ref) for ref in reads.revisions}
        latest = {names: self.latest_run(*names) for names in reads.latest_runs}
        latest_runs = {names: run for names, run in latest.items() if run is not None}
        contexts = {id_: self.contexts[id_] for id_ in reads.contexts if id_ in self.contexts}
        by_content = self._by_content(reads.content_digests)
        return Loaded(
            head=self.head,
            nodes={node_id: node for node_id, node in nodes.items() if node is not None},
            known_evidence=frozenset((reads.evidence | reads.evidence_of(by_content)) & self.evidence),
            by_content=by_content,
            revisions={ref: node for ref, node in revisions.items() if node is not None},
            sessions={id_: self.sessions[id_] for id_ in reads.session_ids if id_ in self.sessions},
            latest_runs=latest_runs,
            runs={run_key(run): run for run in latest_runs.values()}
            | {run_key(context): self.runs[run_key(context)] for context in contexts.values()},
            contexts=contexts,
            events={id_: self.events[id_] for id_ in reads.event_ids if id_ in self.events},
        )

    def _by_content(self, digests: frozenset[str]) -> Mapping[str, list[NodeRevision]]:
        found: dict[str, list[NodeRevision]] = {}
        if digests:
            for node_id in in_byte_order(self.revisions):
                node = self.revisions[node_id][-1]
                if node.content_digest in digests:
                    found.setdefault(node.content_digest, []).append(node)
        return found

    # Writing

    def write(self, decision: Decision) -> None:
        """All effects of a decision; it is checked first, so that nothing is written of a defective one."""
        self._refuse_defects(decision)
        if decision.change is not None:
            for node in decision.change.revisions:
                self._add_revision(node)
            self.evidence.update(decision.change.new_evidence)
            self.change_sets.append(decision.change.record)
            self.head = decision.change.head
        if decision.sessions:
            self.head = replace(self.head, session_revision=self.head.session_revision + 1)
        self.sessions.update((session.session_id, session) for session in decision.sessions)
        self.bindings.update(((record.session_id, record.binding_version), record) for record in decision.bindings)
        self.runs.update((run_key(run), run) for run in decision.runs)
        for context in decision.contexts:
            self.contexts.setdefault(context.context_id, context)
        self.events.update((event.event_id, event) for event in decision.events)

    def fill(self, copy: NamespaceCopy, history_id: str) -> None:
        """Take in a whole namespace; this one is empty."""
        for node in copy.revisions:
            self._add_revision(replace(node, valid_to=None))
            self.evidence.update((node.node_id, item.uri, item.digest) for item in node.evidence)
        self.change_sets = list(copy.change_sets)
        self.requests = {(record.request.method, record.request.key): record for record in copy.requests}
        self.write(
            Decision(
                result={},
                sessions=tuple(copy.sessions),
                bindings=tuple(copy.bindings),
                runs=tuple(copy.runs),
                contexts=tuple(copy.contexts),
                events=tuple(copy.events),
            )
        )
        current = [revisions[-1] for revisions in self.revisions.values()]
        self.head = Head(
            history_id=history_id,
            revision=copy.revision,
            chain_digest=copy.chain_digest,
            node_count=len(current),
            active_count=sum(node.status is NodeStatus.ACTIVE for node in current),
            active_bytes=sum(node.active_bytes for node in current),
        )

    def _add_revision(self, node: NodeRevision) -> None:
        revisions = self.revisions.setdefault(node.node_id, [])
        if revisions:
            revisions[-1] = replace(revisions[-1], valid_to=node.valid_from)
        revisions.append(node)

    def _refuse_defects(self, decision: Decision) -> None:
        sessions = self.sessions.keys() | {session.session_id for session in decision.sessions}
        runs = self.runs.keys() | {run_key(run) for run in decision.runs}
        bindings = [(record.session_id, record.binding_version) for record in decision.bindings]
        events = [event.event_id for event in decision.events]
        if (
            (decision.change is not None and decision.change.head.revision != self.head.revision + 1)
            or any(record.session_id not in sessions for record in decision.bindings)
            or any(run.session_id not in sessions for run in decision.runs)
            or any(run_key(context) not in runs for context in decision.contexts)
            or any(self.exact(event.ref) is None for event in decision.events)
            or not _all_new(bindings, self.bindings)
            or not _all_new(events, self.events)
        ):
            raise DomainError(Reason.INTERNAL, "the decision breaks an invariant of the store")


def _all_new(keys: Sequence[Hashable], held: Container[Hashable]) -> bool:
    return len(set(keys)) == len(keys) and not any(key in held for key in keys)
