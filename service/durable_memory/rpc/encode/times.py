"""Times and spans of time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from durable_memory.domain.canonical import EPOCH

_DAY_SECONDS: Final = 86_400
_NO_TIME: Final = timedelta()


def encode_time(value: datetime) -> Timestamp:
    """Exactly, to the microsecond."""
    since = value - EPOCH
    return Timestamp(seconds=since.days * _DAY_SECONDS + since.seconds, nanos=since.microseconds * 1_000)


def encode_optional_time(value: datetime | None) -> Timestamp | None:
    return None if value is None else encode_time(value)


def encode_duration(value: timedelta) -> Duration:
    """Exactly, to the microsecond; never negative, as nothing here measures backwards."""
    duration = Duration()
    set_duration(duration, value)
    return duration


def set_duration(target: Duration, value: timedelta) -> None:
    """`encode_duration` into a message that is there already, which saves making and copying one."""
    exact = max(value, _NO_TIME)
    target.seconds = exact.days * _DAY_SECONDS + exact.seconds
    target.nanos = exact.microseconds * 1_000
