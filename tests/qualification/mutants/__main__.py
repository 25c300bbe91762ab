"""Plants each bug in turn and shows which checks catch it: `python -m tests.qualification.mutants [NAME ...]`.

The rows that have to catch a bug are run over servers with it. A bug counts as caught only if a check that is about it
says so; a scenario that breaks down, or is slow, has shown nothing. What was not caught is tried once more by the next
seed: some bugs are seen only in a moment that a run may miss. Exit code: 0 when every bug was caught.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from tests.qualification.mutants.planted import ALL, PlantedBug, planted
from tests.qualification.report.results import RowResult, Verdict
from tests.qualification.run import Run

_OUT: Final = Path("build") / "qualification-mutants"
_MINUTES_OF_A_ROW: Final = 0.75
_MOST_SEEDS: Final = 1_000_000
_MOST_CHARACTERS: Final = 150
_TRIES: Final = 2
_BY_NAME: Final = {bug.name: bug for bug in ALL}


Catch: TypeAlias = Callable[[PlantedBug, int, Path], Awaitable[Sequence[str]]]
"""Runs the rows of a bug by a seed into a folder; returns the checks that caught it, each with what it said."""


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.qualification.mutants",
        description="Plants bugs in a copy of the service, and shows which checks catch them.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(_BY_NAME)} [default: all]")
    parser.add_argument("--seed", type=int, help="the same seed breaks the same things [default: any]")
    parser.add_argument("--out", type=Path, default=_OUT, help="the folder of the reports")
    given = parser.parse_args(argv)
    if unknown := sorted(set(given.names) - set(_BY_NAME)):
        parser.error(f"there is no bug {', '.join(unknown)}; there are {', '.join(_BY_NAME)}")
    seed = random.SystemRandom().randrange(_MOST_SEEDS) if given.seed is None else given.seed
    bugs = [bug for bug in ALL if not given.names or bug.name in given.names]
    return asyncio.run(plant_all(bugs, seed, given.out, catch=_caught))


async def plant_all(bugs: Sequence[PlantedBug], seed: int, out: Path, *, catch: Catch) -> int:
    """Returns the exit code."""
    missed = []
    for bug in bugs:
        _say(f"{bug.name}: {bug.what}")
        for attempt in range(_TRIES):
            caught = await catch(bug, seed + attempt, out / (f"{bug.name}-again" if attempt else bug.name))
            if caught:
                break
            _say(f"      not caught by seed {seed + attempt}")
        else:
            missed.append(bug.name)
            _say("      NOT CAUGHT")
        for line in caught:
            _say(f"      caught by {line}")
    _say(f"{len(bugs) - len(missed)} of {len(bugs)} planted bugs were caught; seed {seed}, reports in {out}")
    return 1 if missed else 0


async def _caught(bug: PlantedBug, seed: int, out: Path) -> list[str]:
    """See `Catch`."""
    with tempfile.TemporaryDirectory(prefix="durable-memory-mutant-") as folder:
        root = planted(bug, Path(folder))
        minutes = _MINUTES_OF_A_ROW * len(bug.rows)
        command = f"python -m tests.qualification.mutants {bug.name} --seed {seed}"
        report = await Run(seed, minutes, bug.rows, out, root, command=command).run()
    return [line for result in report.results if result.row in bug.rows for line in said_of(bug, result)]


def said_of(bug: PlantedBug, result: RowResult) -> list[str]:
    """What the checks that are about it said of it: each the first such problem, and how many it had."""
    found = []
    for finding in result.findings:
        said = [problem for problem in finding.problems if bug.said in problem]
        if finding.check in bug.checks and finding.verdict is Verdict.FAIL and said:
            found.append(f"row {result.row}, {finding.check}: {said[0][:_MOST_CHARACTERS]} ({len(said)} in all)")
    return found


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
