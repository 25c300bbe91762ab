"""Enum values, which have the same numbers in the domain and on the wire."""

from __future__ import annotations

from enum import IntEnum
from typing import Any


def number(value: IntEnum) -> Any:
    """The number on the wire. Any: protoc's types ask for enum classes that do not exist when the program runs."""
    return value.value


def optional_number(value: IntEnum | None) -> Any:
    return None if value is None else value.value
