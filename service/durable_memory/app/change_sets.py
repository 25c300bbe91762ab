"""ApplyChangeSet, and the one way in which every other use case changes nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from durable_memory.app.call import Call, Mutation
from durable_memory.app.stored_results import integer, parse_refs, refs_json, unreadable
from durable_memory.domain.change_set import ChangeSet
from durable_memory.domain.node import NodeRef, NodeRevision
from durable_memory.domain.staging import StagedChange, stage
from durable_memory.domain.state import ChangeToken
from durable_memory.ports.runtime import Clock
from durable_memory.ports.store import Decision, Loaded, Lock, Plan, Reads, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedChangeSet:
    """What became of a change set: the token after it, and the revisions that it made, in id order."""

    token: ChangeToken
    revisions: tuple[NodeRevision, ...]
    replayed: bool


class ChangeSetService:
    """Applies change sets as they are given."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def apply(self, call: Mutation, change_set: ChangeSet) -> AppliedChangeSet:
        """All of the change set, once, or a refusal with nothing changed.

        Raises: every reason of staging, IDEMPOTENCY_KEY_REUSED, and those of the store.
        """
        now = self._clock.now()

        def decide(loaded: Loaded) -> Decision:
            staged = stage_in(loaded, call, change_set, now)
            refs = [revision.ref for revision in staged.revisions]
            return Decision(change=staged, result={"at": staged.head.revision, "nodes": refs_json(refs)})

        outcome = await self._store.transact(
            call.namespace, Plan(lock=Lock.NAMESPACE, reads=reads_of(change_set), decide=decide, request=call.request)
        )
        refs = parse_refs(outcome.result["nodes"])
        return AppliedChangeSet(
            token=ChangeToken(history_id=outcome.head.history_id, namespace_revision=integer(outcome.result["at"])),
            revisions=await exact_revisions(self._store, call, refs),
            replayed=outcome.replayed,
        )


def reads_of(change_set: ChangeSet) -> Reads:
    """What staging a change set has to see."""
    return Reads(node_ids=change_set.node_ids(), evidence=change_set.offered_evidence())


def stage_in(loaded: Loaded, call: Mutation, change_set: ChangeSet, now: datetime) -> StagedChange:
    """`stage` against what a plan loaded."""
    return stage(
        change_set,
        head=loaded.head,
        nodes=loaded.nodes,
        known_evidence=loaded.known_evidence,
        actor=call.actor,
        now=now,
    )


async def exact_revisions(store: Store, call: Call, refs: Iterable[NodeRef]) -> tuple[NodeRevision, ...]:
    """The revisions that a stored result names, read again: results hold no text.

    Raises: DATA_CORRUPTED if the store does not have one of them.
    """
    wanted = tuple(refs)
    found = await store.revisions(call.namespace, frozenset(wanted))
    if not all(ref in found for ref in wanted):
        raise unreadable("reference")
    return tuple(found[ref] for ref in wanted)
