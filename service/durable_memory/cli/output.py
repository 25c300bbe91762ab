"""What commands print: for people with and without a terminal, or JSON for programs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from durable_memory.cli.json_values import json_line
from durable_memory.cli.times import Times

_ONE_LINE: Final = 1_000_000
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_SPACES: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing in a list: how to name it in the next command, short cells, its text, and further words about it."""

    reference: str
    cells: Sequence[str]
    text: str
    details: str = ""


class Output:
    """Results go to stdout, everything else to stderr. Text of memories never moves the cursor or colours anything."""

    def __init__(self, *, as_json: bool, times: Times) -> None:
        self.as_json = as_json
        self.times = times
        self.written = False
        """Whether anything has gone to stdout, so that a repetition would print it twice."""
        self.errors = Console(stderr=True, highlight=False, emoji=False, markup=False, soft_wrap=True)
        self._console = Console(highlight=False, emoji=False, markup=False)
        if not self._console.is_terminal:
            # Whoever reads a file or a pipe searches lines: nothing is wrapped there.
            self._console = Console(highlight=False, emoji=False, markup=False, width=_ONE_LINE, no_color=True)

    @property
    def terminal(self) -> bool:
        """Whether a person looks at stdout."""
        return self._console.is_terminal

    def json(self, value: object) -> None:
        """One line for a program."""
        self.written = True
        sys.stdout.write(json_line(value) + "\n")
        sys.stdout.flush()

    def line(self, text: str, style: str = "") -> None:
        self.written = True
        self._console.print(Text(visible(text), style=style), soft_wrap=True)

    def quote(self, text: str) -> None:
        """The text of a memory, all of it, indented."""
        for line in visible(text).splitlines():
            self._console.print(Text("  " + line), soft_wrap=not self.terminal)

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        """Names and values; what has no value is left out."""
        stated = [(name, value) for name, value in facts if value]
        width = max((len(name) for name, _ in stated), default=0)
        for name, value in stated:
            line = Text(f"{name:<{width}}  ", style="dim").append(visible(value), style="not dim")
            self._console.print(line, soft_wrap=True)

    def rows(
        self, columns: Sequence[str], rows: Iterable[Row], *, text: str = "memory", kind: str = "", empty: str
    ) -> None:
        """A table with a column for each of `columns` and one for the text.

        At a terminal the reference stands below the text, unless it is the text; elsewhere it comes first, so that
        every line begins with the name of a thing. `kind` says what it names where that does not show. Nothing to show
        is said at a terminal only.
        """
        rows = list(rows)
        if not rows:
            if self.terminal:
                self.line(empty, style="dim")
            return
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        if self.terminal:
            for name in columns:
                table.add_column(name, no_wrap=True)
            table.add_column(text, overflow="fold")
            for row in rows:
                words = Text(visible(row.text))
                if row.reference != row.text:
                    words.append(
                        f"\n{kind} {visible(row.reference)}" if kind else f"\n{visible(row.reference)}", style="cyan"
                    )
                    words.append(f"  {visible(row.details)}" if row.details else "", style="dim")
                table.add_row(*map(_one_line, row.cells), words)
        else:
            table.add_column(kind or "name")
            for name in (*columns, text):
                table.add_column(name)
            for row in rows:
                table.add_row(*map(_one_line, (row.reference, *row.cells, row.text)))
        self._console.print(table, crop=False, soft_wrap=not self.terminal)

    def fail(self, message: str, *, advice: str = "", details: object = None, kind: str = "") -> None:
        """What went wrong and what to do next; with JSON as one object, with `details` in it.

        `kind` is the name that the contract has for it.
        """
        if self.as_json:
            error = details or {"reason": None, "message": message}
            self.errors.print(json_line({"error": error, "advice": advice or None}))
            return
        line = Text("error: ", style="bold red").append(visible(message), style="not bold default")
        if kind:
            line.append(f" [{kind}]", style="not bold dim default")
        self.errors.print(line)
        if advice:
            self.errors.print(Text(visible(advice)))

    def warn(self, reason: str, message: str) -> None:
        """That the result is less than it could be: for whoever reads it, a person, a log or a program."""
        if self.as_json:
            self.errors.print(json_line({"warning": {"reason": reason, "message": message}}))
        else:
            self.errors.print(Text("warning: ", style="yellow").append(visible(message), style="not bold default"))

    def note(self, text: str, style: str = "dim") -> None:
        """For the person at the terminal; nothing for a program or a log."""
        if self.errors.is_terminal and not self.as_json:
            self.errors.print(Text(visible(text), style=style))


def visible(text: str) -> str:
    """The text with what a terminal might obey spelled out; tabs and line ends stay."""
    return _CONTROL.sub(
        lambda match: f"\\x{ord(match[0]):02x}" if ord(match[0]) < 256 else f"\\u{ord(match[0]):04x}", text
    )


def _one_line(text: str) -> Text:
    return Text(visible(_SPACES.sub(" ", text).strip()))
