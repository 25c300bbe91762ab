"""Memories as callers state them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from durable_memory.domain.change_set import NodeDraft
from durable_memory.domain.errors import invalid_field
from durable_memory.domain.limits import (
    AUTHOR_MAX_BYTES,
    CONTENT_MAX_BYTES,
    EVIDENCE_MAX_COUNT,
    SURROUNDING_MAX_BYTES,
    SURROUNDINGS_MAX_COUNT,
)
from durable_memory.domain.node import NodeKind, Relation, RelationKind
from durable_memory.domain.text import check_name, check_text, check_unit_interval
from durable_memory.rpc.decode.evidence import decode_evidence
from durable_memory.rpc.decode.fields import at_most, enum, labels, optional_time
from durablememory.v1 import node_pb2

_ANNOTATION_DEFAULT: Final = 0.5


def decode_draft(
    field: str,
    given: node_pb2.MemoryDraft,
    *,
    relations: tuple[Relation, ...] = (),
    least_evidence: int = 0,
    most_evidence: int = EVIDENCE_MAX_COUNT,
) -> NodeDraft:
    """What a new memory is to say.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    return NodeDraft(
        kind=enum(f"{field}.kind", NodeKind, given.kind),
        content=decode_content(f"{field}.content", given.content),
        surroundings=decode_surroundings(f"{field}.surroundings", given.surroundings),
        author=decode_author(f"{field}.author", given.author),
        occurred_at=optional_time(f"{field}.", given, "occurred_at"),
        confidence=_annotation(field, given, "confidence"),
        importance=_annotation(field, given, "importance"),
        evidence=decode_evidence(f"{field}.evidence", given.evidence, least=least_evidence, most=most_evidence),
        relations=relations,
        labels=labels(f"{field}.labels", given.labels),
    )


def decode_content(field: str, given: str) -> str:
    """Raises: INVALID_FIELD, LIMIT_EXCEEDED."""
    if not given:
        raise invalid_field(field, "is missing")
    return check_text(field, given, CONTENT_MAX_BYTES)


def decode_surroundings(field: str, given: Sequence[str]) -> tuple[str, ...]:
    """Raises: INVALID_FIELD, LIMIT_EXCEEDED."""
    at_most(field, given, SURROUNDINGS_MAX_COUNT)
    return tuple(check_text(f"{field}[{index}]", text, SURROUNDING_MAX_BYTES) for index, text in enumerate(given))


def decode_author(field: str, given: str) -> str:
    """Raises: INVALID_FIELD, LIMIT_EXCEEDED."""
    return check_text(field, given, AUTHOR_MAX_BYTES, blank_allowed=True)


def decode_relation(field: str, given: node_pb2.Relation) -> Relation:
    """Raises: INVALID_FIELD, LIMIT_EXCEEDED."""
    return Relation(
        enum(f"{field}.kind", RelationKind, given.kind),
        check_name(f"{field}.node_id", given.node_id),
    )


def _annotation(field: str, given: node_pb2.MemoryDraft, name: str) -> float:
    if not given.HasField(name):
        return _ANNOTATION_DEFAULT
    return check_unit_interval(f"{field}.{name}", getattr(given, name))
