"""Times as a person reads and types them: local with its offset, or UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from durable_memory.ports.runtime import Clock

_AGO: Final = re.compile(r"(\d{1,6})\s*(m|h|d|w)", re.IGNORECASE)
_SPAN: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(s|m|h|d)", re.IGNORECASE)
_SPAN_UNITS: Final = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
}
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


class Times:
    """Shows and reads times. `zone` None is the machine's own, with the offset that it had at the time shown."""

    def __init__(self, clock: Clock, zone: tzinfo | None) -> None:
        self._clock = clock
        self._zone = zone

    def show(self, time: datetime | None) -> str:
        """`2030-01-31 18:05 +01:00`; a dash for an absent time."""
        if time is None:
            return "-"
        local = time.astimezone(self._zone)
        return f"{local:%Y-%m-%d %H:%M} {_offset(local)}"

    def show_day(self, time: datetime | None) -> str:
        """`2030-01-31`, where the hour would be noise."""
        return "-" if time is None else f"{time.astimezone(self._zone):%Y-%m-%d}"

    def given(self, option: str, text: str) -> datetime:
        """A moment that a person typed: a date, an ISO 8601 time, or how long ago (`30m`, `12h`, `7d`, `2w`).

        What has no offset is meant in this object's zone. Raises: ValueError, which names the option.
        """
        if ago := _AGO.fullmatch(text.strip()):
            return self._clock.now() - int(ago[1]) * _UNITS[ago[2].lower()]
        try:
            time = datetime.fromisoformat(text.strip())
        except ValueError:
            raise ValueError(
                f"{option}: {text!r} is no time; give a date (2030-01-31), a time (2030-01-31T18:05+01:00), "
                "or how long ago (7d)"
            ) from None
        if time.tzinfo is None and self._zone is not None:
            time = time.replace(tzinfo=self._zone)
        return time.astimezone(UTC)


def age(duration: timedelta) -> str:
    """How long ago, in the largest unit that fits: `just now`, `5 minutes ago`, `3 days ago`."""
    for unit, length in (("year", 365 * 86_400), ("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = int(duration.total_seconds() // length)
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def duration(option: str, text: str) -> timedelta:
    """A span of time that a person typed: `2.5s`, `15m`, `12h`, `7d`. Raises: ValueError, which names the option."""
    span = _SPAN.fullmatch(text.strip())
    if span is None:
        raise ValueError(f"{option}: {text!r} is no span of time; give a number and a unit, such as 2s, 15m, 12h or 7d")
    return float(span[1]) * _SPAN_UNITS[span[2].lower()]


def show_duration(span: timedelta) -> str:
    """`2.5 s`, `15 min`, `12 h`, `7 d`: in the largest unit that it is a whole number of, else in seconds."""
    for unit, length in _SPAN_UNITS.items():
        if span and not span % length:
            return f"{span // length:,} {'min' if unit == 'm' else unit}"
    return f"{span.total_seconds():g} s"


def _offset(time: datetime) -> str:
    offset = time.utcoffset() or timedelta()
    if not offset:
        return "UTC"
    sign = "-" if offset < timedelta() else "+"
    minutes = abs(int(offset.total_seconds())) // 60
    return f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"
