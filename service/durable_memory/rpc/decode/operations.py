"""Change sets: operations as callers state them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from durable_memory.domain.change_set import (
    Activate,
    AddRelation,
    Corroborate,
    Create,
    Operation,
    RemoveRelation,
    Revise,
    ReviseMode,
    SetStatus,
)
from durable_memory.domain.errors import invalid_field, limit_exceeded
from durable_memory.domain.limits import (
    CHANGE_SET_MAX_OPERATIONS,
    EVIDENCE_MAX_COUNT,
    RELATIONS_MAX_COUNT,
    SERVER_LABEL_PREFIX,
)
from durable_memory.domain.node import NodeStatus
from durable_memory.domain.text import check_name, check_unit_interval
from durable_memory.rpc.decode.evidence import decode_evidence
from durable_memory.rpc.decode.fields import at_most, enum, label_keys, labels, optional_name, optional_time, revision
from durable_memory.rpc.decode.memory import (
    decode_author,
    decode_content,
    decode_draft,
    decode_relation,
    decode_surroundings,
)
from durablememory.v1 import change_set_pb2 as pb
from durablememory.v1.memory_service_pb2 import ReviseMemoryRequest

MintId = Callable[[], str]


def decode_operations(given: Sequence[pb.Operation], mint_id: MintId) -> tuple[Operation, ...]:
    """The operations of a change set; nodes to be created without an id get a minted one.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    if not given:
        raise invalid_field("operations", "is empty")
    if len(given) > CHANGE_SET_MAX_OPERATIONS:
        raise limit_exceeded("operations", CHANGE_SET_MAX_OPERATIONS, len(given), "items")
    return tuple(_operation(f"operations[{index}]", item, mint_id) for index, item in enumerate(given))


def decode_changes(
    field: str,
    given: pb.ReviseOperation | ReviseMemoryRequest,
    *,
    node_id: str,
    expected_revision: int,
    mode: ReviseMode,
    most_evidence: int,
    least_evidence: int,
) -> Revise:
    """What a revision changes; ReviseOperation and ReviseMemoryRequest state it in the same words.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    set_labels = labels(f"{field}set_labels", given.set_labels)
    remove_labels = frozenset(label_keys(f"{field}remove_labels", given.remove_labels))
    if not remove_labels.isdisjoint(set_labels):
        raise invalid_field(f"{field}remove_labels", "has a key that set_labels has too")
    if any(key.startswith(SERVER_LABEL_PREFIX) for key in remove_labels):
        problem = f"has a key that starts with {SERVER_LABEL_PREFIX}, which only the server removes"
        raise invalid_field(f"{field}remove_labels", problem)
    return Revise(
        node_id=node_id,
        expected_revision=expected_revision,
        mode=mode,
        content=decode_content(f"{field}content", given.content) if given.HasField("content") else None,
        surroundings=(
            decode_surroundings(f"{field}surroundings.texts", given.surroundings.texts)
            if given.HasField("surroundings")
            else None
        ),
        author=decode_author(f"{field}author", given.author) if given.HasField("author") else None,
        occurred_at=optional_time(field, given, "occurred_at"),
        confidence=_annotation(field, given, "confidence"),
        importance=_annotation(field, given, "importance"),
        set_labels=set_labels,
        remove_labels=remove_labels,
        evidence=decode_evidence(f"{field}evidence", given.evidence, least=least_evidence, most=most_evidence),
    )


def _operation(field: str, given: pb.Operation, mint_id: MintId) -> Operation:
    case = given.WhichOneof("operation")
    if case is None:
        raise invalid_field(f"{field}.operation", "is missing")
    field = f"{field}.{case}"
    if case == "create":
        return _create(field, given.create, mint_id)
    return _ON_EXISTING[case](field, getattr(given, case))


def _create(field: str, given: pb.CreateOperation, mint_id: MintId) -> Create:
    if not given.HasField("memory"):
        raise invalid_field(f"{field}.memory", "is missing")
    at_most(f"{field}.relations", given.relations, RELATIONS_MAX_COUNT)
    relations = tuple(
        decode_relation(f"{field}.relations[{index}]", relation) for index, relation in enumerate(given.relations)
    )
    node_id = optional_name(f"{field}.", given, "node_id")
    return Create(
        node_id=mint_id() if node_id is None else node_id,
        status=enum(f"{field}.status", NodeStatus, given.status) if given.HasField("status") else NodeStatus.CANDIDATE,
        draft=decode_draft(f"{field}.memory", given.memory, relations=relations),
        created_at=optional_time(f"{field}.", given, "created_at"),
    )


def _activate(field: str, given: pb.ActivateOperation) -> Operation:
    return Activate(
        node_id=check_name(f"{field}.node_id", given.node_id),
        expected_revision=revision(f"{field}.expected_revision", given.expected_revision),
        evidence=decode_evidence(f"{field}.evidence", given.evidence),
    )


def _corroborate(field: str, given: pb.CorroborateOperation) -> Operation:
    return Corroborate(
        node_id=check_name(f"{field}.node_id", given.node_id),
        expected_revision=revision(f"{field}.expected_revision", given.expected_revision),
        evidence=decode_evidence(f"{field}.evidence", given.evidence, least=1),
    )


def _revise(field: str, given: pb.ReviseOperation) -> Operation:
    return decode_changes(
        f"{field}.",
        given,
        node_id=check_name(f"{field}.node_id", given.node_id),
        expected_revision=revision(f"{field}.expected_revision", given.expected_revision),
        mode=enum(f"{field}.kind", ReviseMode, given.kind),
        least_evidence=1,
        most_evidence=EVIDENCE_MAX_COUNT,
    )


def _add_relation(field: str, given: pb.AddRelationOperation) -> Operation:
    return AddRelation(
        node_id=check_name(f"{field}.node_id", given.node_id),
        expected_revision=revision(f"{field}.expected_revision", given.expected_revision),
        relation=decode_relation(f"{field}.relation", given.relation),
    )


def _remove_relation(field: str, given: pb.RemoveRelationOperation) -> Operation:
    return RemoveRelation(
        node_id=check_name(f"{field}.node_id", given.node_id),
        expected_revision=revision(f"{field}.expected_revision", given.expected_revision),
        relation=decode_relation(f"{field}.relation", given.relation),
    )


def _set_status(field: str, given: pb.SetStatusOperation) -> Operation:
    return SetStatus(
        node_id=check_name(f"{field}.node_id", given.node_id),
        expected_revision=revision(f"{field}.expected_revision", given.expected_revision),
        status=enum(f"{field}.status", NodeStatus, given.status),
        evidence=decode_evidence(f"{field}.evidence", given.evidence),
    )


def _annotation(field: str, given: pb.ReviseOperation | ReviseMemoryRequest, name: str) -> float | None:
    return check_unit_interval(f"{field}{name}", getattr(given, name)) if given.HasField(name) else None


_ON_EXISTING: Final[dict[str, Callable[..., Operation]]] = {
    "activate": _activate,
    "corroborate": _corroborate,
    "revise": _revise,
    "add_relation": _add_relation,
    "remove_relation": _remove_relation,
    "set_status": _set_status,
}
