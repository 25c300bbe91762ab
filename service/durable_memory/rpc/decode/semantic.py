"""What is required of a refresh, and when the next ones are due."""

from __future__ import annotations

from typing import Final

from google.protobuf.message import Message

from durable_memory.app.semantic.service import SCHEDULE_SECONDS_MIN
from durable_memory.domain.errors import invalid_field
from durable_memory.ports.semantic_records import SCHEDULE_SECONDS_MAX
from durable_memory.ports.vector_index import Consistency
from durablememory.v1 import semantic_pb2

_NANOS: Final = 1_000_000_000
_CONSISTENCIES: Final[dict[int, Consistency]] = {
    semantic_pb2.INDEX_CONSISTENCY_INDEX_REVISION_CAS: Consistency.INDEX_REVISION_CAS,
    semantic_pb2.INDEX_CONSISTENCY_LAST_WRITER_WINS: Consistency.LAST_WRITER_WINS,
}


def decode_requirement(number: int) -> Consistency:
    """Raises: INVALID_FIELD."""
    consistency = _CONSISTENCIES.get(number)
    if consistency is None:
        raise invalid_field(
            "requirement", "is missing" if number == 0 else "has a value that this server does not know"
        )
    return consistency


def optional_schedule_seconds(request: Message, name: str) -> float | None:
    """The time `request.name` of a schedule in seconds, to the microsecond; `None` where it is absent.

    Raises: INVALID_FIELD.
    """
    if not request.HasField(name):
        return None
    given = getattr(request, name)
    # A duration with parts of two signs has no meaning, and one without a fraction of a second has no nanoseconds.
    seconds: float = given.seconds + given.nanos // 1_000 / 1_000_000
    if not 0 <= given.nanos < _NANOS or not SCHEDULE_SECONDS_MIN <= seconds <= SCHEDULE_SECONDS_MAX:
        raise invalid_field(name, "is not from 1 second to 366 days")
    return seconds
