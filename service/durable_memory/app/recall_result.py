"""What a recall answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Final, NamedTuple

from durable_memory.app.access import AccessOutcome
from durable_memory.app.views.explanation import LexicalExplanation
from durable_memory.app.views.revisions import HeldRevision
from durable_memory.domain.node import NodeRevision, NodeStatus, RelationKind
from durable_memory.domain.session import RecallMode
from durable_memory.domain.state import ChangeToken


class RecallChannel(IntEnum):
    """How a hit was found. Numbers equal the contract's."""

    LEXICAL = 1
    SEMANTIC = 2
    HYBRID = 3
    RELATED = 4


class DegradationReason(IntEnum):
    """Why AUTO answered with less than it could. Numbers equal the contract's."""

    SEMANTIC_NOT_CONFIGURED = 1
    INDEX_UNAVAILABLE = 2
    INDEX_NOT_BUILT = 3
    INDEX_REGRESSED = 4
    INDEX_CORRUPTED = 5
    PROVIDER_FAILED = 6
    DEADLINE = 7
    GENERATION_NOT_SERVED = 8


class VectorState(IntEnum):
    """What the index holds of a memory. Numbers equal the contract's."""

    NOT_USED = 1
    MISSING = 2
    OUTDATED = 3
    CURRENT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation:
    """Said in the answer, in a metric and in health."""

    reason: DegradationReason
    message: str


class BranchScore(NamedTuple):
    """A hit's place, from 1, and score in one branch, before fusion."""

    rank: int
    score: float


class SemanticCut(IntEnum):
    """What kept a memory with a vector of its present text from the hits of the semantic branch."""

    MIN_SIMILARITY = 1
    CANDIDATE_LIMIT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticStanding:
    """One memory in the semantic branch. `score` is its cosine, and its rank among all that pass the filter, before
    floor and cut; `None` without a vector of the present text. `cut` is `None` where it is among the branch's hits.
    """

    state: VectorState
    score: BranchScore | None = None
    cut: SemanticCut | None = None


NOT_USED: Final = SemanticStanding(state=VectorState.NOT_USED)


@dataclass(frozen=True, slots=True)
class HitRelation:
    """An edge of a hit, with the other end's status at the revision that the recall answers for."""

    kind: RelationKind
    node_id: str
    status: NodeStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallHit:
    """One memory of an answer. `related_to` is the hit that a RELATED one was reached from."""

    held: HeldRevision
    rank: int
    score: float
    channel: RecallChannel
    lexical: BranchScore | None
    semantic: BranchScore | None
    relations: tuple[HitRelation, ...]
    age: timedelta
    related_to: str | None = None

    @property
    def node(self) -> NodeRevision:
        """The text, without `valid_to`."""
        return self.held.node

    @property
    def disputed(self) -> bool:
        """Whether another memory contradicts it, which alone leaves both ACTIVE."""
        return any(relation.kind is RelationKind.CONFLICTS_WITH for relation in self.relations)


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticSearched:
    """What the semantic branch answered for.

    `dropped` candidates were not of the text that is ACTIVE now; `refilled` of those that took their place are among
    the branch's hits. `unindexed_active` memories have no vector of their present text yet.
    """

    index_revision: int
    index_history_digest: str
    vectors_searched: int
    dropped: int
    refilled: int
    unindexed_active: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallAnswer:
    """Hits, best first, and what they were looked for in."""

    token: ChangeToken
    mode: RecallMode
    degradation: Degradation | None
    searched_nodes: int
    hits: tuple[RecallHit, ...]
    semantic: SemanticSearched | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedRecall:
    """A recall whose hits were admitted in the same call: only admitted ones are in the answer."""

    answer: RecallAnswer
    admissions: tuple[AccessOutcome, ...]
    next_context_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why one memory is, or is not, in the answer to a query.

    `rank` is its place in the ranking before that is cut at the policy's bound, `None` where no branch found it;
    `recalled` says that it is within the bound. `lexical` was cut where the lexical branch of `mode` is.
    """

    token: ChangeToken
    node: NodeRevision
    mode: RecallMode
    degradation: Degradation | None
    lexical: LexicalExplanation
    semantic: SemanticStanding
    rank: int | None
    recalled: bool
