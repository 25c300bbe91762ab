"""Canonical bytes and digests: RFC 8785 JSON and domain-separated SHA-256.

A digest's domain names what is hashed and the version of its form, so that the same bytes in another role never
have the same digest, and a later form can live beside this one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import rfc8785

JsonValue = str | int | float | bool | None | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
JsonObject = Mapping[str, JsonValue]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

INTEGER_MAX: Final = 2**53 - 1
"""The largest integer that every reader of JSON reads exactly, so the largest one with a canonical form."""


def canonical_json(value: JsonValue) -> bytes:
    """The RFC 8785 form of `value`.

    Raises: ValueError for what has none: an integer beyond +-`INTEGER_MAX`, a number that is none.
    """
    return rfc8785.dumps(value)


def digest_bytes(domain: str, *parts: bytes) -> bytes:
    """SHA-256 over the domain and the parts, each with its length before it, so that no two lists collide."""
    hasher = hashlib.sha256()
    for part in (f"durablememory.dev/{domain}".encode(), *parts):
        hasher.update(len(part).to_bytes(8, "big"))
        hasher.update(part)
    return hasher.digest()


def digest_hex(domain: str, *parts: bytes) -> str:
    """`digest_bytes` as 64 lower-case hexadecimal digits."""
    return digest_bytes(domain, *parts).hex()


def digest_json(domain: str, value: JsonValue) -> str:
    """The hexadecimal digest of a value's canonical JSON."""
    return digest_hex(domain, canonical_json(value))


def to_micros(time: datetime) -> int:
    """Whole microseconds since 1970-01-01 UTC, exactly (never by way of a float)."""
    return (time - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The inverse of `to_micros`."""
    return EPOCH + micros * _MICROSECOND


def time_text(time: datetime) -> str:
    """RFC 3339 in UTC with six digits of fraction: the one form that times have in canonical JSON."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def parse_time_text(text: str) -> datetime:
    """The inverse of `time_text`."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
