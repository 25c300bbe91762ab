"""Candidates: proposed with evidence, never recalled, decided on one exact revision at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from durable_memory.app.call import Mutation
from durable_memory.app.change_sets import exact_revisions, stage_in
from durable_memory.app.stored_results import error_json, integer, objects, parse_error, parse_ref, ref_json
from durable_memory.domain.canonical import JsonObject
from durable_memory.domain.change_set import Activate, ChangeSet, Corroborate, Create, NodeDraft, Operation, SetStatus
from durable_memory.domain.errors import DomainError, Reason, invalid_field, limit_exceeded
from durable_memory.domain.evidence import DecisionInput, EvidenceInput
from durable_memory.domain.limits import EVIDENCE_MAX_COUNT
from durable_memory.domain.node import NodeRef, NodeRevision, NodeStatus, content_digest
from durable_memory.domain.state import ChangeToken
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.ports.store import Decision, Loaded, Lock, Plan, Reads, Store

_OF_ONE_ITEM: Final = frozenset({Reason.NODE_NOT_FOUND, Reason.REVISION_CONFLICT, Reason.INVALID_TRANSITION})
"""What is wrong with one candidate and leaves the others alone; every other refusal is the whole call's."""


class ProposalOutcome(StrEnum):
    """What became of one proposal; only the first two changed anything."""

    CREATED = "CREATED"
    CORROBORATED = "CORROBORATED"
    UNCHANGED = "UNCHANGED"
    ALREADY_ACTIVE = "ALREADY_ACTIVE"
    PREVIOUSLY_REJECTED = "PREVIOUSLY_REJECTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One candidate; an absent node id is minted."""

    node_id: str | None
    draft: NodeDraft


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedItem:
    """The memory that a proposal ended at: the new or corroborated candidate, or what was there already."""

    outcome: ProposalOutcome
    node: NodeRevision


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedItem:
    """One exact candidate revision and what became of it: either the node after the decision, or why not.

    `changed` is false for one that stood so already.
    """

    ref: NodeRef
    node: NodeRevision | None = None
    changed: bool = False
    error: DomainError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """One item per proposal, in order, and the token after the call."""

    items: tuple[ProposedItem, ...]
    token: ChangeToken


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """One item per reference, in order, and the token after the call."""

    items: tuple[DecidedItem, ...]
    token: ChangeToken


class CandidateService:
    """Propose, activate, reject."""

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    async def propose(self, call: Mutation, proposals: Sequence[Proposal], *, repropose: bool = False) -> Proposed:
        """Candidates for later decisions, in one change set.

        A proposal equal in content to an ACTIVE memory or to a candidate ends there instead of making a duplicate;
        its evidence corroborates a candidate. One equal to a refused candidate needs `repropose`.

        Raises: the reasons of staging, for all proposals at once.
        """
        now = self._clock.now()
        ids = [proposal.node_id or self._ids.time_ordered() for proposal in proposals]
        digests = [content_digest(proposal.draft.content) for proposal in proposals]

        def decide(loaded: Loaded) -> Decision:
            batch = _ProposalBatch(loaded, repropose=repropose)
            for index, (node_id, digest, proposal) in enumerate(zip(ids, digests, proposals, strict=True)):
                batch.add(f"proposals[{index}]", node_id, digest, proposal.draft)
            operations = batch.operations()
            change = None
            if operations:
                known = replace(loaded, nodes={**loaded.nodes, **batch.corroborated})
                change = stage_in(known, call, ChangeSet(operations=operations), now)
            return Decision(
                change=change,
                result={
                    "at": loaded.head.revision if change is None else change.head.revision,
                    "items": [{"node": ref_json(ref), "outcome": outcome.value} for outcome, ref in batch.results()],
                },
            )

        reads = Reads(
            node_ids=frozenset(ids),
            content_digests=frozenset(digests),
            content_evidence=frozenset(
                (digest, item.uri, item.digest)
                for digest, proposal in zip(digests, proposals, strict=True)
                for item in proposal.draft.evidence
            ),
        )
        outcome = await self._store.transact(
            call.namespace, Plan(lock=Lock.NAMESPACE, reads=reads, decide=decide, request=call.request)
        )
        items = objects(outcome.result["items"])
        nodes = await exact_revisions(self._store, call, [parse_ref(item["node"]) for item in items])
        return Proposed(
            items=tuple(
                ProposedItem(outcome=ProposalOutcome(str(item["outcome"])), node=node)
                for item, node in zip(items, nodes, strict=True)
            ),
            token=ChangeToken(history_id=outcome.head.history_id, namespace_revision=integer(outcome.result["at"])),
        )

    async def activate(
        self,
        call: Mutation,
        refs: Sequence[NodeRef],
        decision: DecisionInput,
        evidence: Sequence[EvidenceInput] = (),
    ) -> Decided:
        """Let exact candidate revisions into recall, by one decision. Each item succeeds or fails on its own."""
        held = (*evidence, decision.evidence(call.caller.name, call.request.method, call.request.key))

        def operation(ref: NodeRef) -> Operation:
            return Activate(node_id=ref.node_id, expected_revision=ref.revision, evidence=held)

        return await self._decide(call, refs, operation, held, decision.note, NodeStatus.ACTIVE)

    async def reject(
        self,
        call: Mutation,
        refs: Sequence[NodeRef],
        decision: DecisionInput,
        evidence: Sequence[EvidenceInput] = (),
    ) -> Decided:
        """Refuse exact candidate revisions: they become tombstones, and an equal proposal is told so."""
        held = (*evidence, decision.evidence(call.caller.name, call.request.method, call.request.key))

        def operation(ref: NodeRef) -> Operation:
            return SetStatus(
                node_id=ref.node_id,
                expected_revision=ref.revision,
                status=NodeStatus.TOMBSTONED,
                evidence=held,
            )

        return await self._decide(call, refs, operation, held, decision.note, NodeStatus.TOMBSTONED)

    async def _decide(
        self,
        call: Mutation,
        refs: Sequence[NodeRef],
        operation: Callable[[NodeRef], Operation],
        evidence: tuple[EvidenceInput, ...],
        note: str,
        target: NodeStatus,
    ) -> Decided:
        now = self._clock.now()
        _refuse_repeats(refs)

        def decide(loaded: Loaded) -> Decision:
            items: list[JsonObject] = []
            good: list[Operation] = []
            for ref in refs:
                node = loaded.nodes.get(ref.node_id)
                if node is not None and _decided_already(node, loaded.revisions.get(ref), target):
                    items.append({"changed": False, "node": ref_json(node.ref)})
                    continue
                try:
                    if node is not None and node.ref == ref and node.status is not NodeStatus.CANDIDATE:
                        raise _not_a_candidate(node, target)
                    stage_in(loaded, call, ChangeSet(operations=(operation(ref),), note=note), now)
                except DomainError as error:
                    if error.reason not in _OF_ONE_ITEM:
                        raise
                    items.append({"error": error_json(error), "node": ref_json(ref)})
                else:
                    good.append(operation(ref))
                    items.append({"changed": True, "node": ref_json(NodeRef(ref.node_id, ref.revision + 1))})
            change = None
            if good:
                change = stage_in(loaded, call, ChangeSet(operations=tuple(good), note=note), now)
            at = loaded.head.revision if change is None else change.head.revision
            return Decision(change=change, result={"at": at, "items": items})

        reads = Reads(
            node_ids=frozenset(ref.node_id for ref in refs),
            evidence=frozenset((ref.node_id, item.uri, item.digest) for ref in refs for item in evidence),
            revisions=frozenset(refs),
        )
        outcome = await self._store.transact(
            call.namespace, Plan(lock=Lock.NAMESPACE, reads=reads, decide=decide, request=call.request)
        )
        stored = objects(outcome.result["items"])
        decided = [parse_ref(item["node"]) for item in stored if "error" not in item]
        nodes = {node.ref: node for node in await exact_revisions(self._store, call, decided)}
        return Decided(
            items=tuple(_decided_item(ref, item, nodes) for ref, item in zip(refs, stored, strict=True)),
            token=ChangeToken(history_id=outcome.head.history_id, namespace_revision=integer(outcome.result["at"])),
        )


class _ProposalBatch:
    """The proposals of one call against the namespace and against each other."""

    def __init__(self, loaded: Loaded, *, repropose: bool) -> None:
        self._loaded = loaded
        self._repropose = repropose
        self._created: dict[str, tuple[str, NodeDraft]] = {}
        self._evidence: dict[str, tuple[EvidenceInput, ...]] = {}
        self._results: list[tuple[ProposalOutcome, NodeRef]] = []
        self.corroborated: dict[str, NodeRevision] = {}

    def add(self, field: str, node_id: str, digest: str, draft: NodeDraft) -> None:
        """Raises: INVALID_FIELD, LIMIT_EXCEEDED; `field` is the proposal's path."""
        if digest in self._created:
            first_id, first = self._created[digest]
            new = _without(draft.evidence, {(item.uri, item.digest) for item in first.evidence})
            evidence = _bounded(field, (*first.evidence, *new))
            self._created[digest] = (first_id, replace(first, evidence=evidence))
            outcome = ProposalOutcome.CORROBORATED if new else ProposalOutcome.UNCHANGED
            self._results.append((outcome, NodeRef(first_id, 1)))
            return
        found = _standing(self._loaded.by_content.get(digest, ()), repropose=self._repropose)
        if found is None:
            if any(node_id == other_id for other_id, _ in self._created.values()):
                raise invalid_field(f"{field}.node_id", "occurs twice")
            self._created[digest] = (node_id, draft)
            self._results.append((ProposalOutcome.CREATED, NodeRef(node_id, 1)))
        elif found.status is NodeStatus.ACTIVE:
            self._results.append((ProposalOutcome.ALREADY_ACTIVE, found.ref))
        elif found.status is NodeStatus.TOMBSTONED:
            self._results.append((ProposalOutcome.PREVIOUSLY_REJECTED, found.ref))
        else:
            self._corroborate(field, found, draft)

    def _corroborate(self, field: str, node: NodeRevision, draft: NodeDraft) -> None:
        # What an earlier revision had is not new, though a later one had another text of the same source.
        known = {(uri, digest) for node_id, uri, digest in self._loaded.known_evidence if node_id == node.node_id}
        offered = self._evidence.get(node.node_id, ())
        new = _without(draft.evidence, known | {(item.uri, item.digest) for item in offered})
        self._evidence[node.node_id] = _bounded(field, (*offered, *new))
        self.corroborated[node.node_id] = node
        outcome = ProposalOutcome.CORROBORATED if new else ProposalOutcome.UNCHANGED
        self._results.append((outcome, node.ref))

    def operations(self) -> tuple[Operation, ...]:
        creates = [
            Create(node_id=node_id, status=NodeStatus.CANDIDATE, draft=draft)
            for node_id, draft in self._created.values()
        ]
        corroborations = [
            Corroborate(
                node_id=node_id,
                expected_revision=self.corroborated[node_id].revision,
                evidence=evidence,
            )
            for node_id, evidence in self._evidence.items()
            if evidence
        ]
        return (*creates, *corroborations)

    def results(self) -> list[tuple[ProposalOutcome, NodeRef]]:
        """Outcomes in the order of the proposals; a corroborated candidate is named by its next revision."""
        moved = {node_id for node_id, evidence in self._evidence.items() if evidence}
        return [
            (outcome, NodeRef(ref.node_id, ref.revision + 1) if ref.node_id in moved else ref)
            for outcome, ref in self._results
        ]


def _standing(nodes: Sequence[NodeRevision], *, repropose: bool) -> NodeRevision | None:
    """Where a proposal of this content ends: an ACTIVE memory, else a candidate, else a refusal that still stands."""
    for status in (NodeStatus.ACTIVE, NodeStatus.CANDIDATE):
        for node in nodes:
            if node.status is status:
                return node
    if not repropose:
        for node in nodes:
            if node.rejected:
                return node
    return None


def _without(evidence: Sequence[EvidenceInput], known: Set[tuple[str, str]]) -> list[EvidenceInput]:
    return [item for item in evidence if (item.uri, item.digest) not in known]


def _bounded(field: str, evidence: tuple[EvidenceInput, ...]) -> tuple[EvidenceInput, ...]:
    """The evidence that equal proposals bring together.

    Raises: LIMIT_EXCEEDED, blaming the proposal with which it became more than one node can hold.
    """
    if len(evidence) > EVIDENCE_MAX_COUNT:
        raise limit_exceeded(f"{field}.memory.evidence", EVIDENCE_MAX_COUNT, len(evidence), "items")
    return evidence


def _refuse_repeats(refs: Sequence[NodeRef]) -> None:
    seen: set[str] = set()
    for index, ref in enumerate(refs):
        if ref.node_id in seen:
            raise invalid_field(f"items[{index}].node_id", "occurs twice")
        seen.add(ref.node_id)


def _decided_already(node: NodeRevision, seen: NodeRevision | None, target: NodeStatus) -> bool:
    """Whether the text that the decider saw stands so already, by whichever decision."""
    if seen is None or seen.content_digest != node.content_digest:
        return False
    return node.status is NodeStatus.ACTIVE if target is NodeStatus.ACTIVE else node.rejected


def _not_a_candidate(node: NodeRevision, target: NodeStatus) -> DomainError:
    return DomainError(
        Reason.INVALID_TRANSITION,
        f"node {node.node_id} is {node.status.name}; only a CANDIDATE can be decided on",
        node_id=node.node_id,
        **{"from": node.status.name, "to": target.name},
    )


def _decided_item(ref: NodeRef, item: JsonObject, nodes: Mapping[NodeRef, NodeRevision]) -> DecidedItem:
    error = item.get("error")
    if isinstance(error, Mapping):
        return DecidedItem(ref=ref, error=parse_error(error))
    return DecidedItem(ref=ref, node=nodes[parse_ref(item["node"])], changed=item["changed"] is True)
