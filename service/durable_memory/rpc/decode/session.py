"""Recall policies as they are asked for, and bindings as they were handed out."""

from __future__ import annotations

from typing import Final

from google.protobuf.message import Message

from durable_memory.app.sessions import PolicyRequest
from durable_memory.domain.errors import invalid_field
from durable_memory.domain.limits import MAX_RESULTS_MAX, RELATED_LOOKUPS_MAX
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.session import FUSION_PROFILES, RecallMode, RecallPolicy, SemanticGeneration, SessionBinding
from durable_memory.domain.text import check_name, check_unit_interval
from durable_memory.rpc.decode.fields import enum, hex_digest, no_unknown_fields
from durablememory.v1 import session_pb2 as pb

CANDIDATE_LIMIT_MAX: Final = 1_000


def decode_policy(given: pb.RecallPolicy) -> PolicyRequest:
    """What a caller asks for; what it leaves out is settled later. An unknown wish is refused, not passed over.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    no_unknown_fields("policy", given)
    no_unknown_fields("policy.semantic", given.semantic)
    semantic = given.semantic
    return PolicyRequest(
        mode=enum("policy.mode", RecallMode, given.mode) if given.HasField("mode") else None,
        max_results=_optional_bounded(given, "max_results", 1, MAX_RESULTS_MAX),
        min_score=_optional_share(given, "min_score"),
        min_relative_score=_optional_share(given, "min_relative_score"),
        related_lookups=_optional_bounded(given, "related_lookups", 0, RELATED_LOOKUPS_MAX),
        lexical_profile=_optional_profile(given, "lexical_profile"),
        fusion_profile=_optional_profile(given, "fusion_profile"),
        authority_digest=(
            hex_digest("policy.semantic.authority_digest", semantic.authority_digest)
            if semantic.HasField("authority_digest")
            else None
        ),
        candidate_limit=(
            _bounded("policy.semantic.candidate_limit", semantic.candidate_limit, 1, CANDIDATE_LIMIT_MAX)
            if semantic.HasField("candidate_limit")
            else None
        ),
        min_similarity=(
            _similarity("policy.semantic.min_similarity", semantic.min_similarity)
            if semantic.HasField("min_similarity")
            else None
        ),
    )


def decode_binding(field: str, given: pb.SessionBinding) -> SessionBinding:
    """A whole binding, every field stated, as a server has returned or exported it.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    no_unknown_fields(field, given)
    if given.schema_version < 1:
        raise invalid_field(f"{field}.schema_version", "is not a version: they count from 1")
    if given.fusion_profile not in FUSION_PROFILES:
        raise invalid_field(f"{field}.fusion_profile", "is not a profile of this server")
    return SessionBinding(
        schema_version=given.schema_version,
        namespace=Namespace(
            check_name(f"{field}.namespace.tenant_id", given.namespace.tenant_id),
            check_name(f"{field}.namespace.principal_id", given.namespace.principal_id),
            check_name(f"{field}.namespace.scope_id", given.namespace.scope_id),
        ),
        policy=RecallPolicy(
            mode=enum(f"{field}.mode", RecallMode, given.mode),
            max_results=_bounded(f"{field}.max_results", given.max_results, 1, MAX_RESULTS_MAX),
            min_score=check_unit_interval(f"{field}.min_score", given.min_score),
            min_relative_score=check_unit_interval(f"{field}.min_relative_score", given.min_relative_score),
            related_lookups=_bounded(f"{field}.related_lookups", given.related_lookups, 0, RELATED_LOOKUPS_MAX),
            lexical_profile=check_name(f"{field}.lexical_profile", given.lexical_profile),
            fusion_profile=given.fusion_profile,
            semantic=(
                _generation(f"{field}.semantic_generation", given.semantic_generation)
                if given.HasField("semantic_generation")
                else None
            ),
        ),
    )


def _generation(field: str, given: pb.SemanticGeneration) -> SemanticGeneration:
    no_unknown_fields(field, given)
    return SemanticGeneration(
        authority_digest=hex_digest(f"{field}.authority_digest", given.authority_digest),
        provider=check_name(f"{field}.provider", given.provider),
        model=check_name(f"{field}.model", given.model),
        model_revision=check_name(f"{field}.model_revision", given.model_revision),
        dimension=_bounded(f"{field}.dimension", given.dimension, 1, 2**31 - 1),
        normalization=_word(f"{field}.normalization", _NORMALIZATIONS, given.normalization),
        metric=_word(f"{field}.metric", _METRICS, given.metric),
        candidate_limit=_bounded(f"{field}.candidate_limit", given.candidate_limit, 1, CANDIDATE_LIMIT_MAX),
        min_similarity=_similarity(f"{field}.min_similarity", given.min_similarity),
    )


_NORMALIZATIONS: Final[dict[int, str]] = {
    pb.VECTOR_NORMALIZATION_NONE: "NONE",
    pb.VECTOR_NORMALIZATION_L2: "L2",
}
_METRICS: Final[dict[int, str]] = {pb.VECTOR_METRIC_COSINE: "COSINE", pb.VECTOR_METRIC_DOT_PRODUCT: "DOT_PRODUCT"}


def _word(field: str, words: dict[int, str], number: int) -> str:
    word = words.get(number)
    if word is None:
        raise invalid_field(field, "is missing" if number == 0 else "has a value that this server does not know")
    return word


def _bounded(field: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise invalid_field(field, f"is not from {least} to {most}", given=value)
    return value


def _similarity(field: str, value: float) -> float:
    if not -1.0 <= value <= 1.0:  # also false for NaN
        raise invalid_field(field, "is not a finite number from -1 to 1")
    return value + 0.0  # -0.0 becomes 0.0, so that equal values have one canonical form


def _optional_bounded(given: Message, name: str, least: int, most: int) -> int | None:
    return _bounded(f"policy.{name}", getattr(given, name), least, most) if given.HasField(name) else None


def _optional_share(given: Message, name: str) -> float | None:
    return check_unit_interval(f"policy.{name}", getattr(given, name)) if given.HasField(name) else None


def _optional_profile(given: Message, name: str) -> str | None:
    return check_name(f"policy.{name}", getattr(given, name)) if given.HasField(name) else None
