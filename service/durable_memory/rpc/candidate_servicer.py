"""CandidateService on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import grpc

from durable_memory.app.candidates import CandidateService, DecidedItem, Proposal, ProposalOutcome
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import DomainError, Reason, invalid_field
from durable_memory.domain.evidence import DecisionInput
from durable_memory.domain.limits import BATCH_MAX_ITEMS, CLOCK_SKEW_MAX
from durable_memory.domain.node import NodeKind, NodeRef, NodeStatus
from durable_memory.ports.runtime import Clock
from durable_memory.ports.store import NodeSelection
from durable_memory.rpc.change_paths import paths_of_request
from durable_memory.rpc.decode.citation import decode_ref
from durable_memory.rpc.decode.evidence import BESIDE_A_DECISION, decode_decision, decode_evidence
from durable_memory.rpc.decode.fields import enums, label_filter, optional_name, some
from durable_memory.rpc.decode.memory import decode_draft
from durable_memory.rpc.encode.item_error import encode_item_error
from durable_memory.rpc.encode.node import encode_citation, encode_token
from durable_memory.rpc.listing import Listing
from durable_memory.rpc.request import authorised, keyed
from durablememory.v1 import candidate_service_pb2 as pb
from durablememory.v1.candidate_service_pb2_grpc import CandidateServiceServicer
from durablememory.v1.citation_pb2 import NodeRevisionRef

Context = grpc.aio.ServicerContext[Any, Any]

_PROPOSAL: Final = {
    ProposalOutcome.CREATED: pb.PROPOSAL_OUTCOME_CREATED,
    ProposalOutcome.CORROBORATED: pb.PROPOSAL_OUTCOME_CORROBORATED,
    ProposalOutcome.UNCHANGED: pb.PROPOSAL_OUTCOME_UNCHANGED,
    ProposalOutcome.ALREADY_ACTIVE: pb.PROPOSAL_OUTCOME_ALREADY_ACTIVE,
    ProposalOutcome.PREVIOUSLY_REJECTED: pb.PROPOSAL_OUTCOME_PREVIOUSLY_REJECTED,
}


class CandidateServicer(CandidateServiceServicer):
    """Proposing memories, and deciding on what was proposed."""

    def __init__(self, candidates: CandidateService, clock: Clock, listing: Listing) -> None:
        self._candidates = candidates
        self._clock = clock
        self._listing = listing

    async def ProposeCandidates(
        self, request: pb.ProposeCandidatesRequest, context: Context
    ) -> pb.ProposeCandidatesResponse:
        rpc = "CandidateService.ProposeCandidates"
        call = authorised(rpc, request)
        some("proposals", request.proposals, BATCH_MAX_ITEMS)
        proposals = [_proposal(f"proposals[{index}]", given) for index, given in enumerate(request.proposals)]
        _refuse_future(proposals, self._clock.now() + CLOCK_SKEW_MAX)
        mutation = keyed(call, rpc, request, request.request_id)
        with paths_of_request():
            proposed = await self._candidates.propose(mutation, proposals, repropose=request.repropose)
        return pb.ProposeCandidatesResponse(
            change_token=encode_token(proposed.token),
            results=[
                pb.ProposalResult(outcome=_PROPOSAL[item.outcome], citation=encode_citation(Citation.of(item.node)))
                for item in proposed.items
            ],
        )

    async def ListCandidates(self, request: pb.ListCandidatesRequest, context: Context) -> pb.ListCandidatesResponse:
        rpc = "CandidateService.ListCandidates"
        call = authorised(rpc, request)
        selection = NodeSelection(
            statuses=frozenset({NodeStatus.CANDIDATE}),
            kinds=enums("kinds", NodeKind, request.kinds),
            labels=label_filter("labels", request.labels),
        )
        page = await self._listing.nodes(
            call,
            rpc,
            request,
            selection,
            at_revision=None,
            with_content=True,
            with_surroundings=request.include_surroundings,
        )
        return pb.ListCandidatesResponse(
            change_token=encode_token(page.token), candidates=page.items, next_page_token=page.next_page_token
        )

    async def ActivateCandidates(
        self, request: pb.ActivateCandidatesRequest, context: Context
    ) -> pb.ActivateCandidatesResponse:
        rpc = "CandidateService.ActivateCandidates"
        call = authorised(rpc, request)
        refs = _refs(request.items)
        evidence = decode_evidence("evidence", request.evidence, most=BESIDE_A_DECISION)
        decision = _decision(request)
        mutation = keyed(call, rpc, request, request.request_id)
        with paths_of_request():
            decided = await self._candidates.activate(mutation, refs, decision, evidence)
        return pb.ActivateCandidatesResponse(
            change_token=encode_token(decided.token), results=[_activation(item) for item in decided.items]
        )

    async def RejectCandidates(
        self, request: pb.RejectCandidatesRequest, context: Context
    ) -> pb.RejectCandidatesResponse:
        rpc = "CandidateService.RejectCandidates"
        call = authorised(rpc, request)
        refs = _refs(request.items)
        evidence = decode_evidence("evidence", request.evidence, most=BESIDE_A_DECISION)
        decision = _decision(request)
        mutation = keyed(call, rpc, request, request.request_id)
        with paths_of_request():
            decided = await self._candidates.reject(mutation, refs, decision, evidence)
        return pb.RejectCandidatesResponse(
            change_token=encode_token(decided.token), results=[_rejection(item) for item in decided.items]
        )


def _proposal(field: str, given: pb.CandidateProposal) -> Proposal:
    if not given.HasField("memory"):
        raise invalid_field(f"{field}.memory", "is missing")
    return Proposal(
        node_id=optional_name(f"{field}.", given, "node_id"),
        draft=decode_draft(f"{field}.memory", given.memory, least_evidence=1),
    )


def _refuse_future(proposals: Sequence[Proposal], bound: datetime) -> None:
    """Proposals are merged before they are staged, so only here can the refusal name the one with the time.

    Raises: INVALID_FIELD.
    """
    for index, proposal in enumerate(proposals):
        field = f"proposals[{index}].memory"
        times = {f"{field}.occurred_at": proposal.draft.occurred_at}
        for place, item in enumerate(proposal.draft.evidence):
            times[f"{field}.evidence[{place}].occurred_at"] = item.occurred_at
        for path, time in times.items():
            if time is not None and time > bound:
                raise invalid_field(path, "is later than it may be", given=time.isoformat(), bound=bound.isoformat())


def _refs(given: Sequence[NodeRevisionRef]) -> list[NodeRef]:
    some("items", given, BATCH_MAX_ITEMS)
    return [decode_ref(f"items[{index}]", ref) for index, ref in enumerate(given)]


def _decision(request: pb.ActivateCandidatesRequest | pb.RejectCandidatesRequest) -> DecisionInput:
    if not request.HasField("decision"):
        raise DomainError(
            Reason.EVIDENCE_REQUIRED,
            "deciding on a candidate needs a decision, MANUAL or VERIFICATION",
            accepted_kinds="MANUAL,VERIFICATION",
        )
    return decode_decision("decision", request.decision)


def _activation(item: DecidedItem) -> pb.ActivationResult:
    if item.node is None:
        return pb.ActivationResult(
            outcome=pb.ACTIVATION_OUTCOME_REFUSED,
            error=None if item.error is None else encode_item_error(item.error),
        )
    return pb.ActivationResult(
        outcome=pb.ACTIVATION_OUTCOME_ACTIVATED if item.changed else pb.ACTIVATION_OUTCOME_ALREADY_ACTIVE,
        citation=encode_citation(Citation.of(item.node)),
    )


def _rejection(item: DecidedItem) -> pb.RejectionResult:
    if item.node is None:
        return pb.RejectionResult(
            outcome=pb.REJECTION_OUTCOME_REFUSED,
            error=None if item.error is None else encode_item_error(item.error),
        )
    return pb.RejectionResult(
        outcome=pb.REJECTION_OUTCOME_REJECTED if item.changed else pb.REJECTION_OUTCOME_ALREADY_REJECTED,
        citation=encode_citation(Citation.of(item.node)),
    )
