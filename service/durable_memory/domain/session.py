"""Sessions: a caller bound to one namespace, one recall policy and at most one semantic generation.

A binding is a plain value without secrets. Resuming a session compares every field with what was stored and fails
closed on any difference; nothing is filled in, widened or taken as "latest" then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import IntEnum
from typing import Final

from durable_memory.domain.canonical import JsonValue, digest_hex, digest_json
from durable_memory.domain.errors import DomainError, Reason, invalid_field
from durable_memory.domain.lexical.profiles import LEXICAL_PROFILES
from durable_memory.domain.limits import MAX_RESULTS_MAX, RELATED_LOOKUPS_MAX
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.text import check_unit_interval

BINDING_SCHEMA_VERSION: Final = 1
_NOT_POLICY: Final = frozenset({"schema_version", "namespace", "semantic_generation"})

DEFAULT_MAX_RESULTS: Final = 5
DEFAULT_CANDIDATE_LIMIT: Final = 100
DEFAULT_MIN_SIMILARITY: Final = -1.0
"""The least cosine there is: off."""

DEFAULT_FUSION_PROFILE: Final = "dm.fusion.convex.v1"
FUSION_PROFILES: Final = frozenset({DEFAULT_FUSION_PROFILE, "a3s.code.memory.hybrid.rrf-k60.v1"})


class RecallMode(IntEnum):
    """Numbers equal the contract's and the stores'. AUTO alone may degrade; see recall.md."""

    AUTO = 1
    LEXICAL = 2
    SEMANTIC = 3
    HYBRID = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticGeneration:
    """One exact way to make and compare vectors. `candidate_limit` and `min_similarity` bound its branch."""

    authority_digest: str
    provider: str
    model: str
    model_revision: str
    dimension: int
    normalization: str
    metric: str
    candidate_limit: int
    min_similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallPolicy:
    """How a recall selects: bounds, floors and the pinned, versioned algorithms.

    `min_score` is absolute (its meaning belongs to the lexical profile), `min_relative_score` is against the best
    hit; both 0..1, and 0 is off. `related_lookups` is the number of exact RELATED_TO reads, 0 for none.
    """

    mode: RecallMode
    max_results: int
    min_score: float
    min_relative_score: float
    related_lookups: int
    lexical_profile: str
    fusion_profile: str
    semantic: SemanticGeneration | None = None

    def __post_init__(self) -> None:
        """Raises: INVALID_FIELD."""
        if not 1 <= self.max_results <= MAX_RESULTS_MAX:
            raise invalid_field("policy.max_results", f"is not from 1 to {MAX_RESULTS_MAX}")
        if not 0 <= self.related_lookups <= RELATED_LOOKUPS_MAX:
            raise invalid_field("policy.related_lookups", f"is not from 0 to {RELATED_LOOKUPS_MAX}")
        check_unit_interval("policy.min_score", self.min_score)
        check_unit_interval("policy.min_relative_score", self.min_relative_score)
        if self.lexical_profile not in LEXICAL_PROFILES:
            raise invalid_field("policy.lexical_profile", "is not a profile of this server")
        if self.fusion_profile not in FUSION_PROFILES:
            raise invalid_field("policy.fusion_profile", "is not a profile of this server")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBinding:
    """What a session is bound to. `digest` is over the schema version and the fields that version knows."""

    namespace: Namespace
    policy: RecallPolicy
    schema_version: int = BINDING_SCHEMA_VERSION

    def canonical(self) -> dict[str, JsonValue]:
        """The stored and hashed form. This is schema version 1's codec, and stays as it is for ever."""
        semantic = self.policy.semantic
        return {
            "fusion_profile": self.policy.fusion_profile,
            "lexical_profile": self.policy.lexical_profile,
            "max_results": self.policy.max_results,
            "min_relative_score": self.policy.min_relative_score,
            "min_score": self.policy.min_score,
            "mode": self.policy.mode.name,
            "namespace": {
                "principal_id": self.namespace.principal_id,
                "scope_id": self.namespace.scope_id,
                "tenant_id": self.namespace.tenant_id,
            },
            "related_lookups": self.policy.related_lookups,
            "schema_version": self.schema_version,
            "semantic_generation": None
            if semantic is None
            else {part.name: getattr(semantic, part.name) for part in fields(semantic)},
        }

    def digest(self) -> str:
        """64 hexadecimal digits."""
        return digest_json("session-binding/v1", self.canonical())


def decode_binding(stored: Mapping[str, JsonValue]) -> SessionBinding:
    """The inverse of `SessionBinding.canonical`.

    Unknown versions, fields and values are refused, so that an old replica never takes a drifted binding for its own.

    Raises: BINDING_DRIFT.
    """
    try:
        if stored["schema_version"] != BINDING_SCHEMA_VERSION:
            raise _binding_drift(["schema_version"])
        policy = {name: value for name, value in stored.items() if name not in _NOT_POLICY}
        semantic = stored["semantic_generation"]
        return SessionBinding(
            namespace=Namespace(**_mapping(stored["namespace"])),  # type: ignore[arg-type]
            policy=RecallPolicy(
                mode=RecallMode[str(policy.pop("mode"))],
                semantic=None if semantic is None else SemanticGeneration(**_mapping(semantic)),  # type: ignore[arg-type]
                **policy,  # type: ignore[arg-type]
            ),
        )
    except (KeyError, TypeError) as error:
        raise _binding_drift(["schema_version"]) from error
    except DomainError as error:
        if error.reason is Reason.BINDING_DRIFT:
            raise
        raise _binding_drift([error.metadata["field"].removeprefix("policy.")]) from error


def check_no_drift(stored: SessionBinding, given: SessionBinding) -> None:
    """Raises: BINDING_DRIFT with every field that differs, for example `max_results` or `semantic_generation.model`."""
    held, offered = _flat(stored.canonical()), _flat(given.canonical())
    drifted = sorted(name for name in held.keys() | offered.keys() if held.get(name) != offered.get(name))
    if drifted:
        raise _binding_drift(drifted)


def check_digest(stored: SessionBinding, given: str) -> None:
    """Raises: BINDING_DRIFT if `given` is not the stored binding's digest; which field differs cannot be told."""
    if stored.digest() != given:
        raise _binding_drift(["digest"])


class SessionState(IntEnum):
    """Numbers equal the contract's and the stores'."""

    OPEN = 1
    CLOSED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A stored session. `binding_version` counts rebinds from 1; times are the server's.

    `request_digest` is over what the opener asked for before defaults were filled in: an equal request gets this
    session again, also from a server whose defaults have changed since.
    """

    session_id: str
    binding: SessionBinding
    binding_version: int
    request_digest: str
    state: SessionState
    opened_by: str
    opened_at: datetime
    rebound_at: datetime | None = None
    closed_at: datetime | None = None

    def require_open(self) -> None:
        """Raises: SESSION_CLOSED."""
        if self.state is SessionState.CLOSED:
            raise DomainError(Reason.SESSION_CLOSED, f"session {self.session_id} is closed", session_id=self.session_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingRecord:
    """One row of a session's audit trail: which binding it got, when and by whom."""

    session_id: str
    binding_version: int
    binding: SessionBinding
    bound_at: datetime
    bound_by: str


class RunState(IntEnum):
    """Numbers equal the contract's and the stores'. Only an OPEN run takes admissions."""

    OPEN = 1
    ENDED = 2
    TAKEN_OVER = 3
    IDLE_ENDED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One incarnation of a run id inside a session; `context_id` is the latest one that was handed out.

    `sequence` counts contexts from 0. `host_instance` is minted once per client process.
    """

    session_id: str
    run_id: str
    incarnation: str
    host_instance: str
    state: RunState
    sequence: int
    context_id: str
    begun_by: str
    opened_at: datetime
    active_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where a context id comes from: the assembly number `sequence` of one run incarnation."""

    context_id: str
    session_id: str
    run_id: str
    incarnation: str
    sequence: int

    @classmethod
    def of(cls, session_id: str, run_id: str, incarnation: str, sequence: int) -> Context:
        """The same four parts always give the same context id; another incarnation never does."""
        context_id = digest_hex(
            "context/v1", session_id.encode(), run_id.encode(), incarnation.encode(), str(sequence).encode()
        )
        return cls(
            context_id=context_id,
            session_id=session_id,
            run_id=run_id,
            incarnation=incarnation,
            sequence=sequence,
        )

    def next(self) -> Context:
        return Context.of(self.session_id, self.run_id, self.incarnation, self.sequence + 1)


def session_not_found(session_id: str) -> DomainError:
    return DomainError(Reason.SESSION_NOT_FOUND, f"session {session_id} does not exist", session_id=session_id)


def run_not_found(**metadata: str) -> DomainError:
    return DomainError(Reason.RUN_NOT_FOUND, "no such run or context in this session", **metadata)


def run_ended(run: Run) -> DomainError:
    return DomainError(
        Reason.RUN_ENDED,
        f"this incarnation of run {run.run_id} has ended",
        run_id=run.run_id,
        incarnation=run.incarnation,
    )


NO_PROVIDER: Final = "this server has no embedding provider"


def semantic_not_configured(problem: str = NO_PROVIDER) -> DomainError:
    """SEMANTIC_UNAVAILABLE where there is no generation, because of `problem`: no repeat of the call can succeed."""
    return DomainError(
        Reason.SEMANTIC_UNAVAILABLE,
        f"semantic recall is not possible: {problem}",
        cause="SEMANTIC_NOT_CONFIGURED",
    )


def _binding_drift(names: list[str]) -> DomainError:
    return DomainError(
        Reason.BINDING_DRIFT, f"the session is bound otherwise: {', '.join(names)}", fields=",".join(names)
    )


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    if not isinstance(value, Mapping):
        raise TypeError("not an object")
    return value


def _flat(value: Mapping[str, JsonValue], prefix: str = "") -> dict[str, JsonValue]:
    result: dict[str, JsonValue] = {}
    for name, item in value.items():
        if isinstance(item, Mapping):
            result.update(_flat(item, f"{prefix}{name}."))
        else:
            result[f"{prefix}{name}"] = item
    return result
