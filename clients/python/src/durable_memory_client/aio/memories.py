"""The memory service, on one namespace: what a person or agent does with one memory in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Unpack

from durable_memory_client.aio.calls import Calls
from durable_memory_client.values.change_set import surroundings_to_proto
from durable_memory_client.values.citation import Citable, citation_of
from durable_memory_client.values.enums import RevisionKind
from durable_memory_client.values.evidence import Decision, Evidence, decision_to_proto, evidence_to_proto
from durable_memory_client.values.memory import CitedMemory, Draft, DraftFields, draft_of
from durable_memory_client.values.namespace import Namespace
from durable_memory_client.values.results import Put, Reactivated, Remembered, Retired, Revised, Superseded
from durable_memory_client.values.times import to_timestamp
from durable_memory_client.values.wire import number_of, optional_number, stated
from durablememory.v1 import memory_service_pb2 as pb


class MemoryCalls:
    """Each is one change set. Without a `decision`, the authenticated caller decided (MANUAL)."""

    _calls: Calls
    _namespace: Namespace

    async def remember(
        self,
        memory: str | Draft,
        *,
        node_id: str | None = None,
        decision: Decision | None = None,
        expected_namespace_revision: int | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
        **draft: Unpack[DraftFields],
    ) -> Remembered:
        """Remember at once: an ACTIVE memory, without a candidate. Content equal to an ACTIVE one's is UNCHANGED.

        Raises: NodeAlreadyExistsError (`node_id` is taken), RevisionConflictError (the namespace moved),
        NamespaceTooLargeError.
        """
        request = stated(
            pb.RememberRequest,
            namespace=self._namespace.to_proto(),
            request_id=request_id,
            memory=draft_of(memory, **draft).to_proto(),
            node_id=node_id,
            decision=decision_to_proto(decision),
            expected_namespace_revision=expected_namespace_revision,
        )
        return Remembered.from_proto(await self._calls.unary(request, pb.RememberResponse, timeout=timeout))

    async def put(
        self,
        node_id: str,
        memory: str | Draft,
        *,
        decision: Decision | None = None,
        revision_kind: RevisionKind | None = None,
        expected_revision: int | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
        **draft: Unpack[DraftFields],
    ) -> Put:
        """Make the node with this id say this, completely, and be ACTIVE: CREATED, REVISED or UNCHANGED.

        `expected_revision`: what the node must be at; 0: it must not exist. Default: not compared.

        Raises: InvalidFieldError (the node has another kind), RevisionConflictError, NodeFrozenError,
        NamespaceTooLargeError.
        """
        request = stated(
            pb.PutMemoryRequest,
            namespace=self._namespace.to_proto(),
            request_id=request_id,
            node_id=node_id,
            memory=draft_of(memory, **draft).to_proto(),
            decision=decision_to_proto(decision),
            revision_kind=optional_number(RevisionKind, revision_kind, "revision_kind"),
            expected_revision=expected_revision,
        )
        return Put.from_proto(await self._calls.unary(request, pb.PutMemoryResponse, timeout=timeout))

    async def revise(
        self,
        memory: Citable,
        *,
        content: str | None = None,
        kind: RevisionKind = RevisionKind.CORRECTION,
        surroundings: Sequence[str] | None = None,
        author: str | None = None,
        occurred_at: datetime | None = None,
        confidence: float | None = None,
        importance: float | None = None,
        set_labels: Mapping[str, str] | None = None,
        remove_labels: Sequence[str] = (),
        evidence: Iterable[Evidence] = (),
        decision: Decision | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Revised:
        """Change a memory, named by its exact current citation. What is None stays; `surroundings=()` removes them.

        Raises: NodeNotFoundError, RevisionConflictError (it has changed since), RevisionNotFoundError (the digest
        differs), NodeFrozenError, ChangeSetEmptyError, NamespaceTooLargeError.
        """
        request = stated(
            pb.ReviseMemoryRequest,
            namespace=self._namespace.to_proto(),
            request_id=request_id,
            citation=citation_of(memory).to_proto(),
            revision_kind=number_of(RevisionKind, kind, "kind"),
            content=content,
            surroundings=surroundings_to_proto(surroundings),
            author=author,
            occurred_at=to_timestamp(occurred_at, "occurred_at"),
            confidence=confidence,
            importance=importance,
            set_labels=set_labels or {},
            remove_labels=remove_labels,
            evidence=evidence_to_proto(evidence),
            decision=decision_to_proto(decision),
        )
        return Revised.from_proto(await self._calls.unary(request, pb.ReviseMemoryResponse, timeout=timeout))

    async def retire(
        self,
        memory: Citable,
        *,
        evidence: Iterable[Evidence] = (),
        decision: Decision | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Retired:
        """Take an ACTIVE memory out of recall: it becomes ARCHIVED. Nothing is deleted.

        Raises: NodeNotFoundError, RevisionConflictError, RevisionNotFoundError, InvalidTransitionError.
        """
        request = stated(
            pb.RetireMemoryRequest,
            namespace=self._namespace.to_proto(),
            request_id=request_id,
            citation=citation_of(memory).to_proto(),
            evidence=evidence_to_proto(evidence),
            decision=decision_to_proto(decision),
        )
        return Retired.from_proto(await self._calls.unary(request, pb.RetireMemoryResponse, timeout=timeout))

    async def reactivate(
        self,
        memory: Citable,
        *,
        evidence: Iterable[Evidence] = (),
        decision: Decision | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Reactivated:
        """Bring an ARCHIVED memory back into recall, or decide for a CONFLICTED one.

        Raises: NodeNotFoundError, RevisionConflictError, RevisionNotFoundError, InvalidTransitionError,
        NamespaceTooLargeError.
        """
        request = stated(
            pb.ReactivateMemoryRequest,
            namespace=self._namespace.to_proto(),
            request_id=request_id,
            citation=citation_of(memory).to_proto(),
            evidence=evidence_to_proto(evidence),
            decision=decision_to_proto(decision),
        )
        return Reactivated.from_proto(await self._calls.unary(request, pb.ReactivateMemoryResponse, timeout=timeout))

    async def supersede(
        self,
        memory: Citable,
        replacement: str | Draft,
        *,
        node_id: str | None = None,
        decision: Decision | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
        **draft: Unpack[DraftFields],
    ) -> Superseded:
        """Replace a memory by a new one, atomically, each naming the other.

        Raises: NodeNotFoundError, RevisionConflictError, RevisionNotFoundError, InvalidTransitionError,
        NodeAlreadyExistsError, NamespaceTooLargeError.
        """
        request = stated(
            pb.SupersedeMemoryRequest,
            namespace=self._namespace.to_proto(),
            request_id=request_id,
            citation=citation_of(memory).to_proto(),
            memory=draft_of(replacement, **draft).to_proto(),
            node_id=node_id,
            decision=decision_to_proto(decision),
        )
        return Superseded.from_proto(await self._calls.unary(request, pb.SupersedeMemoryResponse, timeout=timeout))

    async def get(self, citation: Citable, *, timeout: float | None = None) -> CitedMemory:
        """Read exactly what a citation names, however old, and what has become of it.

        Raises: NodeNotFoundError, RevisionNotFoundError (no such revision, or its digest differs),
        ContentErasedError.
        """
        request = stated(
            pb.GetMemoryRequest, namespace=self._namespace.to_proto(), citation=citation_of(citation).to_proto()
        )
        return CitedMemory.from_proto(await self._calls.unary(request, pb.GetMemoryResponse, timeout=timeout))
