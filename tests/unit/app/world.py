"""A service without a wire: the use cases over a memory store, a clock that stands still and ids that repeat."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from durable_memory.adapters.memory import MemoryStore
from durable_memory.adapters.runtime import ManualClock
from durable_memory.app.call import Call, Mutation
from durable_memory.app.memories import MemoryResult, WriteOptions
from durable_memory.app.recall_result import RecallAnswer
from durable_memory.app.services import AppServices, build_services
from durable_memory.app.sessions import BegunRun, PolicyRequest
from durable_memory.domain.access import AccessItem
from durable_memory.domain.caller import Caller, Role
from durable_memory.domain.change_set import (
    AddRelation,
    ChangeSet,
    ChangeSetRecord,
    NodeDraft,
    Operation,
    RemoveRelation,
)
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.evidence import DecisionInput, EvidenceInput, EvidenceKind, body_digest
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeKind, NodeRef, NodeRevision, Relation, RelationKind
from durable_memory.domain.session import RecallMode
from durable_memory.domain.state import ChangeToken
from durable_memory.ports.store import RequestKey, Store

START = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
NAMESPACE = Namespace("acme", "user-1", "project-a")
OTHER_NAMESPACE = Namespace("acme", "user-1", "project-b")
OWNER = Caller(name="owner", roles=frozenset(Role))
WRITER = Caller(name="writer", roles=frozenset({Role.READER, Role.WRITER}))
MANUAL = DecisionInput(kind=EvidenceKind.MANUAL, decider="reviewer-1", note="read it")
DEFAULTS = WriteOptions()
PLENTY = 64 * 1024 * 1024


class CountingIds:
    """`Ids` that repeat from run to run; two series differ by their name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._count = count(1)

    def time_ordered(self) -> str:
        return f"{self.name}-{next(self._count):06d}"

    def random_hex(self, size: int) -> str:
        return hashlib.sha512(f"{self.name}/{next(self._count)}".encode()).hexdigest()[: 2 * size]


@dataclass(frozen=True, slots=True)
class Applied:
    """The answer to a change set, and the revisions that its record names."""

    token: ChangeToken
    record: ChangeSetRecord
    revisions: tuple[NodeRevision, ...]


def evidence(name: str, kind: EvidenceKind = EvidenceKind.USER_STATEMENT, **more: Any) -> EvidenceInput:
    return EvidenceInput(uri=f"test:{name}", digest=body_digest(name.encode()), kind=kind, **more)


def decision(name: str) -> EvidenceInput:
    return evidence(name, EvidenceKind.MANUAL)


def draft(content: str, **more: Any) -> NodeDraft:
    return NodeDraft(**{"kind": NodeKind.SEMANTIC, "content": content, "labels": {}, **more})


def relate(kind: RelationKind, one: NodeRevision, other: NodeRevision) -> tuple[Operation, Operation]:
    """Both ends of a new edge."""
    return (
        AddRelation(node_id=one.node_id, expected_revision=one.revision, relation=Relation(kind, other.node_id)),
        AddRelation(
            node_id=other.node_id, expected_revision=other.revision, relation=Relation(kind.inverse, one.node_id)
        ),
    )


def unrelate(kind: RelationKind, one: NodeRevision, other: NodeRevision) -> tuple[Operation, Operation]:
    """Both ends of an edge that goes."""
    return (
        RemoveRelation(node_id=one.node_id, expected_revision=one.revision, relation=Relation(kind, other.node_id)),
        RemoveRelation(
            node_id=other.node_id, expected_revision=other.revision, relation=Relation(kind.inverse, one.node_id)
        ),
    )


@contextmanager
def refused(reason: Reason, **metadata: object) -> Iterator[None]:
    """The block raises a DomainError with this reason and at least this metadata."""
    with pytest.raises(DomainError) as caught:
        yield
    error = caught.value
    assert error.reason is reason, error
    assert {name: error.metadata.get(name) for name in metadata} == {
        name: str(value) for name, value in metadata.items()
    }


@dataclass
class World:
    """One process: its use cases, and shorthands for what tests do most often."""

    store: Store
    clock: ManualClock
    ids: CountingIds
    app: AppServices
    namespace: Namespace = NAMESPACE
    caller: Caller = OWNER
    keys: Iterator[int] = field(default_factory=lambda: count(1))

    # Calls

    @property
    def call(self) -> Call:
        return Call(caller=self.caller, namespace=self.namespace)

    def request(self, method: str, key: str | None = None, *, asks: str = "") -> Mutation:
        """A mutation: a new one, or with a `key` the repeat of another, if it `asks` for the same."""
        key = key or f"{self.ids.name}-{next(self.keys)}"
        return Mutation(
            caller=self.caller,
            namespace=self.namespace,
            request=RequestKey(method=method, key=key, fingerprint=f"v1:{asks or method}"),
        )

    def as_caller(self, caller: Caller) -> World:
        return replace(self, caller=caller)

    def at(self, namespace: Namespace) -> World:
        return replace(self, namespace=namespace)

    # Memories

    async def remember(self, content: str, node_id: str | None = None, **more: Any) -> NodeRevision:
        return (await self.remembered(content, node_id, **more)).node

    async def remembered(self, content: str, node_id: str | None = None, **more: Any) -> MemoryResult:
        return await self.app.memories.remember(self.request("Remember"), node_id, draft(content, **more), DEFAULTS)

    async def put(self, node_id: str, content: str, **more: Any) -> NodeRevision:
        result = await self.app.memories.put(self.request("PutMemory"), node_id, draft(content, **more), DEFAULTS)
        return result.node

    async def retire(self, node: NodeRevision) -> NodeRevision:
        result = await self.app.memories.retire(self.request("RetireMemory"), Citation.of(node), (), DEFAULTS)
        return result.node

    async def apply(self, *operations: Operation, key: str | None = None, **more: Any) -> Applied:
        applied = await self.app.change_sets.apply(
            self.request("ApplyChangeSet", key), ChangeSet(operations=operations, **more)
        )
        refs = [NodeRef(change.node_id, change.revision) for change in applied.record.changes]
        found = await self.store.revisions(self.namespace, frozenset(refs))
        return Applied(applied.token, applied.record, tuple(found[ref] for ref in refs))

    async def relate(self, kind: RelationKind, one: str, other: str) -> None:
        await self.apply(*relate(kind, await self.node(one), await self.node(other)))

    async def node(self, node_id: str) -> NodeRevision:
        return (await self.app.repository.node(self.call, node_id))[1]

    async def revision(self) -> int:
        return (await self.app.repository.token(self.call)).namespace_revision

    # Sessions

    async def open(self, session_id: str = "assistant", **policy: Any) -> None:
        await self.app.sessions.open(self.request("OpenSession"), session_id, PolicyRequest(**policy))

    async def begin(self, session_id: str = "assistant", run_id: str = "turn-1", host: str = "host-1") -> BegunRun:
        return await self.app.sessions.begin_run(self.request("BeginRun"), session_id, run_id, host)

    async def answer(self, query: str, session_id: str = "assistant", **more: Any) -> RecallAnswer:
        return await self.app.recall.active(self.call, session_id, query, **more)

    async def recall(self, query: str, session_id: str = "assistant", **more: Any) -> Sequence[str]:
        """The ids of the hits, best first."""
        return [hit.node.node_id for hit in (await self.answer(query, session_id, **more)).hits]


def ids_of(nodes: Collection[NodeRevision]) -> list[str]:
    return [node.node_id for node in nodes]


def items(*refs: NodeRef, event_ids: Mapping[NodeRef, str] | None = None) -> list[AccessItem]:
    return [AccessItem(ref=ref, event_id=(event_ids or {}).get(ref)) for ref in refs]


LEXICAL = RecallMode.LEXICAL


def process(
    store: Store,
    clock: ManualClock,
    ids: CountingIds,
    *,
    view_budget_bytes: int = PLENTY,
    view_max_bytes: int = PLENTY,
) -> World:
    """The use cases of one process over a store that others may share."""
    app = build_services(
        store,
        clock,
        ids,
        view_budget_bytes=view_budget_bytes,
        view_max_bytes=view_max_bytes,
        revision_cache_bytes=PLENTY,
    )
    return World(store=store, clock=clock, ids=ids, app=app)


async def opened_store(ids: CountingIds) -> MemoryStore:
    store = MemoryStore(ids)
    await store.open()
    return store
