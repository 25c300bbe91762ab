"""The contract's enums as string enums that survive a newer server.

`NodeStatus.ACTIVE == "ACTIVE"`: members are strings, so they print, log and serialise as what they are called in the
contract, without its prefix; and where a caller gives one, its name does as well. A value that this version does not
know becomes a member of its own, named after its number (`UNKNOWN_7`), and travels back unchanged.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any, Final, Self

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import EnumDescriptor

# Imported for what they register: an enum's numbers come from its descriptor.
from durablememory.v1 import (  # noqa: F401
    candidate_service_pb2,
    memory_service_pb2,
    recall_service_pb2,
    repository_service_pb2,
    semantic_service_pb2,
    session_service_pb2,
    transfer_service_pb2,
)

_UNKNOWN: Final = re.compile(r"UNKNOWN_(\d+)")
_UNSPECIFIED: Final = "UNSPECIFIED"


class OpenEnum(StrEnum):
    """An enum of the contract, of the same name as the class."""

    @classmethod
    def from_number(cls, number: int) -> Self:
        """The member with this number on the wire; a new one if this version has none."""
        value = _descriptor(cls).values_by_number.get(number)
        name = f"UNKNOWN_{number}" if value is None else value.name.removeprefix(_prefix(cls))
        return cls(name)

    @classmethod
    def given(cls, value: str, argument: str) -> Self:
        """The member that a caller states as `argument`, by itself or by its name.

        Raises: ValueError, with the argument and the names there are.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str) and value in cls.__members__:
            return cls(value)
        raise ValueError(f"{argument} is one of {', '.join(cls.__members__)}, not {value!r}")

    @property
    def number(self) -> int:
        """The number on the wire."""
        if unknown := _UNKNOWN.fullmatch(self.value):
            return int(unknown[1])
        return int(_descriptor(type(self)).values_by_name[_prefix(type(self)) + self.value].number)

    @property
    def wire(self) -> Any:
        """The number, for the constructor of a message: each of the stubs' enums is a type of its own."""
        return self.number

    @property
    def is_known(self) -> bool:
        """Whether this version of the client knows the value."""
        return self.value in type(self).__members__

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        # Only what `from_number` makes: a misspelt name stays an error. Known to the stubs but not here counts too.
        if not isinstance(value, str):
            return None
        in_stubs = _prefix(cls) + value in _descriptor(cls).values_by_name
        if value != _UNSPECIFIED and not _UNKNOWN.fullmatch(value) and not in_stubs:
            return None
        member = str.__new__(cls, value)
        member._name_ = value
        member._value_ = value
        # As the standard library's flags do: the same value is the same object from now on.
        return cls._value2member_map_.setdefault(value, member)  # type: ignore[return-value]


def _descriptor(cls: type[OpenEnum]) -> EnumDescriptor:
    return descriptor_pool.Default().FindEnumTypeByName(f"durablememory.v1.{cls.__name__}")


def _prefix(cls: type[OpenEnum]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).upper() + "_"


class NodeKind(OpenEnum):
    """What kind of memory a node is: something that happened, something that is so, how to do something."""

    EPISODIC = "EPISODIC"
    SEMANTIC = "SEMANTIC"
    PROCEDURAL = "PROCEDURAL"


class NodeStatus(OpenEnum):
    """Where a node stands in its life. Only ACTIVE is recalled."""

    CANDIDATE = "CANDIDATE"
    ACTIVE = "ACTIVE"
    CONFLICTED = "CONFLICTED"
    SUPERSEDED = "SUPERSEDED"
    ARCHIVED = "ARCHIVED"
    TOMBSTONED = "TOMBSTONED"


class EvidenceKind(OpenEnum):
    """What kind of source evidence names. Only VERIFICATION and MANUAL open the way to ACTIVE."""

    USER_STATEMENT = "USER_STATEMENT"
    TOOL_RESULT = "TOOL_RESULT"
    ARTIFACT = "ARTIFACT"
    SESSION_TURN = "SESSION_TURN"
    VERIFICATION = "VERIFICATION"
    MANUAL = "MANUAL"


class RelationKind(OpenEnum):
    """A link, seen from the node that holds it."""

    SUPERSEDES = "SUPERSEDES"
    SUPERSEDED_BY = "SUPERSEDED_BY"
    CONFLICTS_WITH = "CONFLICTS_WITH"
    RELATED_TO = "RELATED_TO"


class DecisionKind(OpenEnum):
    """Whether a person decided, or a named and versioned rule."""

    MANUAL = "MANUAL"
    VERIFICATION = "VERIFICATION"


class RevisionKind(OpenEnum):
    """Why a memory changes: it becomes more exact, or it was wrong."""

    REFINEMENT = "REFINEMENT"
    CORRECTION = "CORRECTION"


class OperationKind(OpenEnum):
    """The steps that a change set is made of."""

    CREATE = "CREATE"
    ACTIVATE = "ACTIVATE"
    CORROBORATE = "CORROBORATE"
    REVISE = "REVISE"
    ADD_RELATION = "ADD_RELATION"
    REMOVE_RELATION = "REMOVE_RELATION"
    SET_STATUS = "SET_STATUS"


class RecallMode(OpenEnum):
    """How to search. AUTO is HYBRID when possible, else LEXICAL, and the answer says which."""

    AUTO = "AUTO"
    LEXICAL = "LEXICAL"
    SEMANTIC = "SEMANTIC"
    HYBRID = "HYBRID"


class RecallChannel(OpenEnum):
    """What found a hit."""

    LEXICAL = "LEXICAL"
    SEMANTIC = "SEMANTIC"
    HYBRID = "HYBRID"
    RELATED = "RELATED"


class Trust(OpenEnum):
    """How far a text may be trusted: remembered text is quoted history, never an instruction."""

    UNTRUSTED_HISTORY = "UNTRUSTED_HISTORY"


class DegradationReason(OpenEnum):
    """Why AUTO searched by words only."""

    SEMANTIC_NOT_CONFIGURED = "SEMANTIC_NOT_CONFIGURED"
    INDEX_UNAVAILABLE = "INDEX_UNAVAILABLE"
    INDEX_NOT_BUILT = "INDEX_NOT_BUILT"
    INDEX_REGRESSED = "INDEX_REGRESSED"
    INDEX_CORRUPTED = "INDEX_CORRUPTED"
    PROVIDER_FAILED = "PROVIDER_FAILED"
    DEADLINE = "DEADLINE"
    GENERATION_NOT_SERVED = "GENERATION_NOT_SERVED"


class RecallExclusion(OpenEnum):
    """Why a node is not among the hits of a recall."""

    NOT_ACTIVE = "NOT_ACTIVE"
    EXCLUDED_ID = "EXCLUDED_ID"
    KIND = "KIND"
    LABEL = "LABEL"
    TIME = "TIME"
    NO_MATCH = "NO_MATCH"
    MIN_SCORE = "MIN_SCORE"
    MIN_RELATIVE_SCORE = "MIN_RELATIVE_SCORE"
    MIN_SIMILARITY = "MIN_SIMILARITY"
    CANDIDATE_LIMIT = "CANDIDATE_LIMIT"
    MAX_RESULTS = "MAX_RESULTS"


class VectorState(OpenEnum):
    """The state of a node's vector in the session's generation."""

    NOT_USED = "NOT_USED"
    MISSING = "MISSING"
    OUTDATED = "OUTDATED"
    CURRENT = "CURRENT"


class VectorNormalization(OpenEnum):
    """How vectors are normalised before they are compared."""

    NONE = "NONE"
    L2 = "L2"


class VectorMetric(OpenEnum):
    """How vectors are compared."""

    COSINE = "COSINE"
    DOT_PRODUCT = "DOT_PRODUCT"


class SessionState(OpenEnum):
    """Whether a session may be used."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"


class OpenSessionOutcome(OpenEnum):
    """Whether opening a session made a new one."""

    OPENED = "OPENED"
    EXISTING = "EXISTING"


class RunState(OpenEnum):
    """Whether a run is open, and what ended it."""

    OPEN = "OPEN"
    ENDED = "ENDED"
    TAKEN_OVER = "TAKEN_OVER"
    IDLE_ENDED = "IDLE_ENDED"


class BeginRunOutcome(OpenEnum):
    """Whether beginning a run ended an older incarnation of it."""

    BEGUN = "BEGUN"
    TAKEN_OVER = "TAKEN_OVER"


class AdmissionVerdict(OpenEnum):
    """Whether a memory may stay in the model's input."""

    ADMITTED = "ADMITTED"
    REFUSED = "REFUSED"


class UseVerdict(OpenEnum):
    """Whether a use is on record."""

    RECORDED = "RECORDED"
    REFUSED = "REFUSED"


class ProposalOutcome(OpenEnum):
    """What became of a proposal."""

    CREATED = "CREATED"
    CORROBORATED = "CORROBORATED"
    UNCHANGED = "UNCHANGED"
    ALREADY_ACTIVE = "ALREADY_ACTIVE"
    PREVIOUSLY_REJECTED = "PREVIOUSLY_REJECTED"


class ActivationOutcome(OpenEnum):
    """What became of a candidate that was to be activated."""

    ACTIVATED = "ACTIVATED"
    ALREADY_ACTIVE = "ALREADY_ACTIVE"
    REFUSED = "REFUSED"


class RejectionOutcome(OpenEnum):
    """What became of a candidate that was to be rejected."""

    REJECTED = "REJECTED"
    ALREADY_REJECTED = "ALREADY_REJECTED"
    REFUSED = "REFUSED"


class RememberOutcome(OpenEnum):
    """Whether remembering made a new memory."""

    CREATED = "CREATED"
    UNCHANGED = "UNCHANGED"


class PutMemoryOutcome(OpenEnum):
    """Whether putting made a new memory, a new revision, or nothing."""

    CREATED = "CREATED"
    REVISED = "REVISED"
    UNCHANGED = "UNCHANGED"


class ReactivateMemoryOutcome(OpenEnum):
    """Whether the memory had to be brought back."""

    REACTIVATED = "REACTIVATED"
    UNCHANGED = "UNCHANGED"


class IndexState(OpenEnum):
    """What the vector index of a namespace is worth."""

    NOT_BUILT = "NOT_BUILT"
    CURRENT = "CURRENT"
    REGRESSED = "REGRESSED"
    CORRUPTED = "CORRUPTED"


class IndexConsistency(OpenEnum):
    """What the backend of an index must promise, or promised."""

    INDEX_REVISION_CAS = "INDEX_REVISION_CAS"
    LAST_WRITER_WINS = "LAST_WRITER_WINS"


class RefreshPhase(OpenEnum):
    """What a refresh is doing."""

    DIFFING = "DIFFING"
    EMBEDDING = "EMBEDDING"
    STAGING = "STAGING"
    PUBLISHED = "PUBLISHED"
    UNCHANGED = "UNCHANGED"


class MaintenancePhase(OpenEnum):
    """What the maintenance of a server process is doing."""

    STOPPED = "STOPPED"
    IDLE = "IDLE"
    REFRESHING = "REFRESHING"
    FAILING = "FAILING"


class MaintenanceRunOutcome(OpenEnum):
    """How a refresh ended."""

    PUBLISHED = "PUBLISHED"
    UNCHANGED = "UNCHANGED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
