"""When a change set happened, and whether the times that it brings keep their order. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from durable_memory.domain.change_set import ChangeSet, Create, Revise, evidence_of
from durable_memory.domain.errors import invalid_field
from durable_memory.domain.limits import CLOCK_SKEW_MAX
from durable_memory.domain.node import NodeRevision


def settled_time(change_set: ChangeSet, nodes: Mapping[str, NodeRevision], now: datetime) -> datetime:
    """The caller's time if it keeps the order, else the latest of now, what the set touches and what it brings.

    Raises: INVALID_FIELD (field, given, bound).
    """
    bound = now + CLOCK_SKEW_MAX
    touched = [nodes[o.node_id].updated_at for o in change_set.operations if o.node_id in nodes]
    offered = list(_offered_times(change_set))
    for field, time in offered:
        _check_not_after(field, time, bound)
    explicit = change_set.occurred_at
    if explicit is None:
        return max([now, *touched, *(time for _, time in offered)])
    _check_not_after("occurred_at", explicit, bound)
    for field, time in offered:
        _check_not_after(field, time, explicit)
    if touched and max(touched) > explicit:
        raise invalid_field(
            "occurred_at",
            "lies before the update time of a node that the change set touches",
            given=explicit.isoformat(),
            bound=max(touched).isoformat(),
        )
    return explicit


def _offered_times(change_set: ChangeSet) -> Iterator[tuple[str, datetime]]:
    """Every explicit time, with the path that the contract has for it."""
    for index, operation in enumerate(change_set.operations):
        path = f"operations[{index}].{operation.name}"
        inner = f"{path}.memory" if isinstance(operation, Create) else path
        for position, item in enumerate(evidence_of(operation)):
            if item.occurred_at is not None:
                yield f"{inner}.evidence[{position}].occurred_at", item.occurred_at
        if isinstance(operation, Create):
            if operation.draft.occurred_at is not None:
                yield f"{inner}.occurred_at", operation.draft.occurred_at
            if operation.created_at is not None:
                yield f"{path}.created_at", operation.created_at
        elif isinstance(operation, Revise) and operation.occurred_at is not None:
            yield f"{path}.occurred_at", operation.occurred_at


def _check_not_after(field: str, time: datetime, bound: datetime) -> None:
    if time > bound:
        raise invalid_field(field, "is later than it may be", given=time.isoformat(), bound=bound.isoformat())
