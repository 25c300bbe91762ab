"""The single values that requests are made of: enums, times, names, texts, numbers, lists and labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from datetime import datetime
from enum import IntEnum
from typing import Final, TypeVar

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet

from durable_memory.domain.canonical import INTEGER_MAX, from_micros
from durable_memory.domain.errors import invalid_field, limit_exceeded
from durable_memory.domain.limits import (
    FILTER_MAX_VALUES,
    LABEL_KEY_MAX_BYTES,
    LABEL_VALUE_MAX_BYTES,
    LABELS_MAX_COUNT,
    PAGE_SIZE_DEFAULT,
    PAGE_SIZE_MAX,
    SERVER_LABEL_PREFIX,
)
from durable_memory.domain.text import check_name, check_text

_EnumT = TypeVar("_EnumT", bound=IntEnum)

_FIRST_SECOND: Final = -62_135_596_800  # 0001-01-01T00:00:00Z
_LAST_SECOND: Final = 253_402_300_799  # 9999-12-31T23:59:59Z
_NANOS: Final = 1_000_000_000
_HEX_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def enum(field: str, kind: type[_EnumT], number: int) -> _EnumT:
    """A stated enum value. UNSPECIFIED and numbers of a later contract are refused, never guessed.

    Raises: INVALID_FIELD.
    """
    try:
        return kind(number)
    except ValueError:
        raise invalid_field(
            field, "is missing" if number == 0 else "has a value that this server does not know"
        ) from None


def enums(field: str, kind: type[_EnumT], numbers: Sequence[int]) -> frozenset[_EnumT]:
    """A set of enum values for a filter; naming one twice is no error.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    at_most(field, numbers, FILTER_MAX_VALUES)
    return frozenset(enum(f"{field}[{index}]", kind, number) for index, number in enumerate(numbers))


def time(field: str, value: Timestamp) -> datetime:
    """A time of the years 1 to 9999, in UTC; what is finer than a microsecond is dropped.

    Raises: INVALID_FIELD.
    """
    if not _FIRST_SECOND <= value.seconds <= _LAST_SECOND or not 0 <= value.nanos < _NANOS:
        raise invalid_field(field, "is not a time of the years 1 to 9999")
    return from_micros(value.seconds * 1_000_000 + value.nanos // 1_000)


def optional_time(field: str, message: Message, name: str) -> datetime | None:
    """The time `message.name`, `None` where it is absent.

    Raises: INVALID_FIELD.
    """
    return time(f"{field}{name}", getattr(message, name)) if message.HasField(name) else None


def optional_name(field: str, message: Message, name: str) -> str | None:
    """The id `message.name`, `None` where it is absent; present and empty is refused.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    return check_name(f"{field}{name}", getattr(message, name)) if message.HasField(name) else None


def names(field: str, values: Sequence[str], limit: int) -> tuple[str, ...]:
    """At most `limit` ids.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    at_most(field, values, limit)
    return tuple(check_name(f"{field}[{index}]", value) for index, value in enumerate(values))


def distinct(field: str, values: Iterable[object]) -> None:
    """Raises: INVALID_FIELD at the first value that occurs for the second time."""
    seen = set()
    for index, value in enumerate(values):
        if value in seen:
            raise invalid_field(f"{field}[{index}]", "occurs twice")
        seen.add(value)


def revision(field: str, value: int) -> int:
    """The revision of a node, from 1.

    Raises: INVALID_FIELD.
    """
    if value < 1:
        raise invalid_field(field, "is missing" if value == 0 else "is not a revision: they count from 1")
    return _exact(field, value)


def namespace_revision(field: str, value: int) -> int:
    """The revision of a namespace, from 0.

    Raises: INVALID_FIELD.
    """
    if value < 0:
        raise invalid_field(field, "is negative")
    return _exact(field, value)


def _exact(field: str, value: int) -> int:
    """What is kept with a request has to have a canonical form, or the namespace could not be exported any more."""
    if value > INTEGER_MAX:
        raise invalid_field(field, f"is beyond {INTEGER_MAX}, the largest revision there can be")
    return value


def optional_namespace_revision(message: Message, name: str) -> int | None:
    """The namespace revision `message.name` of a request, `None` where it is absent.

    Raises: INVALID_FIELD.
    """
    return namespace_revision(name, getattr(message, name)) if message.HasField(name) else None


def hex_digest(field: str, value: str) -> str:
    """A SHA-256 as the contract writes it: 64 lower-case hexadecimal digits.

    Raises: INVALID_FIELD.
    """
    if not _HEX_DIGEST.fullmatch(value):
        raise invalid_field(field, "is not 64 lower-case hexadecimal digits" if value else "is missing")
    return value


def at_most(field: str, values: Sized, limit: int) -> None:
    """Raises: LIMIT_EXCEEDED."""
    if len(values) > limit:
        raise limit_exceeded(field, limit, len(values), "items")


def some(field: str, values: Sized, limit: int) -> None:
    """From 1 to `limit` values.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    if not values:
        raise invalid_field(field, "is empty")
    at_most(field, values, limit)


def page_size(value: int) -> int:
    """How many items a page may have; 0 stands for the default.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    if value < 0:
        raise invalid_field("page_size", "is negative")
    if value > PAGE_SIZE_MAX:
        raise limit_exceeded("page_size", PAGE_SIZE_MAX, value, "items")
    return value or PAGE_SIZE_DEFAULT


def labels(field: str, given: Mapping[str, str], *, limit: int = LABELS_MAX_COUNT) -> dict[str, str]:
    """Labels that a caller sets; the server's own keys are refused.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    for key in label_keys(field, given, limit=limit):
        if key.startswith(SERVER_LABEL_PREFIX):
            raise invalid_field(field, f"has a key that starts with {SERVER_LABEL_PREFIX}, which only the server sets")
    return _label_values(field, given)


def label_filter(field: str, given: Mapping[str, str]) -> dict[str, str]:
    """Labels that are looked for, the server's own included.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    label_keys(field, given, limit=FILTER_MAX_VALUES)
    return _label_values(field, given)


def label_keys(field: str, given: Iterable[str], *, limit: int = LABELS_MAX_COUNT) -> tuple[str, ...]:
    """Keys of labels, kept byte for byte.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    keys = tuple(given)
    at_most(field, keys, limit)
    for key in keys:
        check_name(field, key, LABEL_KEY_MAX_BYTES)
    return keys


def no_unknown_fields(field: str, message: Message) -> None:
    """For messages whose every field narrows or binds: what a later contract added must not be passed over.

    Raises: INVALID_FIELD.
    """
    if len(UnknownFieldSet(message)):
        raise invalid_field(field, "has a field that this server does not know")


def _label_values(field: str, given: Mapping[str, str]) -> dict[str, str]:
    return {key: check_text(field, value, LABEL_VALUE_MAX_BYTES, blank_allowed=True) for key, value in given.items()}
