"""`MemoryStore`: every promise of the port but durability, in the plainest way.

Nothing here awaits while it works, so each call is atomic and serial on its event loop.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence

from durable_memory.adapters.change_signal import ChangeSignal
from durable_memory.adapters.memory.partition import Partition, in_byte_order, run_key
from durable_memory.domain.access import AccessEvent, AccessKind, UsageSummary
from durable_memory.domain.change_set import ChangeSetRecord
from durable_memory.domain.errors import namespace_not_empty, not_serving
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRef, NodeRevision
from durable_memory.domain.session import BindingRecord, Context, Run, Session
from durable_memory.domain.state import Head, derived_history_id
from durable_memory.ports.runtime import Ids
from durable_memory.ports.store import NamespaceCopy, NodeSelection, Outcome, Plan, RequestRecord


class MemoryStore:
    """`Store` that lives and ends with the object. Closing keeps what it holds, so that it can be opened again."""

    def __init__(self, ids: Ids) -> None:
        self._history_id = ids.random_hex(16)
        self._page_token_key = bytes.fromhex(ids.random_hex(32))
        self._partitions: dict[Namespace, Partition] = {}
        self._changes = ChangeSignal()
        self._serving = False

    # Life

    async def open(self) -> None:
        self._serving = True

    async def close(self) -> None:
        self._serving = False
        self._changes.notify_all()

    async def check(self) -> None:
        self.require_serving()

    async def page_token_keys(self) -> Sequence[bytes]:
        self.require_serving()
        return (self._page_token_key,)

    async def renew_page_token_keys(self) -> None:
        self.require_serving()  # none lives for six days

    # Writing

    async def transact(self, namespace: Namespace, plan: Plan) -> Outcome:
        partition = self._partition(namespace)
        if plan.request is not None:
            record = partition.requests.get((plan.request.method, plan.request.key))
            if record is not None:
                plan.request.require_same(record.request.fingerprint)
                return Outcome(result=record.result, replayed=True, head=partition.head)
        before = partition.head
        decision = plan.decide(partition.load(plan.reads))
        partition.write(decision)
        # A copy by way of text, as it is for every store that keeps it on disk.
        result = json.loads(json.dumps(decision.result))
        if plan.request is not None:
            record = RequestRecord(request=plan.request, result=result, namespace_revision=partition.head.revision)
            partition.requests[plan.request.method, plan.request.key] = record
        self._partitions[namespace] = partition
        if partition.head != before:
            self._changes.notify(namespace.key)
        return Outcome(result=result, replayed=False, head=partition.head)

    async def import_namespace(self, namespace: Namespace, copy: NamespaceCopy, history_id: str) -> Head:
        held = self._partition(namespace)
        if not held.empty:
            raise namespace_not_empty(held.head.revision)
        partition = Partition(held.head)
        partition.fill(copy, history_id)
        self._partitions[namespace] = partition
        self._changes.notify(namespace.key)
        return partition.head

    # Reading

    async def head(self, namespace: Namespace) -> Head:
        return self._partition(namespace).head

    async def wait_for_change(self, namespace: Namespace, revision: int) -> None:
        if self._partition(namespace).head.revision <= revision:
            await self._changes.wait(namespace.key)

    async def find_request(self, namespace: Namespace, method: str, key: str) -> RequestRecord | None:
        return self._partition(namespace).requests.get((method, key))

    async def current_nodes(self, namespace: Namespace, node_ids: Collection[str]) -> Mapping[str, NodeRevision]:
        partition = self._partition(namespace)
        found = ((node_id, partition.current(node_id)) for node_id in node_ids)
        return {node_id: node for node_id, node in found if node is not None}

    async def nodes_at(
        self, namespace: Namespace, node_ids: Collection[str], namespace_revision: int
    ) -> Mapping[str, NodeRevision]:
        partition = self._partition(namespace)
        found = ((node_id, partition.at(node_id, namespace_revision)) for node_id in node_ids)
        return {node_id: node for node_id, node in found if node is not None}

    async def revisions(self, namespace: Namespace, refs: Collection[NodeRef]) -> Mapping[NodeRef, NodeRevision]:
        partition = self._partition(namespace)
        found = ((ref, partition.exact(ref)) for ref in refs)
        return {ref: node for ref, node in found if node is not None}

    async def list_nodes(
        self,
        namespace: Namespace,
        selection: NodeSelection,
        *,
        at_revision: int,
        after_node_id: str,
        limit: int,
    ) -> Sequence[NodeRevision]:
        return [
            node
            for node in self._partition(namespace).all_at(at_revision)
            if node.node_id > after_node_id and _selected(node, selection)
        ][:limit]

    async def list_revisions(
        self, namespace: Namespace, node_id: str, *, after_revision: int, limit: int
    ) -> Sequence[NodeRevision]:
        revisions = self._partition(namespace).revisions.get(node_id, [])
        return [node for node in revisions if node.revision > after_revision][:limit]

    async def changed_nodes(
        self, namespace: Namespace, *, after_revision: int, at_revision: int, after_node_id: str, limit: int
    ) -> Sequence[NodeRevision]:
        return [
            node
            for node in self._partition(namespace).all_at(at_revision)
            if node.valid_from > after_revision and node.node_id > after_node_id
        ][:limit]

    async def list_change_sets(
        self, namespace: Namespace, *, after_revision: int, limit: int
    ) -> Sequence[ChangeSetRecord]:
        records = self._partition(namespace).change_sets
        return [record for record in records if record.namespace_revision > after_revision][:limit]

    async def revisions_committed_at(
        self, namespace: Namespace, namespace_revisions: Collection[int]
    ) -> Mapping[int, Sequence[NodeRevision]]:
        partition = self._partition(namespace)
        found: dict[int, list[NodeRevision]] = {}
        for node_id in in_byte_order(partition.revisions):
            for node in partition.revisions[node_id]:
                if node.valid_from in namespace_revisions:
                    found.setdefault(node.valid_from, []).append(node)
        return found

    async def get_session(self, namespace: Namespace, session_id: str) -> Session | None:
        return self._partition(namespace).sessions.get(session_id)

    async def list_sessions(self, namespace: Namespace, *, after_session_id: str, limit: int) -> Sequence[Session]:
        sessions = self._partition(namespace).sessions
        return [sessions[id_] for id_ in in_byte_order(sessions) if id_ > after_session_id][:limit]

    async def get_context(self, namespace: Namespace, context_id: str) -> tuple[Context, Run] | None:
        partition = self._partition(namespace)
        context = partition.contexts.get(context_id)
        return None if context is None else (context, partition.runs[run_key(context)])

    async def usage(
        self, namespace: Namespace, *, node_ids: Collection[str], after: NodeRef, limit: int
    ) -> Sequence[UsageSummary]:
        by_ref: dict[NodeRef, list[AccessEvent]] = {}
        for event in self._partition(namespace).events.values():
            later = (event.node_id, event.revision) > (after.node_id, after.revision)
            if later and (not node_ids or event.node_id in node_ids):
                by_ref.setdefault(event.ref, []).append(event)
        in_order = sorted(by_ref, key=lambda ref: (ref.node_id, ref.revision))
        return [_summary(ref, by_ref[ref]) for ref in in_order][:limit]

    async def list_events(
        self, namespace: Namespace, *, kind: AccessKind | None, after_event_id: str, limit: int
    ) -> Sequence[AccessEvent]:
        events = self._partition(namespace).events
        return [
            events[id_] for id_ in in_byte_order(events) if id_ > after_event_id and kind in (None, events[id_].kind)
        ][:limit]

    async def export_requests(self, namespace: Namespace) -> AsyncIterator[RequestRecord]:
        requests = self._partition(namespace).requests
        for names in sorted(requests):
            yield requests[names]

    async def export_bindings(self, namespace: Namespace) -> AsyncIterator[BindingRecord]:
        bindings = self._partition(namespace).bindings
        for names in sorted(bindings):
            yield bindings[names]

    async def export_runs(self, namespace: Namespace) -> AsyncIterator[tuple[Run, Sequence[Context]]]:
        partition = self._partition(namespace)
        for run in sorted(
            partition.runs.values(), key=lambda run: (run.session_id, run.run_id, run.opened_at, run.incarnation)
        ):
            contexts = [context for context in partition.contexts.values() if run_key(context) == run_key(run)]
            yield run, sorted(contexts, key=lambda context: context.sequence)

    # For what lives beside the namespaces' state

    def require_serving(self) -> None:
        """Raises: NOT_SERVING."""
        if not self._serving:
            raise not_serving("closed", "the store is closed")

    def namespaces(self) -> Iterable[tuple[Namespace, Partition]]:
        """All that were written to."""
        self.require_serving()
        return self._partitions.items()

    def _partition(self, namespace: Namespace) -> Partition:
        """What the namespace holds; one that nobody wrote to is made up on the spot, and not kept."""
        self.require_serving()
        held = self._partitions.get(namespace)
        return held or Partition(Head(history_id=derived_history_id(self._history_id, namespace)))


def _selected(node: NodeRevision, selection: NodeSelection) -> bool:
    return (
        (not selection.statuses or node.status in selection.statuses)
        and (not selection.kinds or node.kind in selection.kinds)
        and all(node.labels.get(name) == value for name, value in selection.labels.items())
    )


def _summary(ref: NodeRef, events: Sequence[AccessEvent]) -> UsageSummary:
    admitted = [event.at for event in events if event.kind is AccessKind.ADMISSION]
    used = [event.at for event in events if event.kind is AccessKind.USE]
    return UsageSummary(
        node_id=ref.node_id,
        revision=ref.revision,
        admissions=len(admitted),
        uses=len(used),
        last_admitted_at=max(admitted, default=None),
        last_used_at=max(used, default=None),
    )
