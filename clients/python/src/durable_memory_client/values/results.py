"""What writes answer. Each has the citation to go on with: to cite, to revise, to retire."""

from __future__ import annotations

from dataclasses import dataclass

from durable_memory_client.failures import error_of_item
from durable_memory_client.service_error import MemoryServiceError
from durable_memory_client.values.citation import Citation
from durable_memory_client.values.enums import (
    ActivationOutcome,
    ProposalOutcome,
    PutMemoryOutcome,
    ReactivateMemoryOutcome,
    RejectionOutcome,
    RememberOutcome,
)
from durable_memory_client.values.namespace import ChangeToken
from durablememory.v1 import candidate_service_pb2, memory_service_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """What became of a proposal: the new candidate, or the equal memory that is known."""

    outcome: ProposalOutcome
    citation: Citation
    change_token: ChangeToken

    @classmethod
    def from_proto(cls, response: candidate_service_pb2.ProposeCandidatesResponse) -> list[Proposed]:
        token = ChangeToken.from_proto(response.change_token)
        return [
            cls(
                outcome=ProposalOutcome.from_number(result.outcome),
                citation=Citation.from_proto(result.citation),
                change_token=token,
            )
            for result in response.results
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated:
    """What became of a candidate that was to be activated. Refused: `error` says why, and there is no citation."""

    outcome: ActivationOutcome
    cited: Citation | None
    error: MemoryServiceError | None
    change_token: ChangeToken

    @property
    def citation(self) -> Citation:
        """The revision that is ACTIVE now. Raises: the item's error, if it was refused."""
        return _settled(self.cited, self.error)

    @classmethod
    def from_proto(cls, response: candidate_service_pb2.ActivateCandidatesResponse) -> list[Activated]:
        token = ChangeToken.from_proto(response.change_token)
        return [
            cls(
                outcome=ActivationOutcome.from_number(result.outcome),
                cited=Citation.from_proto(result.citation) if result.HasField("citation") else None,
                error=error_of_item(result.error) if result.HasField("error") else None,
                change_token=token,
            )
            for result in response.results
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """What became of a candidate that was to be rejected. Refused: `error` says why, and there is no citation."""

    outcome: RejectionOutcome
    cited: Citation | None
    error: MemoryServiceError | None
    change_token: ChangeToken

    @property
    def citation(self) -> Citation:
        """The TOMBSTONED revision. Raises: the item's error, if it was refused."""
        return _settled(self.cited, self.error)

    @classmethod
    def from_proto(cls, response: candidate_service_pb2.RejectCandidatesResponse) -> list[Rejected]:
        token = ChangeToken.from_proto(response.change_token)
        return [
            cls(
                outcome=RejectionOutcome.from_number(result.outcome),
                cited=Citation.from_proto(result.citation) if result.HasField("citation") else None,
                error=error_of_item(result.error) if result.HasField("error") else None,
                change_token=token,
            )
            for result in response.results
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The new memory, or the equal one that was ACTIVE already."""

    outcome: RememberOutcome
    citation: Citation
    change_token: ChangeToken

    @classmethod
    def from_proto(cls, response: memory_service_pb2.RememberResponse) -> Remembered:
        return cls(
            outcome=RememberOutcome.from_number(response.outcome),
            citation=Citation.from_proto(response.citation),
            change_token=ChangeToken.from_proto(response.change_token),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """The memory as it is now, and what that took."""

    outcome: PutMemoryOutcome
    citation: Citation
    change_token: ChangeToken

    @classmethod
    def from_proto(cls, response: memory_service_pb2.PutMemoryResponse) -> Put:
        return cls(
            outcome=PutMemoryOutcome.from_number(response.outcome),
            citation=Citation.from_proto(response.citation),
            change_token=ChangeToken.from_proto(response.change_token),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Revised:
    """The new revision."""

    citation: Citation
    change_token: ChangeToken

    @classmethod
    def from_proto(cls, response: memory_service_pb2.ReviseMemoryResponse) -> Revised:
        return cls(
            citation=Citation.from_proto(response.citation),
            change_token=ChangeToken.from_proto(response.change_token),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """The ARCHIVED revision."""

    citation: Citation
    change_token: ChangeToken

    @classmethod
    def from_proto(cls, response: memory_service_pb2.RetireMemoryResponse) -> Retired:
        return cls(
            citation=Citation.from_proto(response.citation),
            change_token=ChangeToken.from_proto(response.change_token),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reactivated:
    """The ACTIVE revision, and whether the memory had to be brought back."""

    outcome: ReactivateMemoryOutcome
    citation: Citation
    change_token: ChangeToken

    @classmethod
    def from_proto(cls, response: memory_service_pb2.ReactivateMemoryResponse) -> Reactivated:
        return cls(
            outcome=ReactivateMemoryOutcome.from_number(response.outcome),
            citation=Citation.from_proto(response.citation),
            change_token=ChangeToken.from_proto(response.change_token),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded:
    """The new, ACTIVE memory, and the SUPERSEDED revision of the old one."""

    citation: Citation
    superseded_citation: Citation
    change_token: ChangeToken

    @classmethod
    def from_proto(cls, response: memory_service_pb2.SupersedeMemoryResponse) -> Superseded:
        return cls(
            citation=Citation.from_proto(response.citation),
            superseded_citation=Citation.from_proto(response.superseded_citation),
            change_token=ChangeToken.from_proto(response.change_token),
        )


def _settled(citation: Citation | None, error: MemoryServiceError | None) -> Citation:
    if citation is None:
        raise error if error is not None else RuntimeError("the service answered with neither citation nor error")
    return citation
