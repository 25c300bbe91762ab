"""The client's values as JSON: field names as they are, times in UTC, durations in seconds, citations in full."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from durable_memory_client import Citation, MemoryServiceError

# What JSON may leave as it is, and a terminal might obey: delete and C1 controls, and marks that reorder text.
_UNSAFE: Final = re.compile("[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def json_line(value: object) -> str:
    """One line of JSON."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(as_json(value), ensure_ascii=False))


def as_json(value: object) -> Any:
    """`value` in what `json` can write. Raises: TypeError for what has no form here."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return str(value)  # an enum's member is its name
        case Citation():
            return str(value)
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case MemoryServiceError():
            return {
                "reason": value.reason,
                "message": value.message,
                "metadata": dict(value.metadata),
                "definite": value.definite,
                "request_id": value.request_id,
            }
        case Mapping():
            return {str(name): as_json(item) for name, item in value.items()}
        case list() | tuple():
            return [as_json(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} has no form in JSON")
