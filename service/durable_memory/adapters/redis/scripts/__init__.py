"""All Lua of this adapter, one file per script.

Each compares first, writes nothing unless all comparisons hold, and does no harm when it is repeated. Its header says
what KEYS and ARGV hold and what comes back: a list whose first item is an `Answer`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import IntEnum
from importlib.resources import files
from typing import Final


class Answer(IntEnum):
    """How a script ended; the same numbers in all of them."""

    DONE = 1
    HELD = 2
    FENCED = 3
    OTHER_REVISION = 4
    OTHER_DESCRIPTOR = 5
    SEGMENT_MISSING = 6
    REPEATED = 7
    OTHER_HISTORY = 8


@dataclass(frozen=True, slots=True)
class Script:
    """A script's text and the SHA-1 by which servers know it."""

    name: str
    text: str = field(repr=False)

    @property
    def sha1(self) -> str:
        return hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


def _load(name: str) -> Script:
    return Script(name, files(__name__).joinpath(f"{name}.lua").read_text("utf-8"))


ACQUIRE: Final = _load("acquire")
RENEW: Final = _load("renew")
RELEASE: Final = _load("release")
KEEP_STAGED: Final = _load("keep_staged")
PUBLISH: Final = _load("publish")
CLEAR: Final = _load("clear")
ALL: Final = (ACQUIRE, RENEW, RELEASE, KEEP_STAGED, PUBLISH, CLEAR)
