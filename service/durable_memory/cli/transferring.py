"""Commands that move a whole namespace: export, import."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from durable_memory.cli import arguments as given
from durable_memory.cli.connected import Invocation
from durable_memory.cli.options import ServiceOptions
from durable_memory.cli.output import Output
from durable_memory_client import MemoryServiceError, Namespace

_RECORD_FIELD: Final = re.compile(r"records\[(\d+)\]")

Advance = Callable[[int], None]
"""Takes the size in bytes of the next record."""


async def export(
    invocation: Invocation,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Where to [default: stdout]", show_default=False)
    ] = None,
) -> None:
    """Write everything that the namespace has, as JSON Lines.

    Every revision, change set, request record, session, run, admission and use. A file appears when it is complete,
    and not before; it holds the texts of all memories, and only you may read it. Needs the operator role.
    """
    output = invocation.output
    records = 0
    if file is None:
        output.written = True  # what has gone down a pipe cannot be taken back
    with _target(file) as target, _progress(output, "export", None) as advance:
        async for line in invocation.memory.export_namespace():
            raw = line.encode() + b"\n"
            target.write(raw)
            records += 1
            advance(len(raw))
    if file is not None and output.as_json:
        output.json({"file": str(file), "records": records})
    elif file is not None:
        output.line(f"exported: {records:,} records to {file}")


async def import_namespace(
    invocation: Invocation,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An export; - reads it from stdin")],
    *,
    request_id: given.RequestId = None,
) -> None:
    """Take an export into an empty namespace: all or nothing.

    Into the one that it is of, under the same name. The server verifies every digest, every count and the chain over
    all change sets before it writes. Needs the administrator role.
    """
    output = invocation.output
    with _source(file) as (source, size), _progress(output, "import", size) as advance:
        if size is None:
            output.written = True  # what has come up a pipe does not come again
        lines = _Lines(source, advance)
        try:
            namespace = _exported(lines.first())
            _refuse_other(invocation.options, namespace)
            done = await invocation.memory.namespace(
                namespace.tenant, namespace.principal, namespace.scope
            ).import_namespace(lines, request_id=request_id or invocation.request_id)
        except ValueError as error:
            raise ValueError(f"line {lines.number} of {file}: {error}") from None
        except MemoryServiceError as error:
            if (place := _line_of(error)) is not None:
                error.message = f"line {place} of {file}: {error.message}"
            raise
    if output.as_json:
        output.json(done)
        return
    output.line(
        f"imported: {done.nodes:,} memories with {done.node_revisions:,} revisions, {done.change_sets:,} change sets, "
        f"{done.sessions:,} sessions, {done.access_events:,} admissions and uses"
    )
    output.line(f"at revision {done.change_token.namespace_revision} of history {done.change_token.history_id}")


class _Lines:
    """The lines of a file, and the number of the last one that was taken."""

    def __init__(self, source: BinaryIO, advance: Advance) -> None:
        self._source = source
        self._advance = advance
        self.number = 0

        self._first = b""

    def first(self) -> str:
        """The first line, which the iteration will give again."""
        self._first = self._source.readline()
        self.number = 1
        return self._first.decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        self.number = 0
        for raw in chain([self._first] if self._first else (), self._source):
            self.number += 1
            self._advance(len(raw))
            if raw.strip():
                yield raw.decode("utf-8")


def _exported(line: str) -> Namespace:
    """The namespace that an export is of, by its first line. Raises: ValueError."""
    try:
        names = json.loads(line)["header"]["namespace"]
        return Namespace(names["tenant_id"], names["principal_id"], names["scope_id"])
    except (ValueError, KeyError, TypeError):
        raise ValueError("an export begins with its header") from None


def _refuse_other(options: ServiceOptions, exported: Namespace) -> None:
    """Raises: ValueError if another namespace was stated: what is imported keeps its name."""
    for option, stated, name in (
        ("--tenant", options.tenant, exported.tenant),
        ("--principal", options.principal, exported.principal),
        ("--scope", options.scope, exported.scope),
    ):
        if stated is not None and stated != name:
            raise ValueError(f"the export is of {option[2:]} {name}, and an import keeps that: leave {option} out")


def _line_of(error: MemoryServiceError) -> int | None:
    """The line, from 1, of the record that an import was refused for."""
    place = error.metadata.get("record", "")
    if place.isdigit():
        return int(place) + 1
    field = _RECORD_FIELD.match(error.metadata.get("field", ""))
    return None if field is None else int(field[1]) + 1


@contextmanager
def _target(file: Path | None) -> Iterator[BinaryIO]:
    if file is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".partial")
    except OSError as error:
        raise ValueError(f"{file} cannot be written: {error.strerror}") from error
    unfinished = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as target:
            yield target
            target.flush()
            os.fsync(target.fileno())
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def _source(file: Path) -> Iterator[tuple[BinaryIO, int | None]]:
    if str(file) == given.STDIN:
        yield sys.stdin.buffer, None
        return
    try:
        with file.open("rb") as source:
            yield source, os.fstat(source.fileno()).st_size
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from error


@contextmanager
def _progress(output: Output, what: str, total: int | None) -> Iterator[Advance]:
    """A bar on stderr where a person looks at it."""
    bar = Progress(
        TextColumn(what),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[records]:,} records"),
        TimeElapsedColumn(),
        console=output.errors,
        transient=True,
        disable=not output.errors.is_terminal,
    )
    records = 0

    def advance(size: int) -> None:
        nonlocal records
        records += 1
        bar.update(task, advance=size, records=records)

    with bar:
        task = bar.add_task(what, total=total, records=0)
        yield advance
