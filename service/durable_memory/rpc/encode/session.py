"""Sessions, their bindings, and runs."""

from __future__ import annotations

from durable_memory.app.sessions import PolicyDefaults
from durable_memory.domain.session import (
    DEFAULT_CANDIDATE_LIMIT,
    DEFAULT_MIN_SIMILARITY,
    Run,
    SemanticGeneration,
    Session,
    SessionBinding,
)
from durable_memory.rpc.encode.enums import number
from durable_memory.rpc.encode.node import encode_namespace
from durable_memory.rpc.encode.times import encode_optional_time, encode_time
from durablememory.v1 import session_pb2 as pb


def encode_session(session: Session) -> pb.Session:
    return pb.Session(
        session_id=session.session_id,
        binding=encode_binding(session.binding),
        binding_digest=session.binding.digest(),
        state=number(session.state),
        binding_version=session.binding_version,
        opened_by=session.opened_by,
        opened_at=encode_time(session.opened_at),
        rebound_at=encode_optional_time(session.rebound_at),
        closed_at=encode_optional_time(session.closed_at),
    )


def encode_binding(binding: SessionBinding) -> pb.SessionBinding:
    policy = binding.policy
    return pb.SessionBinding(
        schema_version=binding.schema_version,
        namespace=encode_namespace(binding.namespace),
        mode=number(policy.mode),
        max_results=policy.max_results,
        min_score=policy.min_score,
        min_relative_score=policy.min_relative_score,
        related_lookups=policy.related_lookups,
        lexical_profile=policy.lexical_profile,
        fusion_profile=policy.fusion_profile,
        semantic_generation=None if policy.semantic is None else encode_generation(policy.semantic),
    )


def encode_generation(generation: SemanticGeneration) -> pb.SemanticGeneration:
    return pb.SemanticGeneration(
        authority_digest=generation.authority_digest,
        provider=generation.provider,
        model=generation.model,
        model_revision=generation.model_revision,
        dimension=generation.dimension,
        normalization=f"VECTOR_NORMALIZATION_{generation.normalization}",
        metric=f"VECTOR_METRIC_{generation.metric}",
        candidate_limit=generation.candidate_limit,
        min_similarity=generation.min_similarity,
    )


def encode_default_policy(defaults: PolicyDefaults) -> pb.RecallPolicy:
    """What an empty policy stands for. Without a generation there is nothing to say of the semantic branch."""
    generation = defaults.current.known
    return pb.RecallPolicy(
        mode=number(defaults.mode),
        max_results=defaults.max_results,
        min_score=defaults.min_score,
        min_relative_score=defaults.min_relative_score,
        related_lookups=defaults.related_lookups,
        lexical_profile=defaults.lexical_profile,
        fusion_profile=defaults.fusion_profile,
        semantic=(
            None
            if generation is None
            else pb.SemanticPolicy(
                authority_digest=generation.authority_digest,
                candidate_limit=DEFAULT_CANDIDATE_LIMIT,
                min_similarity=DEFAULT_MIN_SIMILARITY,
            )
        ),
    )


def encode_run(run: Run) -> pb.Run:
    return pb.Run(
        session_id=run.session_id,
        run_id=run.run_id,
        incarnation=run.incarnation,
        host_instance=run.host_instance,
        state=number(run.state),
        opened_at=encode_time(run.opened_at),
        active_at=encode_time(run.active_at),
        ended_at=encode_optional_time(run.ended_at),
        context_id=run.context_id,
        sequence=run.sequence,
        begun_by=run.begun_by,
    )
