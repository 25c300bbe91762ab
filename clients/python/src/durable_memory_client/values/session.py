"""Sessions and runs, what they are bound to, and what a server can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypedDict

from google.protobuf.descriptor import FieldDescriptor

from durable_memory_client.values.enums import (
    RecallMode,
    RunState,
    SessionState,
    VectorMetric,
    VectorNormalization,
)
from durable_memory_client.values.namespace import Namespace
from durable_memory_client.values.times import time_of, to_datetime, to_timedelta
from durable_memory_client.values.wire import number_of, optional_number, stated
from durablememory.v1 import session_pb2, session_service_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticPolicy:
    """What is asked of the semantic branch; what is None takes the server's default."""

    authority_digest: str | None = None
    candidate_limit: int | None = None
    min_similarity: float | None = None

    def to_proto(self) -> session_pb2.SemanticPolicy:
        return stated(
            session_pb2.SemanticPolicy,
            authority_digest=self.authority_digest,
            candidate_limit=self.candidate_limit,
            min_similarity=self.min_similarity,
        )


class PolicyFields(TypedDict, total=False):
    """How to recall, as keyword arguments; what is left out takes the server's default, once.

    `max_results`: 1..100. `min_score`: the lowest lexical score, 0..1. `min_relative_score`: the lowest share of the
    best lexical score, 0..1. `related_lookups`: how many RELATED_TO targets to read, 0..64.
    """

    mode: RecallMode | None
    max_results: int | None
    min_score: float | None
    min_relative_score: float | None
    related_lookups: int | None
    lexical_profile: str | None
    fusion_profile: str | None
    semantic: SemanticPolicy | None


def policy_to_proto(policy: PolicyFields) -> session_pb2.RecallPolicy:
    """Raises: ValueError for a mode that there is not, TypeError for another `semantic` than a SemanticPolicy."""
    mode, semantic = policy.get("mode"), policy.get("semantic")
    if semantic is not None and not isinstance(semantic, SemanticPolicy):
        raise TypeError(
            "semantic is SemanticPolicy(authority_digest=..., candidate_limit=..., min_similarity=...), "
            f"not {type(semantic).__name__}"
        )
    return stated(
        session_pb2.RecallPolicy,
        mode=optional_number(RecallMode, mode, "mode"),
        max_results=policy.get("max_results"),
        min_score=policy.get("min_score"),
        min_relative_score=policy.get("min_relative_score"),
        related_lookups=policy.get("related_lookups"),
        lexical_profile=policy.get("lexical_profile"),
        fusion_profile=policy.get("fusion_profile"),
        semantic=None if semantic is None else semantic.to_proto(),
    )


def policy_of(message: session_pb2.RecallPolicy) -> PolicyFields:
    """The stated fields of a policy."""
    policy: PolicyFields = {}
    if message.HasField("mode"):
        policy["mode"] = RecallMode.from_number(message.mode)
    if message.HasField("max_results"):
        policy["max_results"] = message.max_results
    if message.HasField("min_score"):
        policy["min_score"] = message.min_score
    if message.HasField("min_relative_score"):
        policy["min_relative_score"] = message.min_relative_score
    if message.HasField("related_lookups"):
        policy["related_lookups"] = message.related_lookups
    if message.HasField("lexical_profile"):
        policy["lexical_profile"] = message.lexical_profile
    if message.HasField("fusion_profile"):
        policy["fusion_profile"] = message.fusion_profile
    if message.HasField("semantic"):
        asked = message.semantic
        policy["semantic"] = SemanticPolicy(
            authority_digest=asked.authority_digest if asked.HasField("authority_digest") else None,
            candidate_limit=asked.candidate_limit if asked.HasField("candidate_limit") else None,
            min_similarity=asked.min_similarity if asked.HasField("min_similarity") else None,
        )
    return policy


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticGeneration:
    """Which vectors a session searches, and the bounds of the search."""

    authority_digest: str
    provider: str
    model: str
    model_revision: str
    dimension: int
    normalization: VectorNormalization
    metric: VectorMetric
    candidate_limit: int
    min_similarity: float

    @classmethod
    def from_proto(cls, message: session_pb2.SemanticGeneration) -> SemanticGeneration:
        return cls(
            authority_digest=message.authority_digest,
            provider=message.provider,
            model=message.model,
            model_revision=message.model_revision,
            dimension=message.dimension,
            normalization=VectorNormalization.from_number(message.normalization),
            metric=VectorMetric.from_number(message.metric),
            candidate_limit=message.candidate_limit,
            min_similarity=message.min_similarity,
        )

    def to_proto(self) -> session_pb2.SemanticGeneration:
        return stated(
            session_pb2.SemanticGeneration,
            authority_digest=self.authority_digest,
            provider=self.provider,
            model=self.model,
            model_revision=self.model_revision,
            dimension=self.dimension,
            normalization=number_of(VectorNormalization, self.normalization, "normalization"),
            metric=number_of(VectorMetric, self.metric, "metric"),
            candidate_limit=self.candidate_limit,
            min_similarity=self.min_similarity,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBinding:
    """Everything that decides what a session recalls and how, with no default left open. A plain value to keep.

    A binding that a newer server wrote may have fields that this version does not know. They are not here, so such
    a binding is resumed by its digest (`Session.binding_digest`).
    """

    schema_version: int
    namespace: Namespace
    mode: RecallMode
    max_results: int
    min_score: float
    min_relative_score: float
    related_lookups: int
    lexical_profile: str
    fusion_profile: str
    semantic_generation: SemanticGeneration | None

    @classmethod
    def from_proto(cls, message: session_pb2.SessionBinding) -> SessionBinding:
        semantic = message.HasField("semantic_generation")
        return cls(
            schema_version=message.schema_version,
            namespace=Namespace.from_proto(message.namespace),
            mode=RecallMode.from_number(message.mode),
            max_results=message.max_results,
            min_score=message.min_score,
            min_relative_score=message.min_relative_score,
            related_lookups=message.related_lookups,
            lexical_profile=message.lexical_profile,
            fusion_profile=message.fusion_profile,
            semantic_generation=SemanticGeneration.from_proto(message.semantic_generation) if semantic else None,
        )

    def to_proto(self) -> session_pb2.SessionBinding:
        return stated(
            session_pb2.SessionBinding,
            schema_version=self.schema_version,
            namespace=self.namespace.to_proto(),
            mode=number_of(RecallMode, self.mode, "mode"),
            max_results=self.max_results,
            min_score=self.min_score,
            min_relative_score=self.min_relative_score,
            related_lookups=self.related_lookups,
            lexical_profile=self.lexical_profile,
            fusion_profile=self.fusion_profile,
            semantic_generation=None if self.semantic_generation is None else self.semantic_generation.to_proto(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session as the service has it. `binding_digest` is enough to resume it with."""

    session_id: str
    binding: SessionBinding
    binding_digest: str
    state: SessionState
    binding_version: int
    opened_by: str
    opened_at: datetime
    rebound_at: datetime | None
    closed_at: datetime | None

    @classmethod
    def from_proto(cls, message: session_pb2.Session) -> Session:
        return cls(
            session_id=message.session_id,
            binding=SessionBinding.from_proto(message.binding),
            binding_digest=message.binding_digest,
            state=SessionState.from_number(message.state),
            binding_version=message.binding_version,
            opened_by=message.opened_by,
            opened_at=to_datetime(message.opened_at),
            rebound_at=time_of(message, "rebound_at"),
            closed_at=time_of(message, "closed_at"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as the service has it: one incarnation of a run id. `context_id` is the next one to use."""

    session_id: str
    run_id: str
    incarnation: str
    host_instance: str
    state: RunState
    opened_at: datetime
    active_at: datetime
    ended_at: datetime | None
    context_id: str
    sequence: int
    begun_by: str

    @classmethod
    def from_proto(cls, message: session_pb2.Run) -> Run:
        return cls(
            session_id=message.session_id,
            run_id=message.run_id,
            incarnation=message.incarnation,
            host_instance=message.host_instance,
            state=RunState.from_number(message.state),
            opened_at=to_datetime(message.opened_at),
            active_at=to_datetime(message.active_at),
            ended_at=time_of(message, "ended_at"),
            context_id=message.context_id,
            sequence=message.sequence,
            begun_by=message.begun_by,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What a server is and can do. `limits` are the contract's ServerLimits by field name."""

    version: str
    caller: str
    lexical_profiles: tuple[str, ...]
    fusion_profiles: tuple[str, ...]
    semantic_generations: tuple[SemanticGeneration, ...]
    recall_modes: tuple[RecallMode, ...]
    default_policy: PolicyFields = field(hash=False)
    limits: Mapping[str, int | timedelta] = field(hash=False)

    @classmethod
    def from_proto(cls, message: session_service_pb2.GetServerInfoResponse) -> ServerInfo:
        return cls(
            version=message.version,
            caller=message.caller,
            lexical_profiles=tuple(message.lexical_profiles),
            fusion_profiles=tuple(message.fusion_profiles),
            semantic_generations=tuple(map(SemanticGeneration.from_proto, message.semantic_generations)),
            recall_modes=tuple(map(RecallMode.from_number, message.recall_modes)),
            default_policy=policy_of(message.default_policy),
            limits=_limits(message.limits),
        )


def _limits(message: session_service_pb2.ServerLimits) -> dict[str, int | timedelta]:
    limits: dict[str, int | timedelta] = {}
    for limit in message.DESCRIPTOR.fields:
        value = getattr(message, limit.name)
        limits[limit.name] = to_timedelta(value) if limit.type == FieldDescriptor.TYPE_MESSAGE else value
    return limits
