"""What a person would write for the day something happened, so that a query can name it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

# Not strftime's: those are the locale's.
_MONTHS: Final = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)


def date_words(occurred_at: datetime) -> str:
    """Day, month and year in words and in ISO form, in UTC: `8 may 2023 2023-05-08`.

    `may 2023`, `8 May` and `2023-05-08` all find it. Numbers that both forms share count twice.
    """
    day = occurred_at.astimezone(UTC)
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year} {day.date().isoformat()}"
