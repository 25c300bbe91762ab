"""ApplyChangeSet, and what it shares with the other use cases that write: staging, repeats, and answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from durable_memory.app.call import Call, Mutation
from durable_memory.app.stored_results import integer, unreadable
from durable_memory.domain.change_set import ChangeSet, ChangeSetRecord
from durable_memory.domain.errors import DomainError, Reason, dependency_unavailable, outcome_unknown
from durable_memory.domain.node import NodeRef, NodeRevision
from durable_memory.domain.staging import StagedChange, stage
from durable_memory.domain.state import ChangeToken
from durable_memory.ports.runtime import Clock
from durable_memory.ports.store import Decision, Loaded, Lock, Outcome, Plan, Reads, Store

_NOT_MENDED: Final = frozenset({Reason.DATA_CORRUPTED, Reason.INTERNAL})
"""What a repeat meets again. Neither says that nothing has happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedChangeSet:
    """What became of a change set: the token after it, and its record."""

    token: ChangeToken
    record: ChangeSetRecord


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
            return Decision(change=staged, result={"at": staged.head.revision})

        outcome = await self._store.transact(
            call.namespace, Plan(lock=Lock.NAMESPACE, reads=reads_of(change_set), decide=decide, request=call.request)
        )
        at = integer(outcome.result["at"])
        with committed():
            found = await self._store.list_change_sets(call.namespace, after_revision=at - 1, limit=1)
        if [record.namespace_revision for record in found] != [at]:
            raise unreadable("change set")
        return AppliedChangeSet(
            token=ChangeToken(history_id=outcome.head.history_id, namespace_revision=at),
            record=found[0],
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


async def repeated(store: Store, call: Mutation) -> Outcome:
    """The outcome of a request that has been found: repeated as any other, for what is found may not be safe yet.

    Raises: IDEMPOTENCY_KEY_REUSED, DEPENDENCY_UNAVAILABLE if it is gone again, and as `Store.transact`.
    """

    def decide(loaded: Loaded) -> Decision:
        raise dependency_unavailable("the store has lost the request that it had")

    return await store.transact(
        call.namespace, Plan(lock=Lock.NODES, reads=Reads(), decide=decide, request=call.request)
    )


@contextmanager
def committed() -> Iterator[None]:
    """Around what is read to answer for a change that is committed: no error of that may say that it did not happen.

    Raises: OUTCOME_UNKNOWN in place of one that does. A repeat is answered with the change.
    """
    try:
        yield
    except DomainError as error:
        if error.reason in _NOT_MENDED:
            raise
        raise outcome_unknown() from error


async def exact_revisions(store: Store, call: Call, refs: Iterable[NodeRef]) -> tuple[NodeRevision, ...]:
    """The revisions that the result of a committed change names, read again: results hold no text.

    Raises: DATA_CORRUPTED if the store does not have one of them, and as `committed`.
    """
    wanted = tuple(refs)
    with committed():
        found = await store.revisions(call.namespace, frozenset(wanted))
    if not all(ref in found for ref in wanted):
        raise unreadable("reference")
    return tuple(found[ref] for ref in wanted)
