"""All stores side by side: the same plans, in the same order, and every answer and every read must agree.

The memory store is the oracle. Ids, times and contents come from small sets, so that plans meet each other.
"""

import asyncio
import itertools
import uuid
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from durable_memory.domain.access import AccessEvent, AccessKind
from durable_memory.domain.change_set import ChangeSet
from durable_memory.domain.errors import DomainError
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import (
    NodeKind,
    NodeRef,
    NodeRevision,
    NodeStatus,
    content_digest,
)
from durable_memory.domain.session import RunState, SessionState
from durable_memory.domain.state import Head
from durable_memory.ports.store import (
    Decision,
    Loaded,
    Lock,
    NamespaceCopy,
    NodeSelection,
    Plan,
    Reads,
    RequestKey,
    Store,
)
from tests.conformance.backends import ALL
from tests.conformance.change_strategies import CONTENTS, NODE_IDS, labels, node_ids, often, operations
from tests.conformance.conftest import make_backend
from tests.conformance.samples import (
    MANY,
    NOW,
    binding_record,
    change_plan,
    create,
    everything,
    request_key,
    run_with_context,
    session,
)

SESSION_IDS = ("s", "é")
EVENT_IDS = ("1", "B", "a", "é")
pages = st.integers(1, 4)
scopes = st.sampled_from((0, 0, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A plan as it was given to every store, to be repeated later."""

    namespace: Namespace
    plan: Callable[[Callable[[Loaded], object]], Plan]


def without_history(head: Head) -> Head:
    """History ids are random, so no two stores share one."""
    return replace(head, history_id="")


def comparable(loaded: Loaded) -> Loaded:
    by_content = {digest: list(nodes) for digest, nodes in loaded.by_content.items()}
    return replace(loaded, head=without_history(loaded.head), by_content=by_content)


class SideBySide(RuleBasedStateMachine):
    """`stores` starts with the oracle. Each example has namespaces of its own."""

    def __init__(self, runner: asyncio.Runner, stores: Sequence[Store]) -> None:
        super().__init__()
        self._runner = runner
        self._stores = stores
        self._calls: list[Call] = []
        self._keys = itertools.count()
        self._incarnations = itertools.count(1)
        self._now = NOW

    @initialize()
    def start(self) -> None:
        example = uuid.uuid4().hex
        self._namespaces = (Namespace(example, "user", "a"), Namespace(example, "user", "A"))
        for namespace in self._namespaces:
            self._write_session(namespace, SESSION_IDS[0], SessionState.OPEN)
            change_set = ChangeSet(operations=(create(NODE_IDS[0]), create(NODE_IDS[1], active=True)))
            self._first(
                Call(
                    namespace=namespace,
                    plan=lambda see, change_set=change_set: change_plan(change_set, see=see),  # type: ignore[misc]
                )
            )

    # Doing the same everywhere

    def _everywhere(self, ask: Callable[[Store], Coroutine[Any, Any, Any]]) -> Any:
        """The answer of every store, which must be one answer."""

        async def answer(store: Store) -> Any:
            try:
                return await ask(store)
            except DomainError as error:
                return (error.reason, error.metadata)

        async def gather() -> list[Any]:
            return await asyncio.gather(*(answer(store) for store in self._stores))

        expected, *others = self._runner.run(gather())
        for other in others:
            assert other == expected
        return expected

    def _transact(self, call: Call) -> None:
        async def outcome(store: Store) -> Any:
            seen: list[Loaded] = []
            outcome = await store.transact(call.namespace, call.plan(lambda loaded: seen.append(comparable(loaded))))
            return outcome.result, outcome.replayed, without_history(outcome.head), seen[-1:]

        self._everywhere(outcome)
        self._now += timedelta(milliseconds=1)

    def _first(self, call: Call) -> None:
        self._calls.append(call)
        self._transact(call)

    def _oracle(self, read: Callable[[Store], Coroutine[Any, Any, Any]]) -> Any:
        return self._runner.run(read(self._stores[0]))

    def _revisions(self, namespace: Namespace) -> list[NodeRevision]:
        async def read(store: Store) -> list[NodeRevision]:
            pages = [await store.list_revisions(namespace, id_, after_revision=0, limit=MANY) for id_ in NODE_IDS]
            return list(itertools.chain.from_iterable(pages))

        found: list[NodeRevision] = self._oracle(read)
        return found

    # Writing

    @rule(data=st.data(), scope=scopes, times=st.integers(1, 3), may_activate=often)
    def change_nodes(self, data: st.DataObject, scope: int, times: int, may_activate: bool) -> None:
        namespace = self._namespaces[scope]
        for _ in range(times):
            current = self._oracle(lambda store: store.current_nodes(namespace, NODE_IDS))
            name = f"k{next(self._keys)}"
            change_set = ChangeSet(operations=data.draw(operations(current, name)))
            request = request_key(name) if data.draw(often) else None
            self._first(
                Call(namespace=namespace, plan=partial(self._change_plan, change_set, request, self._now, may_activate))
            )

    @staticmethod
    def _change_plan(
        change_set: ChangeSet,
        request: RequestKey | None,
        now: datetime,
        may_activate: bool,
        see: Callable[[Loaded], object],
    ) -> Plan:
        made = change_plan(change_set, request=request, now=now, may_activate=may_activate, see=see)
        digests = frozenset(content_digest(content) for content in CONTENTS)
        return replace(made, reads=replace(made.reads, content_digests=digests))

    @rule(session_id=st.sampled_from(SESSION_IDS), scope=scopes, closed=st.booleans())
    def write_a_session(self, session_id: str, scope: int, closed: bool) -> None:
        state = SessionState.CLOSED if closed else SessionState.OPEN
        self._write_session(self._namespaces[scope], session_id, state)

    def _write_session(self, namespace: Namespace, session_id: str, state: SessionState) -> None:
        request = request_key(f"k{next(self._keys)}", method="OpenSession")
        now = self._now

        def plan(see: Callable[[Loaded], object]) -> Plan:
            def decide(loaded: Loaded) -> Decision:
                see(loaded)
                held = loaded.sessions.get(session_id)
                version = held.binding_version + 1 if held else 1
                written = session(namespace, session_id, version=version, max_results=version)
                written = replace(written, state=state, rebound_at=now if held else None)
                return Decision(result={"version": version}, sessions=(written,), bindings=(binding_record(written),))

            reads = Reads(session_ids=frozenset(SESSION_IDS))
            return Plan(lock=Lock.NAMESPACE, reads=reads, decide=decide, request=request)

        self._first(Call(namespace=namespace, plan=plan))

    @rule(session_id=st.sampled_from(SESSION_IDS), scope=scopes, ended=st.booleans())
    def write_a_run(self, session_id: str, scope: int, ended: bool) -> None:
        """Begins an incarnation, or goes on with the newest one: its next context, or its end."""
        incarnation = str(next(self._incarnations))

        def plan(see: Callable[[Loaded], object]) -> Plan:
            def decide(loaded: Loaded) -> Decision:
                see(loaded)
                if session_id not in loaded.sessions:
                    return Decision(result={"outcome": "SESSION_NOT_FOUND"})
                run, context = run_with_context(session_id, "r", incarnation)
                held = loaded.latest_runs.get((session_id, "r"))
                if held is not None and held.state is RunState.OPEN:
                    state = RunState.ENDED if ended else RunState.OPEN
                    context = replace(context, incarnation=held.incarnation, sequence=held.sequence)
                    context = context.next()
                    run = replace(held, state=state, sequence=context.sequence, context_id=context.context_id)
                return Decision(result={"context": context.context_id}, runs=(run,), contexts=(context,))

            reads = Reads(session_ids=frozenset({session_id}), latest_runs=frozenset({(session_id, "r")}))
            return Plan(lock=Lock.NAMESPACE, reads=reads, decide=decide)

        self._first(Call(namespace=self._namespaces[scope], plan=plan))

    @rule(data=st.data(), scope=scopes, kind=st.sampled_from(AccessKind))
    def record_events(self, data: st.DataObject, scope: int, kind: AccessKind) -> None:
        namespace = self._namespaces[scope]
        refs = [*(node.ref for node in self._revisions(namespace)), NodeRef("absent", 1)]
        wanted = [
            AccessEvent(
                event_id=event_id,
                kind=kind,
                session_id="s",
                context_id="c",
                node_id=ref.node_id,
                revision=ref.revision,
                caller="tester",
                at=self._now,
            )
            for event_id, ref in data.draw(
                st.dictionaries(st.sampled_from(EVENT_IDS), st.sampled_from(refs), min_size=1, max_size=3)
            ).items()
        ]
        request = request_key(f"k{next(self._keys)}", method="RecordUse")

        def plan(see: Callable[[Loaded], object]) -> Plan:
            def decide(loaded: Loaded) -> Decision:
                see(loaded)
                new = [item for item in wanted if item.ref in loaded.revisions and item.event_id not in loaded.events]
                return Decision(result={"new": [item.event_id for item in new]}, events=tuple(new))

            reads = Reads(
                node_ids=frozenset(item.node_id for item in wanted),
                revisions=frozenset(item.ref for item in wanted),
                event_ids=frozenset(item.event_id for item in wanted),
            )
            return Plan(lock=Lock.NODES, reads=reads, decide=decide, request=request)

        self._first(Call(namespace=namespace, plan=plan))

    @precondition(lambda self: self._calls)
    @rule(data=st.data(), other_command=st.sampled_from((False, False, True)))
    def repeat_a_call(self, data: st.DataObject, other_command: bool) -> None:
        """With its request key it replays, without one it is decided anew, with another fingerprint it is refused."""
        call = data.draw(st.sampled_from(self._calls))

        def plan(see: Callable[[Loaded], object]) -> Plan:
            made = call.plan(see)
            if other_command and made.request is not None:
                return replace(made, request=replace(made.request, fingerprint="v1:b"))
            return made

        if call.plan(lambda loaded: None).request is not None:
            self._transact(Call(namespace=call.namespace, plan=plan))

    # Reading

    @rule(data=st.data(), scope=scopes, limit=pages, after=st.sampled_from(("", *NODE_IDS)))
    def read_nodes(self, data: st.DataObject, scope: int, limit: int, after: str) -> None:
        namespace = self._namespaces[scope]
        head = self._oracle(lambda store: store.head(namespace))
        revisions = st.integers(0, head.revision + 1)
        at, before = data.draw(revisions), data.draw(revisions)
        selection = NodeSelection(
            statuses=frozenset(data.draw(st.sets(st.sampled_from(NodeStatus), max_size=2))),
            kinds=frozenset(data.draw(st.sets(st.sampled_from(NodeKind), max_size=2))),
            labels=data.draw(labels),
        )

        async def read(store: Store) -> Any:
            return (
                list(await store.list_nodes(namespace, selection, at_revision=at, after_node_id=after, limit=limit)),
                list(
                    await store.changed_nodes(
                        namespace, after_revision=before, at_revision=at, after_node_id=after, limit=limit
                    )
                ),
                list(await store.list_revisions(namespace, after, after_revision=before, limit=limit)),
                list(await store.list_change_sets(namespace, after_revision=before, limit=limit)),
                dict(await store.nodes_at(namespace, NODE_IDS, at)),
            )

        self._everywhere(read)

    @rule(
        scope=scopes,
        limit=pages,
        kind=st.none() | st.sampled_from(AccessKind),
        after=st.sampled_from(("", *EVENT_IDS)),
        wanted=st.sets(node_ids, max_size=2),
    )
    def read_access(self, scope: int, limit: int, kind: AccessKind | None, after: str, wanted: set[str]) -> None:
        namespace = self._namespaces[scope]

        async def read(store: Store) -> Any:
            return (
                list(await store.list_events(namespace, kind=kind, after_event_id=after, limit=limit)),
                list(await store.usage(namespace, node_ids=wanted, after=NodeRef(after, 1), limit=limit)),
                list(await store.list_sessions(namespace, after_session_id=after, limit=limit)),
            )

        self._everywhere(read)

    # At the end, everything

    def teardown(self) -> None:
        if not hasattr(self, "_namespaces"):
            return
        for namespace in self._namespaces:
            copy = self._everywhere(lambda store, namespace=namespace: everything(store, namespace))  # type: ignore[misc]
            target = replace(namespace, principal_id="copy")

            async def imported(
                store: Store, copy: NamespaceCopy = copy, target: Namespace = target
            ) -> tuple[Head, NamespaceCopy]:
                head = await store.import_namespace(target, copy, "f" * 32)
                assert await store.head(target) == head
                return replace(head, session_revision=0), await everything(store, target)

            _, again = self._everywhere(imported)
            assert again == copy


@pytest.mark.timeout(600)  # a failure is made small before it is shown
def test_all_stores_give_the_same_answers(request: pytest.FixtureRequest) -> None:
    backends = [make_backend(name, request) for name in ALL]
    with asyncio.Runner() as runner:
        stores = [backend.new() for backend in backends]
        for store in stores:
            runner.run(store.open())
        try:
            run_state_machine_as_test(
                lambda: SideBySide(runner, stores),  # type: ignore[arg-type]  # any factory will do
                settings=settings(
                    max_examples=60,
                    stateful_step_count=30,
                    deadline=None,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            for store in stores:
                runner.run(store.close())
