"""The verdict of each case in each language, for people and for whatever counts closing lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Final

from clients.conformance.cases import Case
from clients.conformance.executors import Language


class Verdict(Enum):
    """What became of a case in a language."""

    PASSED = "ok"
    FAILED = "FAILED"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Cell:
    """A verdict and, unless it passed, why."""

    verdict: Verdict
    faults: Sequence[str] = ()


Cells = Mapping[tuple[str, str], Cell]

_COLORS: Final = {Verdict.PASSED: "32", Verdict.FAILED: "1;31", Verdict.NOT_RUN: "33"}


def table(cases: Sequence[Case], languages: Sequence[Language], cells: Cells, *, color: bool) -> Iterator[str]:
    """The lines of the table, then the faults of what failed."""
    width = max(len(case.name) for case in cases) + 2
    yield " " * (width + 2) + "".join(language.name.ljust(9) for language in languages)
    for group, members in groupby(cases, key=lambda case: case.group):
        yield group
        for case in members:
            marks = [cells[case.name, language.name].verdict for language in languages]
            yield f"  {case.name.ljust(width)}" + "".join(_mark(mark, color) for mark in marks)
    for (name, language), cell in cells.items():
        if cell.verdict is Verdict.FAILED:
            yield ""
            yield f"{language}: {name}"
            yield from (f"    {fault}" for fault in cell.faults)
    absent = {language: cell.faults[0] for (_, language), cell in cells.items() if cell.verdict is Verdict.NOT_RUN}
    for language, reason in absent.items():
        yield f"\n{language} was not run: {reason}"


def closing_line(cells: Cells) -> str:
    """`N passed, N failed`, and how many were not run, if any."""
    counts = {verdict: sum(cell.verdict is verdict for cell in cells.values()) for verdict in Verdict}
    line = f"{counts[Verdict.PASSED]} passed, {counts[Verdict.FAILED]} failed"
    return f"{line}, {counts[Verdict.NOT_RUN]} skipped" if counts[Verdict.NOT_RUN] else line


def _mark(verdict: Verdict, color: bool) -> str:
    text = verdict.value.ljust(9)
    return f"\x1b[{_COLORS[verdict]}m{text}\x1b[0m" if color else text
