"""Runs the cases with the clients of all languages, and prints one table: `python -m clients.conformance --help`."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from clients.conformance.cases import Case, load
from clients.conformance.conditions import TOKENS, Conditions
from clients.conformance.executors import LANGUAGES, Executor, ExecutorError, Language
from clients.conformance.matching import differences
from clients.conformance.table import Cell, Verdict, closing_line, table


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m clients.conformance", description=__doc__)
    parser.add_argument("--language", action="append", choices=[one.name for one in LANGUAGES], help="only this one")
    parser.add_argument("--case", default="*", metavar="PATTERN", help="only cases whose `group: name` matches")
    chosen = parser.parse_args(arguments)
    cases = [case for case in load() if fnmatch(f"{case.group}: {case.name}", chosen.case)]
    if not cases:
        parser.error(f"no case matches {chosen.case!r}")
    languages = [one for one in LANGUAGES if not chosen.language or one.name in chosen.language]
    started = time.monotonic()
    cells = asyncio.run(run(cases, languages))
    for line in table(cases, languages, cells, color=sys.stdout.isatty() and "NO_COLOR" not in os.environ):
        print(line)
    print(f"\n{len(cases)} cases in {time.monotonic() - started:.0f} s")
    print(closing_line(cells))
    return 0 if all(cell.verdict is not Verdict.FAILED for cell in cells.values()) else 1


async def run(cases: Sequence[Case], languages: Sequence[Language]) -> dict[tuple[str, str], Cell]:
    """The cell of every (case, language). A language that lacks a tool is not run, and never passes."""
    cells: dict[tuple[str, str], Cell] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="durable-memory-conformance-")))
        executors = {}
        for language in languages:
            if (tool := language.missing()) is not None:
                for case in cases:
                    cells[case.name, language.name] = Cell(Verdict.NOT_RUN, [f"{tool} is not installed"])
            else:
                executors[language] = await asyncio.to_thread(stack.enter_context, Executor(language))
        async with Conditions(folder) as conditions:
            for case in cases:
                for language, executor in executors.items():
                    cells[case.name, language.name] = await _cell(case, language, executor, conditions)
    return cells


async def _cell(case: Case, language: Language, executor: Executor, conditions: Conditions) -> Cell:
    async with conditions.of(case) as surroundings:
        order = {
            "case": case.name,
            "address": surroundings.address,
            "token": None if case.token is None else TOKENS.get(case.token, case.token),
            # Each cell has a namespace of its own, so that no case sees what another one left.
            "namespace": {"tenant": "conformance", "principal": language.name, "scope": secrets.token_hex(8)},
            "saved": surroundings.saved,
            "steps": case.orders(),
        }
        running = asyncio.ensure_future(asyncio.to_thread(executor.run, order))
        if any("cancel" in step for step in case.steps):
            await surroundings.asked()
            executor.cancel()
        try:
            outcomes = await running
        except ExecutorError as error:
            return Cell(Verdict.FAILED, [str(error)])
        faults = _faults(case, outcomes) + surroundings.faults(case)
    return Cell(Verdict.FAILED if faults else Verdict.PASSED, faults)


def _faults(case: Case, outcomes: Sequence[Any]) -> list[str]:
    if len(outcomes) != len(case.steps):
        return [f"{len(outcomes)} outcomes of {len(case.steps)} steps: {outcomes[-1:]}"]
    return [
        f"step {number}: {difference}"
        for number, (step, outcome) in enumerate(zip(case.steps, outcomes, strict=True), start=1)
        for difference in differences(step["expect"], outcome)
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
