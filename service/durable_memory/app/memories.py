"""What a person or an agent does to one memory in one call; each is one change set underneath."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from durable_memory.app.call import Call, Mutation
from durable_memory.app.change_sets import exact_revisions, stage_in
from durable_memory.app.stored_results import integer, parse_ref, ref_json
from durable_memory.domain.change_set import (
    Activate,
    AddRelation,
    ChangeSet,
    Create,
    NodeDraft,
    Operation,
    Revise,
    ReviseMode,
    SetStatus,
)
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import (
    DomainError,
    Reason,
    invalid_field,
    namespace_revision_conflict,
    node_not_found,
    revision_conflict,
)
from durable_memory.domain.evidence import DecisionInput, EvidenceInput, EvidenceKind
from durable_memory.domain.limits import SERVER_LABEL_PREFIX
from durable_memory.domain.node import NodeRef, NodeRevision, NodeStatus, Relation, RelationKind, content_digest
from durable_memory.domain.state import ChangeToken
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.ports.store import Decision, Loaded, Lock, Plan, Reads, Store

MANUAL_BY_CALLER = DecisionInput(kind=EvidenceKind.MANUAL, decider="")
"""The decision behind a call that names none: the authenticated caller's own."""


class MemoryOutcome(StrEnum):
    """What a call did; UNCHANGED means that what it asked for was there already."""

    CREATED = "CREATED"
    REVISED = "REVISED"
    UNCHANGED = "UNCHANGED"
    RETIRED = "RETIRED"
    REACTIVATED = "REACTIVATED"
    SUPERSEDED = "SUPERSEDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResult:
    """The memory after the call, and the namespace's token at which it stands so.

    `superseded` is the frozen revision of the memory that a Supersede replaced.
    """

    outcome: MemoryOutcome
    node: NodeRevision
    token: ChangeToken
    superseded: NodeRevision | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What all of these calls share: who decided, further evidence, and what the namespace is expected to be at."""

    decision: DecisionInput = MANUAL_BY_CALLER
    occurred_at: datetime | None = None
    expected_namespace_revision: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """What `decide` found to do: a change set and its outcome, or `None` for a no-op on `ref`."""

    outcome: MemoryOutcome
    ref: NodeRef
    change_set: ChangeSet | None = None
    superseded: NodeRef | None = None


class MemoryService:
    """Remember, put, revise, retire, reactivate, supersede, and read by citation."""

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    async def remember(
        self, call: Mutation, node_id: str | None, draft: NodeDraft, options: WriteOptions
    ) -> MemoryResult:
        """A new ACTIVE memory on the caller's own authority, or the ACTIVE one that has this content already.

        Raises: NODE_ALREADY_EXISTS if `node_id` is taken by a memory with another content.
        """
        new_id = node_id or self._ids.time_ordered()
        digest = content_digest(draft.content)

        def plan(loaded: Loaded) -> _Step:
            for node in loaded.by_content.get(digest, ()):
                if node.status is NodeStatus.ACTIVE:
                    return _Step(outcome=MemoryOutcome.UNCHANGED, ref=node.ref)
            return self._creation(call, new_id, draft, options)

        reads = Reads(node_ids=frozenset({new_id}), content_digests=frozenset({digest}))
        return await self._run(call, options, reads, plan)

    async def put(
        self,
        call: Mutation,
        node_id: str,
        draft: NodeDraft,
        options: WriteOptions,
        *,
        mode: ReviseMode = ReviseMode.CORRECTION,
        expected_revision: int | None = None,
    ) -> MemoryResult:
        """The memory `node_id` is ACTIVE with exactly this text and these annotations afterwards.

        Raises: NODE_FROZEN for a superseded or tombstoned one, REVISION_CONFLICT if it is not at
        `expected_revision` (0: it must not exist).
        """
        evidence = self._evidence(call, draft.evidence, options)

        def plan(loaded: Loaded) -> _Step:
            node = loaded.nodes.get(node_id)
            actual = node.revision if node is not None else 0
            if expected_revision is not None and expected_revision != actual:
                raise revision_conflict(node_id, expected_revision, actual)
            if node is None:
                return self._creation(call, node_id, draft, options)
            revise = _revision_towards(node, draft, mode, evidence)
            differs = _differs(node, revise)
            if node.status is NodeStatus.ACTIVE and not differs:
                return _Step(outcome=MemoryOutcome.UNCHANGED, ref=node.ref)
            operations: list[Operation] = []
            if differs or node.frozen:
                operations.append(revise)
            if node.status is not NodeStatus.ACTIVE:
                operations.append(Activate(node_id=node_id, expected_revision=node.revision, evidence=evidence))
            return self._next(MemoryOutcome.REVISED, node, operations, options)

        reads = Reads(
            node_ids=frozenset({node_id}),
            evidence=frozenset((node_id, item.uri, item.digest) for item in evidence),
        )
        return await self._run(call, options, reads, plan)

    async def revise(self, call: Mutation, citation: Citation, revise: Revise, options: WriteOptions) -> MemoryResult:
        """Other text or annotations for the exact current revision. `revise` names the citation's node and revision."""
        evidence = self._evidence(call, revise.evidence, options)

        def plan(loaded: Loaded) -> _Step:
            node = _cited(loaded, citation)
            if not revise.evidence and not node.frozen and not _differs(node, revise):
                raise DomainError(Reason.CHANGE_SET_EMPTY, "the memory says so already")
            return self._next(MemoryOutcome.REVISED, node, [replace(revise, evidence=evidence)], options)

        return await self._run(call, options, _reads_for(citation, evidence), plan)

    async def retire(
        self, call: Mutation, citation: Citation, evidence: tuple[EvidenceInput, ...], options: WriteOptions
    ) -> MemoryResult:
        """Out of recall: the exact current revision becomes ARCHIVED. Nothing is deleted."""
        held = self._evidence(call, evidence, options)

        def plan(loaded: Loaded) -> _Step:
            node = _cited(loaded, citation)
            retire = SetStatus(
                node_id=node.node_id, expected_revision=node.revision, status=NodeStatus.ARCHIVED, evidence=held
            )
            return self._next(MemoryOutcome.RETIRED, node, [retire], options)

        return await self._run(call, options, _reads_for(citation, held), plan)

    async def reactivate(
        self, call: Mutation, citation: Citation, evidence: tuple[EvidenceInput, ...], options: WriteOptions
    ) -> MemoryResult:
        """Back into recall: the exact current revision becomes ACTIVE again, by a new decision."""
        held = self._evidence(call, evidence, options)

        def plan(loaded: Loaded) -> _Step:
            node = _cited(loaded, citation)
            if node.status is NodeStatus.ACTIVE:
                return _Step(outcome=MemoryOutcome.UNCHANGED, ref=node.ref)
            if node.status is NodeStatus.CANDIDATE:
                raise DomainError(
                    Reason.INVALID_TRANSITION,
                    f"node {node.node_id} has never been ACTIVE: it is a candidate to be decided on",
                    node_id=node.node_id,
                    **{"from": node.status.name, "to": NodeStatus.ACTIVE.name},
                )
            activate = Activate(node_id=node.node_id, expected_revision=node.revision, evidence=held)
            return self._next(MemoryOutcome.REACTIVATED, node, [activate], options)

        return await self._run(call, options, _reads_for(citation, held), plan)

    async def supersede(
        self, call: Mutation, citation: Citation, node_id: str | None, draft: NodeDraft, options: WriteOptions
    ) -> MemoryResult:
        """A new ACTIVE memory in place of the cited one, related both ways; the old one is SUPERSEDED and frozen."""
        new_id = node_id or self._ids.time_ordered()
        if new_id == citation.node_id:
            raise invalid_field("node_id", "is the memory to be superseded")

        def plan(loaded: Loaded) -> _Step:
            old = _cited(loaded, citation)
            forward = Relation(RelationKind.SUPERSEDES, old.node_id)
            backward = Relation(RelationKind.SUPERSEDED_BY, new_id)
            operations = (
                self._create(call, new_id, replace(draft, relations=(*draft.relations, forward)), options),
                AddRelation(node_id=old.node_id, expected_revision=old.revision, relation=backward),
                SetStatus(node_id=old.node_id, expected_revision=old.revision, status=NodeStatus.SUPERSEDED),
            )
            return _Step(
                outcome=MemoryOutcome.SUPERSEDED,
                ref=NodeRef(new_id, 1),
                change_set=_change_set(operations, options),
                superseded=NodeRef(old.node_id, old.revision + 1),
            )

        return await self._run(call, options, Reads(node_ids=frozenset({new_id, citation.node_id})), plan)

    async def get(self, call: Call, citation: Citation) -> NodeRevision:
        """The exact text that a citation names, also when it is no longer current.

        Raises: REVISION_NOT_FOUND if no such revision has this digest.
        """
        node = (await self._store.revisions(call.namespace, {citation.ref})).get(citation.ref)
        if node is None or not citation.names(node):
            raise revision_not_found(citation.ref)
        return node

    # How a call becomes a change set

    def _evidence(
        self, call: Mutation, given: tuple[EvidenceInput, ...], options: WriteOptions
    ) -> tuple[EvidenceInput, ...]:
        return (*given, options.decision.evidence(call.caller.name, call.request.method, call.request.key))

    def _create(self, call: Mutation, node_id: str, draft: NodeDraft, options: WriteOptions) -> Create:
        evidence = self._evidence(call, draft.evidence, options)
        return Create(node_id=node_id, status=NodeStatus.ACTIVE, draft=replace(draft, evidence=evidence))

    def _creation(self, call: Mutation, node_id: str, draft: NodeDraft, options: WriteOptions) -> _Step:
        create = self._create(call, node_id, draft, options)
        return _Step(outcome=MemoryOutcome.CREATED, ref=NodeRef(node_id, 1), change_set=_change_set((create,), options))

    def _next(
        self, outcome: MemoryOutcome, node: NodeRevision, operations: list[Operation], options: WriteOptions
    ) -> _Step:
        return _Step(
            outcome=outcome,
            ref=NodeRef(node.node_id, node.revision + 1),
            change_set=_change_set(tuple(operations), options),
        )

    async def _run(
        self, call: Mutation, options: WriteOptions, reads: Reads, plan: Callable[[Loaded], _Step]
    ) -> MemoryResult:
        now = self._clock.now()

        def decide(loaded: Loaded) -> Decision:
            expected = options.expected_namespace_revision
            if expected is not None and expected != loaded.head.revision:
                raise namespace_revision_conflict(expected, loaded.head.revision)
            step = plan(loaded)
            change = None if step.change_set is None else stage_in(loaded, call, step.change_set, now)
            return Decision(
                change=change,
                result={
                    "at": loaded.head.revision if change is None else change.head.revision,
                    "node": ref_json(step.ref),
                    "outcome": step.outcome.value,
                    "superseded": None if step.superseded is None else ref_json(step.superseded),
                },
            )

        outcome = await self._store.transact(
            call.namespace, Plan(lock=Lock.NAMESPACE, reads=reads, decide=decide, request=call.request)
        )
        refs = [parse_ref(outcome.result["node"])]
        if outcome.result["superseded"] is not None:
            refs.append(parse_ref(outcome.result["superseded"]))
        nodes = await exact_revisions(self._store, call, refs)
        return MemoryResult(
            outcome=MemoryOutcome(str(outcome.result["outcome"])),
            node=nodes[0],
            token=ChangeToken(history_id=outcome.head.history_id, namespace_revision=integer(outcome.result["at"])),
            superseded=nodes[1] if len(nodes) > 1 else None,
        )


def revision_not_found(ref: NodeRef) -> DomainError:
    return DomainError(
        Reason.REVISION_NOT_FOUND,
        f"node {ref.node_id} has no revision {ref.revision} with this content",
        node_id=ref.node_id,
        revision=ref.revision,
    )


def _change_set(operations: tuple[Operation, ...], options: WriteOptions) -> ChangeSet:
    return ChangeSet(operations=operations, occurred_at=options.occurred_at, note=options.decision.note)


def _reads_for(citation: Citation, evidence: tuple[EvidenceInput, ...]) -> Reads:
    return Reads(
        node_ids=frozenset({citation.node_id}),
        evidence=frozenset((citation.node_id, item.uri, item.digest) for item in evidence),
    )


def _cited(loaded: Loaded, citation: Citation) -> NodeRevision:
    """The current revision, if the citation names it."""
    node = loaded.nodes.get(citation.node_id)
    if node is None:
        raise node_not_found(citation.node_id)
    if node.revision != citation.revision:
        raise revision_conflict(node.node_id, citation.revision, node.revision)
    if not citation.names(node):
        raise revision_not_found(citation.ref)
    return node


def _revision_towards(
    node: NodeRevision, draft: NodeDraft, mode: ReviseMode, evidence: tuple[EvidenceInput, ...]
) -> Revise:
    """The revision that makes `node` say what `draft` says; it may say so already."""
    if draft.kind is not node.kind:
        raise invalid_field("memory.kind", f"of node {node.node_id} is {node.kind.name} and never changes")
    own_labels = {key for key in node.labels if not key.startswith(SERVER_LABEL_PREFIX)}
    return Revise(
        node_id=node.node_id,
        expected_revision=node.revision,
        mode=mode,
        content=draft.content,
        surroundings=draft.surroundings,
        author=draft.author,
        occurred_at=draft.occurred_at,
        confidence=draft.confidence,
        importance=draft.importance,
        set_labels=draft.labels,
        remove_labels=frozenset(own_labels - draft.labels.keys()),
        evidence=evidence,
    )


def _differs(node: NodeRevision, revise: Revise) -> bool:
    """Whether a revision would change anything of a node but its evidence."""
    names = ("content", "surroundings", "author", "occurred_at", "confidence", "importance")
    asked = {name: getattr(revise, name) for name in names}
    return (
        any(value is not None and value != getattr(node, name) for name, value in asked.items())
        or any(node.labels.get(key) != value for key, value in revise.set_labels.items())
        or not revise.remove_labels.isdisjoint(node.labels)
    )
