"""Staging: a change set against a namespace's state becomes new revisions, or a refusal. Pure.

The rules of kernel.md live here and nowhere else; stores only load what a change set names, call `stage`, and write
what it returns in the same transaction.

All operations on one node name its committed revision and together yield one new revision. Whether a node is frozen
is judged on its state before the set, so a set may relate the node that it supersedes.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime

from durable_memory.domain.change_set import (
    Activate,
    AddRelation,
    ChangeSet,
    ChangeSetRecord,
    Corroborate,
    Create,
    NodeChange,
    Operation,
    RemoveRelation,
    Revise,
    SetStatus,
    chain,
    names_of,
)
from durable_memory.domain.change_time import settled_time
from durable_memory.domain.errors import (
    DomainError,
    Reason,
    invalid_field,
    limit_exceeded,
    namespace_revision_conflict,
    node_not_found,
    revision_conflict,
)
from durable_memory.domain.evidence import Evidence, EvidenceInput, evidence_required, merge_evidence
from durable_memory.domain.limits import (
    CHANGE_SET_MAX_OPERATIONS,
    LABELS_MAX_COUNT,
    NAMESPACE_MAX_ACTIVE_BYTES,
    NAMESPACE_MAX_ACTIVE_NODES,
    RELATIONS_MAX_COUNT,
)
from durable_memory.domain.node import (
    REJECTED_LABEL,
    REJECTED_VALUE,
    NodeRevision,
    NodeStatus,
    Relation,
    content_digest,
)
from durable_memory.domain.state import Head
from durable_memory.domain.status import INITIAL, IRREVOCABLE, check_transition


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """On whose behalf a change set is staged: what its record and its revisions say of it."""

    caller: str
    may_activate: bool
    method: str
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedChange:
    """What a store has to write: new current revisions, the record, and the namespace's head after it."""

    revisions: tuple[NodeRevision, ...]
    new_evidence: tuple[tuple[str, str, str], ...]
    record: ChangeSetRecord
    head: Head


@dataclass(slots=True)
class _Draft:
    """The next revision of one node while its operations are applied."""

    before: NodeRevision | None
    after: NodeRevision
    operations: list[Operation]
    fresh: list[Evidence]
    """Evidence that no earlier revision of the node has."""
    gate: int | None = None
    """The index of the operation that needs the gate, if one does."""
    status_set: bool = False


def stage(
    change_set: ChangeSet,
    *,
    head: Head,
    nodes: Mapping[str, NodeRevision],
    known_evidence: Set[tuple[str, str, str]],
    actor: Actor,
    now: datetime,
) -> StagedChange:
    """The result of applying `change_set` at `head`.

    `nodes` holds the current revision of every node in `change_set.node_ids()` that exists, `known_evidence` those
    of `change_set.offered_evidence()` that any revision of the node has had, `now` is the server's time.

    Raises: the reasons of ApplyChangeSet in the contract, with `operation_index` where one operation is to blame.
    """
    return _Staging(change_set, head, nodes, known_evidence, actor, now).run()


class _Staging:
    def __init__(
        self,
        change_set: ChangeSet,
        head: Head,
        nodes: Mapping[str, NodeRevision],
        known_evidence: Set[tuple[str, str, str]],
        actor: Actor,
        now: datetime,
    ) -> None:
        self._change_set = change_set
        self._head = head
        self._nodes = nodes
        self._known = known_evidence
        self._actor = actor
        self._now = now
        self._drafts: dict[str, _Draft] = {}
        self._occurred_at = now

    def run(self) -> StagedChange:
        expected = self._change_set.expected_namespace_revision
        if expected is not None and expected != self._head.revision:
            raise namespace_revision_conflict(expected, self._head.revision)
        operations = self._change_set.operations
        if not operations:
            raise DomainError(Reason.CHANGE_SET_EMPTY, "the change set has no operations")
        if len(operations) > CHANGE_SET_MAX_OPERATIONS:
            raise limit_exceeded("operations", CHANGE_SET_MAX_OPERATIONS, len(operations), "items")
        self._compare_revisions()
        self._occurred_at = settled_time(self._change_set, self._nodes, self._now)
        for index, operation in enumerate(operations):
            try:
                self._apply(index, operation)
            except DomainError as error:
                raise error.with_metadata(operation_index=index) from None
        self._check_relations()
        self._check_gates()
        return self._finish()

    # Revisions

    def _compare_revisions(self) -> None:
        for index, operation in enumerate(self._change_set.operations):
            node = self._nodes.get(operation.node_id)
            if isinstance(operation, Create):
                if node is not None:
                    raise DomainError(
                        Reason.NODE_ALREADY_EXISTS,
                        f"node {operation.node_id} exists",
                        node_id=operation.node_id,
                        operation_index=index,
                    )
            elif node is None:
                raise node_not_found(operation.node_id, operation_index=index)
            elif node.revision != operation.expected_revision:
                raise revision_conflict(node.node_id, operation.expected_revision, node.revision, operation_index=index)

    # Operations

    def _apply(self, index: int, operation: Operation) -> None:
        if isinstance(operation, Create):
            self._create(index, operation)
            return
        draft = self._draft(operation)
        path = f"operations[{index}].{operation.name}"
        match operation:
            case Activate():
                self._set_status(draft, NodeStatus.ACTIVE)
                self._add_evidence(path, draft, operation.evidence)
                draft.gate = index
            case Corroborate():
                self._refuse_frozen(draft)
                self._add_evidence(path, draft, operation.evidence)
            case Revise():
                self._refuse_frozen(draft)
                self._revise(path, draft, operation)
                self._add_evidence(path, draft, operation.evidence)
                if draft.before is not None and draft.before.status is NodeStatus.ACTIVE:
                    draft.gate = index
            case AddRelation():
                self._refuse_frozen(draft)
                self._relate(f"{path}.relation", draft, operation.relation)
            case RemoveRelation():
                self._unrelate(draft, operation.relation)
            case SetStatus():
                if operation.status in INITIAL:
                    raise DomainError(
                        Reason.INVALID_TRANSITION,
                        f"SetStatus cannot make node {operation.node_id} {operation.status.name}; use Activate",
                        node_id=operation.node_id,
                        **{"from": draft.after.status.name, "to": operation.status.name},
                    )
                self._set_status(draft, operation.status)
                self._add_evidence(path, draft, operation.evidence)
                proposed = draft.before is None or draft.before.status is NodeStatus.CANDIDATE
                if operation.status in IRREVOCABLE and not proposed:
                    draft.gate = index

    def _create(self, index: int, operation: Create) -> None:
        path = f"operations[{index}].create"
        if operation.node_id in self._drafts:
            raise invalid_field(f"{path}.node_id", "occurs twice in the change set")
        if operation.status not in INITIAL:
            raise DomainError(
                Reason.INVALID_TRANSITION,
                f"node {operation.node_id} cannot be created {operation.status.name}",
                node_id=operation.node_id,
                **{"from": "ABSENT", "to": operation.status.name},
            )
        draft = operation.draft
        offered = [item.at(self._occurred_at) for item in draft.evidence]
        evidence = merge_evidence(f"{path}.memory.evidence", (), offered)
        occurred_at = draft.occurred_at or min((item.occurred_at for item in evidence), default=self._occurred_at)
        revision = NodeRevision(
            node_id=operation.node_id,
            revision=1,
            kind=draft.kind,
            status=operation.status,
            content=draft.content,
            content_digest=content_digest(draft.content),
            surroundings=draft.surroundings,
            author=draft.author,
            occurred_at=occurred_at,
            confidence=draft.confidence,
            importance=draft.importance,
            evidence=evidence,
            labels=dict(sorted(draft.labels.items())),
            created_at=operation.created_at or self._occurred_at,
            updated_at=self._occurred_at,
            committed_at=self._now,
            valid_from=self._head.revision + 1,
        )
        staged = _Draft(None, revision, [operation], list(evidence))
        if operation.status is NodeStatus.ACTIVE:
            staged.gate = index
        self._drafts[operation.node_id] = staged
        for relation in draft.relations:
            self._relate(f"{path}.relations", staged, relation)

    def _draft(self, operation: Operation) -> _Draft:
        draft = self._drafts.get(operation.node_id)
        if draft is None:
            before = self._nodes[operation.node_id]
            after = replace(
                before,
                revision=before.revision + 1,
                updated_at=self._occurred_at,
                committed_at=self._now,
                decided_by="",
                valid_from=self._head.revision + 1,
                valid_to=None,
            )
            draft = self._drafts[operation.node_id] = _Draft(before, after, [], [])
        draft.operations.append(operation)
        return draft

    def _refuse_frozen(self, draft: _Draft) -> None:
        if draft.before is not None and draft.before.frozen:
            raise DomainError(
                Reason.NODE_FROZEN,
                f"node {draft.after.node_id} is {draft.before.status.name} and can no longer change",
                node_id=draft.after.node_id,
                status=draft.before.status.name,
            )

    def _set_status(self, draft: _Draft, status: NodeStatus) -> None:
        if draft.status_set:
            raise invalid_field("operations", "change one node's status twice", node_id=draft.after.node_id)
        source = draft.after.status
        check_transition(draft.after.node_id, source, status)
        draft.after = replace(draft.after, status=status)
        draft.status_set = True
        refused = source is NodeStatus.CANDIDATE and status is NodeStatus.TOMBSTONED
        if refused and self._actor.may_activate:  # by anybody else it is a proposal taken back, which binds nobody
            draft.after = replace(draft.after, labels={**draft.after.labels, REJECTED_LABEL: REJECTED_VALUE})

    def _add_evidence(self, path: str, draft: _Draft, offered: tuple[EvidenceInput, ...]) -> None:
        node_id = draft.after.node_id
        already = {item.identity for item in draft.fresh}
        fresh = [
            item.at(self._occurred_at)
            for item in offered
            if (node_id, item.uri, item.digest) not in self._known and (item.uri, item.digest) not in already
        ]
        if fresh:
            draft.after = replace(draft.after, evidence=merge_evidence(f"{path}.evidence", draft.after.evidence, fresh))
            # What a later operation of the set replaced was never part of a revision, and decides nothing.
            kept = {item.identity for item in draft.after.evidence}
            draft.fresh = [item for item in (*draft.fresh, *fresh) if item.identity in kept]

    def _revise(self, path: str, draft: _Draft, operation: Revise) -> None:
        after = draft.after
        labels = {key: value for key, value in after.labels.items() if key not in operation.remove_labels}
        labels.update(operation.set_labels)
        if len(labels) > LABELS_MAX_COUNT:
            raise limit_exceeded(f"{path}.set_labels", LABELS_MAX_COUNT, len(labels), "items")
        content = after.content if operation.content is None else operation.content
        draft.after = replace(
            after,
            content=content,
            content_digest=content_digest(content),
            surroundings=after.surroundings if operation.surroundings is None else operation.surroundings,
            author=after.author if operation.author is None else operation.author,
            occurred_at=after.occurred_at if operation.occurred_at is None else operation.occurred_at,
            confidence=after.confidence if operation.confidence is None else operation.confidence,
            importance=after.importance if operation.importance is None else operation.importance,
            labels=dict(sorted(labels.items())),
        )

    # Relations

    def _relate(self, path: str, draft: _Draft, relation: Relation) -> None:
        node_id = draft.after.node_id
        if relation.node_id == node_id:
            raise _relation_invalid(node_id, relation, "a node cannot be related to itself")
        if relation in draft.after.relations:
            return
        relations = tuple(sorted((*draft.after.relations, relation)))
        if len(relations) > RELATIONS_MAX_COUNT:
            raise limit_exceeded(path, RELATIONS_MAX_COUNT, len(relations), "items")
        draft.after = replace(draft.after, relations=relations)

    def _unrelate(self, draft: _Draft, relation: Relation) -> None:
        draft.after = replace(draft.after, relations=tuple(held for held in draft.after.relations if held != relation))

    def _check_relations(self) -> None:
        """Both ends of every edge that this set adds or removes must agree once it is applied."""
        for node_id, draft in self._drafts.items():
            before = set(draft.before.relations) if draft.before is not None else set()
            after = set(draft.after.relations)
            for relation in sorted(before ^ after):
                target = self._state_after(relation.node_id)
                if target is None:
                    raise _relation_invalid(node_id, relation, "the other node does not exist")
                inverse = Relation(relation.kind.inverse, node_id)
                if (inverse in target.relations) != (relation in after):
                    raise _relation_invalid(node_id, relation, "the change set writes one end only")

    def _state_after(self, node_id: str) -> NodeRevision | None:
        draft = self._drafts.get(node_id)
        return draft.after if draft is not None else self._nodes.get(node_id)

    # The gate

    def _check_gates(self) -> None:
        """Whatever leaves a node ACTIVE with a new status or content needs an entitled caller and a new decision.

        Ending for good what was decided on needs the entitled caller too: a proposer could else undo every decision.
        """
        for node_id, draft in self._drafts.items():
            if draft.gate is None or not self._changed(draft):
                continue
            if not self._actor.may_activate:
                raise DomainError(
                    Reason.PERMISSION_DENIED,
                    "this change needs the role activator",
                    required_role="activator",
                    operation_index=draft.gate,
                )
            if draft.after.status is not NodeStatus.ACTIVE:
                continue
            if not any(item.kind.decides for item in draft.fresh):
                raise evidence_required(node_id).with_metadata(operation_index=draft.gate)

    def _changed(self, draft: _Draft) -> bool:
        before, after = draft.before, draft.after
        if before is None:
            return True
        return any(
            getattr(before, name) != getattr(after, name)
            for name in (
                "status", "content", "surroundings", "author", "occurred_at", "confidence", "importance",
                "evidence", "relations", "labels",
            )
        )  # fmt: skip

    # The result

    def _finish(self) -> StagedChange:
        changed = {node_id: draft for node_id, draft in sorted(self._drafts.items()) if self._changed(draft)}
        if not changed:
            raise DomainError(Reason.CHANGE_SET_EMPTY, "the change set changes nothing")
        revisions = []
        changes = []
        evidence: list[tuple[str, str, str]] = []
        for node_id, draft in changed.items():
            decided = draft.status_set or draft.gate is not None
            revision = replace(draft.after, decided_by=self._actor.caller if decided else "")
            revisions.append(revision)
            evidence.extend((node_id, item.uri, item.digest) for item in draft.fresh)
            changes.append(
                NodeChange(
                    node_id=node_id,
                    revision=revision.revision,
                    content_digest=revision.content_digest,
                    content_changed=draft.before is None or draft.before.content_digest != revision.content_digest,
                    revision_digest=revision.digest(),
                    operations=names_of(draft.operations),
                    status_before=draft.before.status if draft.before is not None else None,
                    status_after=revision.status,
                )
            )
        record = ChangeSetRecord(
            namespace_revision=self._head.revision + 1,
            method=self._actor.method,
            request_id=self._actor.request_id,
            caller=self._actor.caller,
            note=self._change_set.note,
            occurred_at=self._occurred_at,
            committed_at=self._now,
            changes=tuple(changes),
            chain_digest="",
        )
        record = replace(
            record, chain_digest=chain(self._head.chain_digest, record.namespace_revision, record.digest())
        )
        return StagedChange(
            revisions=tuple(revisions),
            new_evidence=tuple(evidence),
            record=record,
            head=self._head_after(changed, record),
        )

    def _head_after(self, changed: Mapping[str, _Draft], record: ChangeSetRecord) -> Head:
        nodes, active_nodes, active_bytes = (
            self._head.node_count,
            self._head.active_count,
            self._head.active_bytes,
        )
        for draft in changed.values():
            nodes += draft.before is None
            active_nodes += (draft.after.status is NodeStatus.ACTIVE) - (
                draft.before is not None and draft.before.status is NodeStatus.ACTIVE
            )
            active_bytes += draft.after.active_bytes - (draft.before.active_bytes if draft.before else 0)
        if (active_nodes > NAMESPACE_MAX_ACTIVE_NODES and active_nodes > self._head.active_count) or (
            active_bytes > NAMESPACE_MAX_ACTIVE_BYTES and active_bytes > self._head.active_bytes
        ):
            raise DomainError(
                Reason.NAMESPACE_TOO_LARGE,
                "the namespace would hold more ACTIVE memories than it may; retire some first",
                active_nodes=active_nodes,
                active_bytes=active_bytes,
                max_active_nodes=NAMESPACE_MAX_ACTIVE_NODES,
                max_active_bytes=NAMESPACE_MAX_ACTIVE_BYTES,
            )
        return replace(
            self._head,
            revision=record.namespace_revision,
            chain_digest=record.chain_digest,
            node_count=nodes,
            active_count=active_nodes,
            active_bytes=active_bytes,
        )


def _relation_invalid(node_id: str, relation: Relation, problem: str) -> DomainError:
    return DomainError(
        Reason.RELATION_INVALID,
        f"relation {relation.kind.name} from node {node_id} to node {relation.node_id}: {problem}",
        node_id=node_id,
        target_node_id=relation.node_id,
        relation=relation.kind.name,
    )
