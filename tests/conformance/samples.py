"""Plans and values that the tests write, with every field that a test does not care about filled in."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from durable_memory.domain.access import AccessEvent, AccessKind
from durable_memory.domain.canonical import JsonObject
from durable_memory.domain.change_set import (
    Activate,
    AddRelation,
    ChangeSet,
    Corroborate,
    Create,
    NodeDraft,
    Operation,
    Revise,
    ReviseMode,
    SetStatus,
)
from durable_memory.domain.evidence import EvidenceInput, EvidenceKind, body_digest
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeKind, NodeRef, NodeRevision, NodeStatus, Relation
from durable_memory.domain.session import (
    BindingRecord,
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
from durable_memory.ports.store import (
    Decision,
    Loaded,
    Lock,
    NamespaceCopy,
    NodeSelection,
    Outcome,
    Plan,
    Reads,
    RequestKey,
    Store,
)

NOW = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
MANY = 1_000


def evidence(name: str, kind: EvidenceKind = EvidenceKind.USER_STATEMENT) -> EvidenceInput:
    return EvidenceInput(uri=f"test:{name}", digest=body_digest(name.encode()), kind=kind)


def decision_evidence(name: str) -> EvidenceInput:
    return evidence(name, EvidenceKind.MANUAL)


def create(
    node_id: str,
    content: str = "a memory",
    *,
    active: bool = False,
    kind: NodeKind = NodeKind.SEMANTIC,
    labels: Mapping[str, str] | None = None,
    sources: tuple[EvidenceInput, ...] = (),
    relations: tuple[Relation, ...] = (),
) -> Create:
    if active:
        sources = (*sources, decision_evidence(f"create {node_id}"))
    return Create(
        node_id=node_id,
        status=NodeStatus.ACTIVE if active else NodeStatus.CANDIDATE,
        draft=NodeDraft(kind=kind, content=content, evidence=sources, labels=labels or {}, relations=relations),
    )


def revise(node_id: str, revision: int, content: str | None = None, labels: Mapping[str, str] | None = None) -> Revise:
    return Revise(
        node_id=node_id,
        expected_revision=revision,
        mode=ReviseMode.CORRECTION,
        content=content,
        set_labels=labels or {},
        evidence=(decision_evidence(f"revise {node_id} {revision} {content} {labels}"),),
    )


def activate(node_id: str, revision: int) -> Activate:
    fresh = decision_evidence(f"activate {node_id} {revision}")
    return Activate(node_id=node_id, expected_revision=revision, evidence=(fresh,))


def corroborate(node_id: str, revision: int, *names: str) -> Corroborate:
    return Corroborate(node_id=node_id, expected_revision=revision, evidence=tuple(evidence(name) for name in names))


def set_status(node_id: str, revision: int, status: NodeStatus) -> SetStatus:
    return SetStatus(node_id=node_id, expected_revision=revision, status=status)


def relate(node_id: str, revision: int, relation: Relation) -> AddRelation:
    return AddRelation(node_id=node_id, expected_revision=revision, relation=relation)


def request_key(key: str, fingerprint: str = "v1:a", method: str = "ApplyChangeSet") -> RequestKey:
    return RequestKey(method=method, key=key, fingerprint=fingerprint)


def change_plan(
    change_set: ChangeSet,
    *,
    request: RequestKey | None = None,
    now: datetime = NOW,
    may_activate: bool = True,
    see: Callable[[Loaded], object] = lambda loaded: None,
) -> Plan:
    """The plan of a change set, as the use case makes it. `see` is given what the store loaded."""
    actor = Actor(
        caller="tester",
        may_activate=may_activate,
        method=request.method if request else "",
        request_id=request.key if request else "",
    )

    def decide(loaded: Loaded) -> Decision:
        see(loaded)
        staged = stage(
            change_set,
            head=loaded.head,
            nodes=loaded.nodes,
            known_evidence=loaded.known_evidence,
            actor=actor,
            now=now,
        )
        nodes: JsonObject = {node.node_id: node.revision for node in staged.revisions}
        return Decision(result={"at": staged.head.revision, "nodes": nodes}, change=staged)

    return Plan(
        lock=Lock.NAMESPACE,
        reads=Reads(node_ids=change_set.node_ids(), evidence=change_set.offered_evidence()),
        decide=decide,
        request=request,
    )


async def apply(
    store: Store, namespace: Namespace, *operations: Operation, key: str | None = None, now: datetime = NOW
) -> Outcome:
    """Apply one change set; with a key it is a request."""
    request = None if key is None else request_key(key)
    return await store.transact(namespace, change_plan(ChangeSet(operations=operations), request=request, now=now))


def writing(
    *,
    reads: Reads | None = None,
    result: JsonObject | None = None,
    sessions: tuple[Session, ...] = (),
    bindings: tuple[BindingRecord, ...] = (),
    runs: tuple[Run, ...] = (),
    contexts: tuple[Context, ...] = (),
    events: tuple[AccessEvent, ...] = (),
    request: RequestKey | None = None,
    lock: Lock = Lock.NAMESPACE,
    see: Callable[[Loaded], object] = lambda loaded: None,
) -> Plan:
    """A plan that writes the given rows, whatever was loaded."""

    def decide(loaded: Loaded) -> Decision:
        see(loaded)
        return Decision(
            result=result or {},
            sessions=sessions,
            bindings=bindings,
            runs=runs,
            contexts=contexts,
            events=events,
        )

    return Plan(lock=lock, reads=reads or Reads(), decide=decide, request=request)


def policy(max_results: int = 5) -> RecallPolicy:
    return RecallPolicy(
        mode=RecallMode.AUTO,
        max_results=max_results,
        min_score=0.0,
        min_relative_score=0.1,
        related_lookups=0,
        lexical_profile="dm.lexical.bm25f.v1",
        fusion_profile="dm.fusion.convex.v1",
    )


def session(namespace: Namespace, session_id: str = "s", version: int = 1, max_results: int = 5) -> Session:
    return Session(
        session_id=session_id,
        binding=SessionBinding(namespace=namespace, policy=policy(max_results)),
        binding_version=version,
        request_digest="0" * 64,
        state=SessionState.OPEN,
        opened_by="tester",
        opened_at=NOW,
    )


def binding_record(of: Session) -> BindingRecord:
    return BindingRecord(
        session_id=of.session_id,
        binding_version=of.binding_version,
        binding=of.binding,
        bound_at=NOW,
        bound_by="tester",
    )


def run_with_context(session_id: str = "s", run_id: str = "r", incarnation: str = "1") -> tuple[Run, Context]:
    """A run that opened as many seconds after `NOW` as its incarnation says, and its first context."""
    context = Context.of(session_id, run_id, incarnation, 0)
    opened_at = NOW + timedelta(seconds=int(incarnation))
    run = Run(
        session_id=session_id,
        run_id=run_id,
        incarnation=incarnation,
        host_instance="host",
        state=RunState.OPEN,
        sequence=0,
        context_id=context.context_id,
        begun_by="tester",
        opened_at=opened_at,
        active_at=opened_at,
    )
    return run, context


def event(
    event_id: str, ref: NodeRef, kind: AccessKind = AccessKind.ADMISSION, at: datetime = NOW, context_id: str = "c"
) -> AccessEvent:
    return AccessEvent(
        event_id=event_id,
        kind=kind,
        session_id="s",
        context_id=context_id,
        node_id=ref.node_id,
        revision=ref.revision,
        caller="tester",
        at=at,
    )


async def all_nodes(store: Store, namespace: Namespace, at_revision: int) -> list[NodeRevision]:
    """The whole state at a namespace revision."""
    return list(
        await store.list_nodes(namespace, NodeSelection(), at_revision=at_revision, after_node_id="", limit=MANY)
    )


async def node(store: Store, namespace: Namespace, node_id: str) -> NodeRevision:
    return (await store.current_nodes(namespace, [node_id]))[node_id]


async def everything(store: Store, namespace: Namespace) -> NamespaceCopy:
    """All that can be read of a namespace, in the order of an export."""
    head = await store.head(namespace)
    committed = await store.revisions_committed_at(namespace, range(head.revision + 2))
    runs = [(run, list(contexts)) async for run, contexts in store.export_runs(namespace)]
    return NamespaceCopy(
        chain_digest=head.chain_digest,
        revision=head.revision,
        revisions=[node for revision in sorted(committed) for node in committed[revision]],
        change_sets=list(await store.list_change_sets(namespace, after_revision=0, limit=MANY)),
        requests=[item async for item in store.export_requests(namespace)],
        sessions=list(await store.list_sessions(namespace, after_session_id="", limit=MANY)),
        bindings=[item async for item in store.export_bindings(namespace)],
        runs=[run for run, _ in runs],
        contexts=[context for _, contexts in runs for context in contexts],
        events=list(await store.list_events(namespace, kind=None, after_event_id="", limit=MANY)),
    )


def ids(nodes) -> list[str]:
    return [item.node_id for item in nodes]
