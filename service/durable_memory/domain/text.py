"""What text may enter the kernel, and in which form it is kept."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

from durable_memory.domain.errors import invalid_field, limit_exceeded
from durable_memory.domain.limits import NAME_MAX_BYTES


def _encoded_size(field: str, value: str) -> int:
    try:
        return len(value.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise invalid_field(field, "has a lone surrogate", position=error.start) from None


def check_text(field: str, value: str, max_bytes: int, *, blank_allowed: bool = False) -> str:
    """`value` in NFC, refused if it has NUL or a lone surrogate, is blank, or is over `max_bytes` of UTF-8.

    White space and line ends stay as they are: a digest names exactly the text that was given, up to NFC.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    if _encoded_size(field, value) > max_bytes:
        raise limit_exceeded(field, max_bytes, _encoded_size(field, value), "bytes")
    if "\0" in value:
        raise invalid_field(field, "has a NUL character", position=value.index("\0"))
    if not blank_allowed and not value.strip():
        raise invalid_field(field, "is blank")
    if value.isascii():
        return value
    normalized = unicodedata.normalize("NFC", value)
    size = len(normalized.encode("utf-8"))
    if size > max_bytes:
        raise limit_exceeded(field, max_bytes, size, "bytes")
    return normalized


def check_name(field: str, value: str, max_bytes: int = NAME_MAX_BYTES) -> str:
    """An identifier: 1..`max_bytes` bytes of UTF-8, not blank, no control characters, kept byte for byte.

    Nothing is trimmed, folded or normalised: `A` and `a` are two names.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    if not value.isprintable():
        for position, character in enumerate(value):
            if unicodedata.category(character) in ("Cc", "Cs"):
                kind = "a lone surrogate" if "\ud800" <= character <= "\udfff" else "a control character"
                raise invalid_field(field, f"has {kind}", position=position)
    if not value.strip():
        raise invalid_field(field, "is blank" if value else "is missing")
    size = len(value.encode("utf-8"))
    if size > max_bytes:
        raise limit_exceeded(field, max_bytes, size, "bytes")
    return value


def check_unit_interval(field: str, value: float) -> float:
    """A finite number in 0..1.

    Raises: INVALID_FIELD.
    """
    if not 0.0 <= value <= 1.0:  # also false for NaN
        raise invalid_field(field, "is not a finite number from 0 to 1")
    return value + 0.0  # -0.0 becomes 0.0, so that equal values have one canonical form


def check_time(field: str, value: datetime) -> datetime:
    """An aware time, in UTC.

    Raises: INVALID_FIELD.
    """
    if value.tzinfo is None:
        raise invalid_field(field, "has no time zone")
    return value.astimezone(UTC)
