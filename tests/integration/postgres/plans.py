"""Small mutations for the tests of this store, made with the kernel's own rules."""

from datetime import UTC, datetime, timedelta

from durable_memory.domain.access import AccessEvent, AccessKind
from durable_memory.domain.change_set import ChangeSet, Corroborate, Create, NodeDraft
from durable_memory.domain.evidence import EvidenceInput, EvidenceKind, body_digest
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeKind, NodeRef, NodeStatus
from durable_memory.domain.session import (
    Context,
    RecallMode,
    RecallPolicy,
    Run,
    RunState,
    Session,
    SessionBinding,
    SessionState,
)
from durable_memory.domain.staging import Actor, stage
from durable_memory.ports.store import Decision, Loaded, Lock, Plan, Reads, RequestKey

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE = Namespace("acme", "user-1", "default")


def request(key, method="Test"):
    return RequestKey(method=method, key=key, fingerprint=f"v1:{key}")


def evidence(uri="doc:1", kind=EvidenceKind.MANUAL):
    return EvidenceInput(uri=uri, kind=kind, digest=body_digest(uri.encode()))


def change(*operations, key=None):
    """Apply a change set made of these operations."""
    change_set = ChangeSet(operations=operations)
    actor = Actor(caller="tester", may_activate=True, method="Test", request_id=key or "")

    def decide(loaded: Loaded) -> Decision:
        staged = stage(
            change_set,
            head=loaded.head,
            nodes=loaded.nodes,
            known_evidence=loaded.known_evidence,
            actor=actor,
            now=NOW + timedelta(seconds=loaded.head.revision),
        )
        return Decision(result={"namespace_revision": staged.head.revision}, change=staged)

    reads = Reads(node_ids=change_set.node_ids(), evidence=change_set.offered_evidence())
    return Plan(lock=Lock.NAMESPACE, reads=reads, decide=decide, request=None if key is None else request(key))


def created(node_id, content="tea, not coffee", labels=None):
    draft = NodeDraft(kind=NodeKind.SEMANTIC, content=content, evidence=(evidence(),), labels=labels or {})
    return Create(node_id=node_id, status=NodeStatus.ACTIVE, draft=draft)


def create(node_id, key=None, **draft):
    """Create one ACTIVE node."""
    return change(created(node_id, **draft), key=key)


def corroborated(node_id, revision, uri):
    return Corroborate(node_id=node_id, expected_revision=revision, evidence=(evidence(uri),))


def corroborate(node_id, revision, uri, key=None):
    """Give a node another revision."""
    return change(corroborated(node_id, revision, uri), key=key)


def no_op(lock=Lock.NAMESPACE, key=None, reads=None):
    """Decide that there is nothing to do."""
    return Plan(
        lock=lock,
        reads=reads or Reads(),
        decide=lambda loaded: Decision(result={"seen": loaded.head.revision}),
        request=None if key is None else request(key),
    )


def session_with_run(session_id="session-1", run_id="run-1", incarnation="a"):
    """Open a session with one run, and hand out its first context."""
    context = Context.of(session_id, run_id, incarnation, 0)
    policy = RecallPolicy(
        mode=RecallMode.LEXICAL,
        max_results=5,
        min_score=0.0,
        min_relative_score=0.0,
        related_lookups=0,
        lexical_profile="dm.lexical.bm25f.v1",
        fusion_profile="dm.fusion.convex.v1",
    )
    session = Session(
        session_id=session_id,
        binding=SessionBinding(namespace=NAMESPACE, policy=policy),
        binding_version=1,
        request_digest="0" * 64,
        state=SessionState.OPEN,
        opened_by="tester",
        opened_at=NOW,
    )
    run = Run(
        session_id=session_id,
        run_id=run_id,
        incarnation=incarnation,
        host_instance="host-1",
        state=RunState.OPEN,
        sequence=0,
        context_id=context.context_id,
        begun_by="tester",
        opened_at=NOW,
        active_at=NOW,
    )
    return Plan(
        lock=Lock.NAMESPACE,
        reads=Reads(),
        decide=lambda loaded: Decision(result={}, sessions=(session,), runs=(run,), contexts=(context,)),
    )


def admission(event_id, ref: NodeRef, context_id):
    """The event that a revision entered a context."""
    return AccessEvent(
        event_id=event_id,
        kind=AccessKind.ADMISSION,
        session_id="session-1",
        context_id=context_id,
        node_id=ref.node_id,
        revision=ref.revision,
        caller="tester",
        at=NOW,
    )


def admit(ref: NodeRef, event_id, context_id="context", key=None):
    """Record the admission of a node's revision if it is the current one and not recorded yet."""

    def decide(loaded: Loaded) -> Decision:
        node = loaded.nodes.get(ref.node_id)
        fits = node is not None and node.revision == ref.revision
        new = event_id not in loaded.events
        events = (admission(event_id, ref, context_id),) if fits and new else ()
        return Decision(result={"admitted": fits, "new": new, "found": node.revision if node else 0}, events=events)

    reads = Reads(node_ids=frozenset({ref.node_id}), event_ids=frozenset({event_id}))
    return Plan(lock=Lock.NODES, reads=reads, decide=decide, request=None if key is None else request(key, "Admit"))
