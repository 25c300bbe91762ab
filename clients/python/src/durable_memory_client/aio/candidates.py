"""The candidate service, on one namespace: proposing memories, and deciding on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Unpack

from durable_memory_client.aio.calls import Calls
from durable_memory_client.aio.paging import Page, Pages
from durable_memory_client.values.citation import Citable, revision_ref
from durable_memory_client.values.enums import NodeKind
from durable_memory_client.values.evidence import Decision, Evidence, decision_to_proto, evidence_to_proto
from durable_memory_client.values.memory import Draft, DraftFields, Node, draft_of
from durable_memory_client.values.namespace import ChangeToken, Namespace
from durable_memory_client.values.results import Activated, Proposed, Rejected
from durable_memory_client.values.wire import numbers_of, stated
from durablememory.v1 import candidate_service_pb2 as pb


class CandidateCalls:
    """What an agent proposes is a candidate, and never recalled, until somebody with that right activates it."""

    _calls: Calls
    _namespace: Namespace

    async def propose(
        self,
        memory: str | Draft,
        *,
        node_id: str | None = None,
        repropose: bool = False,
        request_id: str | None = None,
        timeout: float | None = None,
        **draft: Unpack[DraftFields],
    ) -> Proposed:
        """Propose a memory, with at least one reference of evidence.

        An equal candidate gets the evidence instead (CORROBORATED), an equal ACTIVE memory is named
        (ALREADY_ACTIVE), and what was rejected before stays rejected (PREVIOUSLY_REJECTED) unless `repropose`.

        Raises: NodeAlreadyExistsError (`node_id` is taken by other content).
        """
        proposed = await self._propose(
            [pb.CandidateProposal(node_id=node_id, memory=draft_of(memory, **draft).to_proto())],
            repropose=repropose,
            request_id=request_id,
            timeout=timeout,
        )
        return proposed[0]

    async def propose_many(
        self,
        memories: Iterable[Draft],
        *,
        repropose: bool = False,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> list[Proposed]:
        """Propose up to 128 memories that commit together; one result each, in order."""
        return await self._propose(
            [pb.CandidateProposal(memory=memory.to_proto()) for memory in memories],
            repropose=repropose,
            request_id=request_id,
            timeout=timeout,
        )

    def list_candidates(
        self,
        *,
        kinds: Sequence[NodeKind] = (),
        labels: Mapping[str, str] | None = None,
        include_surroundings: bool = False,
        page_size: int = 0,
        timeout: float | None = None,
    ) -> Pages[Node]:
        """The candidates of the namespace, in id order."""

        async def fetch(page_token: str) -> Page[Node]:
            request = stated(
                pb.ListCandidatesRequest,
                namespace=self._namespace.to_proto(),
                kinds=numbers_of(NodeKind, kinds, "kinds"),
                labels=labels or {},
                include_surroundings=include_surroundings,
                page_size=page_size,
                page_token=page_token,
            )
            response = await self._calls.unary(request, pb.ListCandidatesResponse, timeout=timeout)
            return Page(
                items=tuple(map(Node.from_proto, response.candidates)),
                next_page_token=response.next_page_token,
                change_token=ChangeToken.from_proto(response.change_token),
            )

        return Pages(fetch)

    async def activate(
        self,
        candidate: Citable,
        decision: Decision | None = None,
        *,
        evidence: Iterable[Evidence] = (),
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Activated:
        """Make the candidate ACTIVE, at exactly the revision that the decider saw.

        Raises: EvidenceRequiredError (no decision), NodeNotFoundError, RevisionConflictError,
        InvalidTransitionError (it is no candidate), NamespaceTooLargeError.
        """
        activated = await self.activate_many(
            [candidate], decision, evidence=evidence, request_id=request_id, timeout=timeout
        )
        if activated[0].error is not None:
            raise activated[0].error
        return activated[0]

    async def activate_many(
        self,
        candidates: Iterable[Citable],
        decision: Decision | None = None,
        *,
        evidence: Iterable[Evidence] = (),
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> list[Activated]:
        """Make up to 128 candidates ACTIVE by one decision; one result each, in order, with the error if refused."""
        request = stated(
            pb.ActivateCandidatesRequest,
            namespace=self._namespace.to_proto(),
            request_id=request_id,
            items=[revision_ref(candidate) for candidate in candidates],
            decision=decision_to_proto(decision),
            evidence=evidence_to_proto(evidence),
        )
        response = await self._calls.unary(request, pb.ActivateCandidatesResponse, timeout=timeout)
        return Activated.from_proto(response)

    async def reject(
        self,
        candidate: Citable,
        decision: Decision | None = None,
        *,
        evidence: Iterable[Evidence] = (),
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Rejected:
        """Reject the candidate: it becomes TOMBSTONED, and equal proposals stay rejected from then on.

        Raises: EvidenceRequiredError (no decision), NodeNotFoundError, RevisionConflictError,
        InvalidTransitionError (it is no candidate).
        """
        rejected = await self.reject_many(
            [candidate], decision, evidence=evidence, request_id=request_id, timeout=timeout
        )
        if rejected[0].error is not None:
            raise rejected[0].error
        return rejected[0]

    async def reject_many(
        self,
        candidates: Iterable[Citable],
        decision: Decision | None = None,
        *,
        evidence: Iterable[Evidence] = (),
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> list[Rejected]:
        """Reject up to 128 candidates by one decision; one result each, in order, with the error if refused."""
        request = stated(
            pb.RejectCandidatesRequest,
            namespace=self._namespace.to_proto(),
            request_id=request_id,
            items=[revision_ref(candidate) for candidate in candidates],
            decision=decision_to_proto(decision),
            evidence=evidence_to_proto(evidence),
        )
        response = await self._calls.unary(request, pb.RejectCandidatesResponse, timeout=timeout)
        return Rejected.from_proto(response)

    async def _propose(
        self,
        proposals: list[pb.CandidateProposal],
        *,
        repropose: bool,
        request_id: str | None,
        timeout: float | None,
    ) -> list[Proposed]:
        request = stated(
            pb.ProposeCandidatesRequest,
            namespace=self._namespace.to_proto(),
            request_id=request_id,
            proposals=proposals,
            repropose=repropose,
        )
        response = await self._calls.unary(request, pb.ProposeCandidatesResponse, timeout=timeout)
        return Proposed.from_proto(response)
