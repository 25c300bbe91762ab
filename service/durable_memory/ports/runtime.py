"""Time and randomness, so that the rest of the service never asks the machine itself."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for what is stored, monotonic time for what is measured."""

    def now(self) -> datetime:
        """The current time, aware, in UTC, at whole microseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never goes back."""
        ...


class Ids(Protocol):
    """Identifiers nobody can guess."""

    def time_ordered(self) -> str:
        """A new unique id of at most 36 printable ASCII characters; later ones sort after earlier ones."""
        ...

    def random_hex(self, size: int) -> str:
        """`size` random bytes from the operating system as 2 * `size` hexadecimal digits."""
        ...
