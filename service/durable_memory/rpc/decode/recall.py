"""Queries and filters of recalls."""

from __future__ import annotations

from datetime import datetime

from durable_memory.domain.errors import invalid_field
from durable_memory.domain.lexical.query import ANY_DOCUMENT, LexicalFilter
from durable_memory.domain.limits import FILTER_MAX_VALUES
from durable_memory.domain.node import NodeKind
from durable_memory.domain.session import RecallMode
from durable_memory.rpc.decode.fields import enum, enums, label_filter, names, no_unknown_fields, optional_time
from durablememory.v1 import recall_pb2
from durablememory.v1.recall_service_pb2 import ActiveRecallRequest, ExplainRecallRequest, PreviewRecallRequest


def decode_filter(request: ActiveRecallRequest | PreviewRecallRequest | ExplainRecallRequest) -> LexicalFilter:
    """What narrows a recall. A part that this server does not know is refused: it would find more than was asked for.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    if not request.HasField("filter"):
        return ANY_DOCUMENT
    given = request.filter
    no_unknown_fields("filter", given)
    occurred_from, occurred_until = _range("filter.occurred", given, "occurred")
    updated_from, updated_until = _range("filter.updated", given, "updated")
    return LexicalFilter(
        kinds=enums("filter.kinds", NodeKind, given.kinds),
        labels=label_filter("filter.labels", given.labels),
        occurred_from=occurred_from,
        occurred_until=occurred_until,
        updated_from=updated_from,
        updated_until=updated_until,
        excluded_ids=frozenset(names("filter.excluded_node_ids", given.excluded_node_ids, FILTER_MAX_VALUES)),
    )


def decode_mode(request: ActiveRecallRequest | ExplainRecallRequest) -> RecallMode | None:
    """The mode of this call, `None` for the binding's.

    Raises: INVALID_FIELD.
    """
    return enum("mode", RecallMode, request.mode) if request.HasField("mode") else None


def _range(field: str, given: recall_pb2.RecallFilter, name: str) -> tuple[datetime | None, datetime | None]:
    stated: recall_pb2.TimeRange = getattr(given, name)
    no_unknown_fields(field, stated)
    start = optional_time(f"{field}.", stated, "start")
    end = optional_time(f"{field}.", stated, "end")
    if start is not None and end is not None and end <= start:
        raise invalid_field(
            f"{field}.end", "is not later than the start", given=end.isoformat(), bound=start.isoformat()
        )
    return start, end
