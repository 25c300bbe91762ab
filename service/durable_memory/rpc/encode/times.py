"""Times and spans of time."""

from __future__ import annotations

from datetime import datetime, timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from durable_memory.domain.canonical import to_micros


def encode_time(value: datetime) -> Timestamp:
    """Exactly, to the microsecond."""
    seconds, micros = divmod(to_micros(value), 1_000_000)
    return Timestamp(seconds=seconds, nanos=micros * 1_000)


def encode_optional_time(value: datetime | None) -> Timestamp | None:
    return None if value is None else encode_time(value)


def encode_duration(value: timedelta) -> Duration:
    """Exactly, to the microsecond; never negative, as nothing here measures backwards."""
    micros = max(value // timedelta(microseconds=1), 0)
    return Duration(seconds=micros // 1_000_000, nanos=micros % 1_000_000 * 1_000)
