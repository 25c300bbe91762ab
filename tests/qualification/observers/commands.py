"""What a server's MONITOR tells of the commands by which scripts change leases and manifests, and what follows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

_SCRIPTED: Final = re.compile(rb"\+(\d+\.\d+) \[\d+ lua\] ")
_WORD: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)")
_KEY: Final = re.compile(r"dm:\{(.+)\}:(manifest|lease)")
_PLAIN: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}
_MILLIS_PER_SECOND: Final = 1000.0

SCRIPT_MARK: Final = b" lua] "
"""In every line of a command that a script gave."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command on one key that belongs to a partition. `at` is in seconds of the server's clock."""

    at: float
    name: str
    partition: str
    kind: str
    """"manifest" or "lease"."""
    arguments: tuple[str, ...]


def parse(line: bytes) -> Command | None:
    """None of a line that no script gave, or that is about nothing of a lease or a manifest."""
    head = _SCRIPTED.match(line)
    if head is None:
        return None
    words = _WORD.finditer(line, head.end())
    name, key = next(words, None), next(words, None)
    if name is None or key is None:
        return None
    named = _KEY.fullmatch(_text(key.group(1)))
    if named is None:
        return None
    return Command(
        at=float(head.group(1)),
        name=_text(name.group(1)).upper(),
        partition=named.group(1),
        kind=named.group(2),
        arguments=tuple(_text(word.group(1)) for word in words),
    )


@dataclass(slots=True)
class Replay:
    """A partition's lease and manifest, kept up to date by the commands that change them."""

    lease: dict[str, str] = field(default_factory=dict)
    expires_at: float | None = None
    manifest: dict[str, str] = field(default_factory=dict)

    def apply(self, command: Command) -> bool:
        """Whether this was a change that others can see: a manifest that is deleted is about to be set again."""
        held = self.lease if command.kind == "lease" else self.manifest
        match command.name:
            case "HSET" | "HMSET":
                if command.kind == "lease" and not self._is_live(command.at):
                    held.clear()
                held.update(zip(command.arguments[::2], command.arguments[1::2], strict=True))
            case "HDEL":
                for name in command.arguments:
                    held.pop(name, None)
            case "DEL" | "UNLINK":
                held.clear()
            case "PEXPIRE" if command.kind == "lease":
                self.expires_at = command.at + int(command.arguments[0]) / _MILLIS_PER_SECOND
            case "PERSIST" if command.kind == "lease":
                self.expires_at = None
            case _:
                return False
        if not self.lease:
            self.expires_at = None
        return command.kind == "lease" or bool(held)

    def expire(self, at: float) -> None:
        """The lease has ended by then, if it was to."""
        if not self._is_live(at):
            self.lease.clear()
            self.expires_at = None

    def _is_live(self, at: float) -> bool:
        return self.expires_at is None or at < self.expires_at


class Agreement(Enum):
    """What a comparison of what should be held with what is held came to."""

    SAME = "same"
    ANOTHER = "another"
    NOT_YET = "not yet"
    """The lease ends just now, and one of the two clocks' readings is before that and the other after it."""


def compared(expected: Replay, held: Replay, at: float, *, slack: float) -> Agreement:
    """Of what was replayed up to `at` with what was read then. `slack`: so near to its end a lease is not compared."""
    if expected.manifest != held.manifest:
        return Agreement.ANOTHER
    ends = [one.expires_at for one in (expected, held) if one.expires_at is not None]
    if any(abs(end - at) <= slack for end in ends):
        return Agreement.NOT_YET
    is_over = expected.expires_at is not None and expected.expires_at <= at
    return Agreement.SAME if ({} if is_over else expected.lease) == held.lease else Agreement.ANOTHER


def _text(escaped: bytes) -> str:
    if b"\\" not in escaped:
        return escaped.decode("latin-1")

    def plain(found: re.Match[bytes]) -> bytes:
        code = found.group(1)
        return bytes([int(code[1:], 16)]) if len(code) == 3 else _PLAIN.get(code, code)

    return _ESCAPED.sub(plain, escaped).decode("latin-1")
