"""Times and spans of time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from durable_memory.domain.canonical import EPOCH

_DAY_SECONDS: Final = 86_400


def encode_time(value: datetime) -> Timestamp:
    """Exactly, to the microsecond."""
    since = value - EPOCH
    return Timestamp(seconds=since.days * _DAY_SECONDS + since.seconds, nanos=since.microseconds * 1_000)


def set_time(target: Timestamp, value: datetime) -> None:
    """`encode_time` into a message that is there already, which saves making and copying one."""
    since = value - EPOCH
    target.seconds = since.days * _DAY_SECONDS + since.seconds
    target.nanos = since.microseconds * 1_000


def encode_optional_time(value: datetime | None) -> Timestamp | None:
    return None if value is None else encode_time(value)


def encode_duration(value: timedelta) -> Duration:
    """Exactly, to the microsecond; never negative, as nothing here measures backwards."""
    if value.days < 0:
        return Duration()
    return Duration(seconds=value.days * _DAY_SECONDS + value.seconds, nanos=value.microseconds * 1_000)
