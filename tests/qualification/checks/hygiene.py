"""Whether bytes hold what they must not: a credential, or the text of a memory or a question.

Bytes are searched as they lie on the disk or went over the wire, for the thing itself and for what it looks like in
base64 (at each of its three alignments), in hexadecimal, percent-encoded and with each character escaped as JSON may.
Compressed bytes are not looked into: nothing of what is scanned compresses.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

_CHUNK_BYTES: Final = 1 << 20
_SHORTEST: Final = 6
"""Characters. What is shorter occurs by chance, and proves nothing."""
_PIECE_CHARACTERS: Final = 24
"""A piece of a text of this length is content: a shorter one may be a common turn of phrase."""
_MOST_PER_PLACE: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Forbidden:
    """What must not be found. `secrets` are credentials, `words` single words that only content contains, `texts`
    whole memories and questions, of which no longer piece may be found either."""

    secrets: Collection[str] = ()
    words: Collection[str] = ()
    texts: Collection[str] = ()

    def __or__(self, other: Forbidden) -> Forbidden:
        return Forbidden(
            secrets={*self.secrets, *other.secrets},
            words={*self.words, *other.words},
            texts={*self.texts, *other.texts},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Needle:
    what: str
    looks: bytes
    any_case: bool


class Scanner:
    """Looks for what is forbidden. What it says names kinds and places, never the thing itself.

    Raises: ValueError for a secret or word that is too short to be told from chance.
    """

    def __init__(self, forbidden: Forbidden) -> None:
        short = [kind for kind, value in _values(forbidden) if kind != "text" and len(value) < _SHORTEST]
        if short:
            raise ValueError(f"a {short[0]} to look for has fewer than {_SHORTEST} characters")
        needles: dict[tuple[bytes, bool], _Needle] = {}
        for kind, value in _values(forbidden):
            pieces = _pieces(value) if kind == "text" else [value]
            for piece in pieces:
                for form, looks, any_case in _looks(piece, plain_only=kind == "text"):
                    what = f"{kind} {form}".strip()
                    needles.setdefault((looks, any_case), _Needle(what=what, looks=looks, any_case=any_case))
        self._needles = tuple(needles.values())
        self._overlap = max((len(needle.looks) for needle in self._needles), default=1) - 1

    @property
    def looks_for(self) -> int:
        """How many different byte strings."""
        return len(self._needles)

    def scan(self, chunks: Iterable[bytes]) -> list[str]:
        """What kinds of things the bytes hold. They may be split anywhere."""
        found: dict[str, int] = {}
        kept, passed = b"", 0
        for chunk in chunks:
            window = kept + chunk
            lowered = window.lower()
            for needle in self._needles:
                if needle.what in found:
                    continue
                place = (lowered if needle.any_case else window).find(needle.looks)
                if place >= 0:
                    found[needle.what] = passed - len(kept) + place
            passed += len(chunk)
            kept = window[-self._overlap :] if self._overlap else b""
        return [f"{what} at byte {at}" for what, at in sorted(found.items(), key=lambda one: one[1])]

    def holds(self, text: str) -> bool:
        """Whether a text holds any of it."""
        return bool(self.scan([text.encode(errors="surrogatepass")]))

    def scan_files(self, files: Iterable[Path]) -> list[str]:
        """What is wrong with files."""
        problems = []
        for path in files:
            if self.holds(path.name):
                problems.append("a file's name holds what it must not")
                continue
            problems += [f"{path.name}: {one}" for one in self.scan(_read(path))[:_MOST_PER_PLACE]]
        return problems


@dataclass(slots=True, kw_only=True)
class Traces:
    """What a run has left where others can read it: reports, logs, and what a collector was sent."""

    forbidden: Forbidden = field(default_factory=Forbidden)
    files: list[Path] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """What cannot be looked at any more, in words."""

    def __or__(self, other: Traces) -> Traces:
        return Traces(
            forbidden=self.forbidden | other.forbidden,
            files=list(dict.fromkeys([*self.files, *other.files])),
            lost=list(dict.fromkeys([*self.lost, *other.lost])),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    files: int
    bytes: int
    problems: Sequence[str]


def scan(traces: Traces) -> Scanned:
    """Look through everything. What is lost, or gone by now, is a problem: it was not looked at."""
    scanner = Scanner(traces.forbidden)
    there = [path for path in traces.files if path.is_file()]
    problems = [*traces.lost]
    problems += [f"{path.name} is gone, and was not looked at" for path in traces.files if not path.is_file()]
    problems += scanner.scan_files(there)
    return Scanned(files=len(there), bytes=sum(path.stat().st_size for path in there), problems=problems)


def _values(forbidden: Forbidden) -> Iterator[tuple[str, str]]:
    for kind, values in (("secret", forbidden.secrets), ("content", forbidden.words), ("text", forbidden.texts)):
        for value in values:
            yield kind, value


def _pieces(text: str) -> list[str]:
    """Pieces that do not overlap, so that any part of the text of twice their length contains one."""
    starts = range(0, len(text) - _PIECE_CHARACTERS + 1, _PIECE_CHARACTERS)
    return [text[start : start + _PIECE_CHARACTERS] for start in starts] or ([text] if len(text) >= _SHORTEST else [])


def _looks(value: str, *, plain_only: bool) -> Iterator[tuple[str, bytes, bool]]:
    """(form, bytes, whether in any case)."""
    raw = value.encode()
    yield "", raw.lower(), True
    escaped = "".join(f"\\u{unit:04x}" for unit in _utf16_units(value)).encode()
    partly = json.dumps(value)[1:-1].encode()
    if partly != raw:
        yield "in escapes", partly.lower(), True
    if plain_only:
        return
    yield "in escapes", escaped.lower(), True
    yield "in hexadecimal", raw.hex().encode(), True
    quoted = quote(value, safe="").encode()
    if quoted != raw:
        yield "percent-encoded", quoted.lower(), True
    for looks in _base64_looks(raw):
        yield "in base64", looks, False
        yield "in base64", looks.translate(bytes.maketrans(b"+/", b"-_")), False


def _base64_looks(raw: bytes) -> Iterator[bytes]:
    """What stands in base64 of any bytes that contain these: without the characters that their neighbours share."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw)
        first = (0, 2, 3)[before]
        beyond = (before + len(raw)) % 3
        last = len(encoded) - (0, 3, 2)[beyond]
        yield encoded[first:last]


def _utf16_units(value: str) -> Iterator[int]:
    raw = value.encode("utf-16-be", "surrogatepass")
    for place in range(0, len(raw), 2):
        yield int.from_bytes(raw[place : place + 2], "big")


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk
