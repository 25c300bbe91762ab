"""Times: aware datetimes in Python, timestamps and durations on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp


def to_timestamp(time: datetime | None, name: str) -> Timestamp | None:
    """The time on the wire; None stays absent.

    Raises: ValueError for a time without a zone, which would mean another moment on every machine.
    """
    if time is None:
        return None
    if time.utcoffset() is None:
        raise ValueError(f"{name} has no time zone; use datetime.now(UTC) or an aware datetime")
    timestamp = Timestamp()
    timestamp.FromDatetime(time)
    return timestamp


def time_of(message: Message, field: str) -> datetime | None:
    """The time in a field of a message, in UTC; None where the field is absent."""
    if not message.HasField(field):
        return None
    timestamp = getattr(message, field)
    assert isinstance(timestamp, Timestamp)
    return to_datetime(timestamp)


def to_datetime(timestamp: Timestamp) -> datetime:
    return timestamp.ToDatetime(tzinfo=UTC)


def to_duration(span: timedelta | None) -> Duration | None:
    """The span on the wire; None stays absent."""
    if span is None:
        return None
    duration = Duration()
    duration.FromTimedelta(span)
    return duration


def to_timedelta(duration: Duration) -> timedelta:
    return duration.ToTimedelta()
