"""A namespace in memory that change sets are staged against, one after the other."""

from dataclasses import replace
from datetime import datetime

from durable_memory.domain.change_set import ChangeSet, Operation
from durable_memory.domain.node import NodeRevision, NodeStatus
from durable_memory.domain.staging import Actor, StagedChange, stage
from durable_memory.domain.state import Head
from tests.conformance.samples import NOW, create


class Stage:
    """What a store would hold. A refused change set leaves it as it was."""

    def __init__(self) -> None:
        self.head = Head(history_id="h")
        self.nodes: dict[str, NodeRevision] = {}
        self.evidence: set[tuple[str, str, str]] = set()
        self.history: list[NodeRevision] = []

    def apply(
        self,
        *operations: Operation,
        may_activate: bool = True,
        now: datetime = NOW,
        occurred_at: datetime | None = None,
        expected_namespace_revision: int | None = None,
        note: str = "",
    ) -> StagedChange:
        change_set = ChangeSet(
            operations=operations,
            occurred_at=occurred_at,
            expected_namespace_revision=expected_namespace_revision,
            note=note,
        )
        staged = stage(
            change_set,
            head=self.head,
            nodes={name: node for name, node in self.nodes.items() if name in change_set.node_ids()},
            known_evidence=self.evidence & change_set.offered_evidence(),
            actor=Actor(caller="tester", may_activate=may_activate, method="ApplyChangeSet", request_id="k"),
            now=now,
        )
        self.head = staged.head
        self.nodes.update((node.node_id, node) for node in staged.revisions)
        self.evidence.update(staged.new_evidence)
        self.history.extend(staged.revisions)
        return staged

    def set(self, node_id: str, *, status: NodeStatus) -> None:
        """Make a node what no single operation makes it."""
        self.nodes[node_id] = replace(self.nodes[node_id], status=status)

    def put_created(self, node_id: str, status: NodeStatus) -> None:
        """A node at revision 1 with any status."""
        self.apply(create(node_id))
        self.set(node_id, status=status)

    def __getitem__(self, node_id: str) -> NodeRevision:
        return self.nodes[node_id]
