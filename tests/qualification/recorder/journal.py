"""A history as JSON lines, each on the disk before its writer goes on: killing the writer loses nothing it knew.

An attempt is written when it begins, without an end, and again when it ends. What only began was under way when the
process was killed, and nobody knows what became of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, get_args

from pydantic import TypeAdapter

from tests.qualification.recorder.history import Call, History, Record

_KINDS: Final[Mapping[str, type[Record]]] = {kind.__name__: kind for kind in get_args(Record)}
_ADAPTERS: Final[Mapping[type[Record], TypeAdapter[Any]]] = {kind: TypeAdapter(kind) for kind in _KINDS.values()}


class Journal:
    """Appends records to a file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, record: Record) -> None:
        kind = type(record)
        line = json.dumps({"is": kind.__name__, **_ADAPTERS[kind].dump_python(record, mode="json")})
        os.write(self._file, f"{line}\n".encode())
        os.fdatasync(self._file)

    def close(self) -> None:
        os.close(self._file)


def read_history(path: Path) -> History:
    """What a journal holds. A last line that was cut off by a kill says nothing.

    Raises: ValueError for a line that is none of a journal.
    """
    history = History()
    under_way: dict[tuple[str, int, float], Call] = {}
    lines = path.read_bytes().split(b"\n")
    for line in lines[:-1]:
        record = _parsed(line)
        if isinstance(record, Call):
            # Commands of one caller have a number each, and attempts of one command follow each other.
            place = (record.caller, record.command, record.began)
            if place not in under_way:
                under_way[place] = record
                continue
            del under_way[place]
        history.add(record)
    history.calls.extend(under_way.values())
    history.calls.sort(key=lambda call: call.began)
    return history


def _parsed(line: bytes) -> Record:
    values: dict[str, Any] = json.loads(line)
    record: Record = _ADAPTERS[_KINDS[values.pop("is")]].validate_python(values)
    return record
