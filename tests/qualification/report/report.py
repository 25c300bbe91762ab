"""All that a run found out, and `report.json` of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, Final

from tests.qualification.report.bins import latency_by_method
from tests.qualification.report.results import Finding, RowResult, Verdict
from tests.qualification.report.timeline import Timeline

SCHEMA: Final = 1
MOST_PROBLEMS: Final = 12
"""Of one finding that a report repeats; how many there are it always says."""
_MOST_CHARACTERS: Final = 400
WITHHELD: Final = "(withheld: it holds the text of a memory or a credential)"

# What no run can show, whatever came out.
_ALWAYS: Final = (
    "All processes ran on one machine and shared its clock: skew between machines was not tried.",
    "kill -9 ends a process and leaves the kernel's page cache alone: a loss of power was not tried.",
    "A run shows that faults were not found, in the time it had and by the chance of its seed.",
)


@dataclass(slots=True, kw_only=True)
class Report:
    """`holds` says whether a text holds what a report must not: such a text is withheld from it."""

    seed: int
    minutes: float
    command: str
    started_at: datetime
    machine: Mapping[str, str | int | float]
    versions: Mapping[str, str]
    timeline: Timeline
    results: list[RowResult] = field(default_factory=list)
    caveats: list[str] = field(default_factory=lambda: list(_ALWAYS))
    seconds: float = 0.0
    asked: Collection[int] | None = None
    """The rows that have to pass; None: all. The others may be skipped, but not fail."""
    not_run: Sequence[int] = ()
    """Rows of the table that nobody asked for, in order."""
    holds: Callable[[str], bool] = lambda text: False

    @property
    def passed(self) -> bool:
        """Whether everything that was asked for was tried and passed."""
        verdicts = [(result.verdict, self.asked is None or result.row in self.asked) for result in self.results]
        return any(asked for _, asked in verdicts) and all(
            verdict is Verdict.PASS or (verdict is Verdict.SKIPPED and not asked) for verdict, asked in verdicts
        )

    @property
    def verdict(self) -> Verdict:
        return Verdict.PASS if self.passed else Verdict.FAIL

    @property
    def left_out(self) -> str:
        """Which rows were not run, as a sentence; nothing if all were."""
        if not self.not_run:
            return ""
        if len(self.not_run) == 1:
            return f"Row {self.not_run[0]} was not run."
        return f"Rows {_stretches(self.not_run)} were not run."

    def shown(self, text: str) -> str:
        """The text as a report may say it: bounded, and withheld where it would tell content."""
        if self.holds(text):
            return WITHHELD
        return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"

    def as_json(self) -> str:
        """The whole report for programs, with what is drawn of the timeline left to the page."""
        value = {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "seed": self.seed,
            "minutes": self.minutes,
            "command": self.command,
            "started_at": self.started_at.isoformat(timespec="seconds"),
            "seconds": self.seconds,
            "machine": dict(self.machine),
            "versions": dict(self.versions),
            "rows_not_run": list(self.not_run),
            "caveats": [self.shown(caveat) for caveat in self.caveats],
            "rows": [self._row(result) for result in self.results],
            "latency_by_method": {
                method: {
                    "outcomes": dict(latencies.outcomes),
                    "seconds": None if latencies.of_answers is None else asdict(latencies.of_answers),
                }
                for method, latencies in latency_by_method(self.timeline).items()
            },
            "events": [
                {
                    "lane": event.lane,
                    "label": self.shown(event.label),
                    "key": self.shown(event.key),
                    "began": round(event.began - self.timeline.began, 3),
                    "ended": None if event.ended is None else round(event.ended - self.timeline.began, 3),
                }
                for event in self.timeline.events
            ],
        }
        return json.dumps(_rounded(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def _row(self, result: RowResult) -> dict[str, Any]:
        operations = result.operations
        methods = sorted({method for method, _ in operations.attempts})
        return {
            "row": result.row,
            "name": result.name,
            "promise": result.promise,
            "verdict": result.verdict,
            "seconds": result.seconds,
            "error": self.shown(result.error),
            "faults": dict(result.faults),
            "operations": {
                "attempts": {
                    method: {
                        outcome: operations.attempts[method, outcome]
                        for outcome in OUTCOMES
                        if (method, outcome) in operations.attempts
                    }
                    for method in methods
                },
                "total": total(result),
                "refusals": dict(operations.refusals.most_common()),
                "unknown": unknown(result),
                "unknown_applied": operations.unknown_applied,
                "unknown_not_applied": operations.unknown_not_applied,
                "unknown_untold": operations.unknown_untold,
            },
            "findings": [self._finding(finding) for finding in result.findings],
            "figures": {
                name: self.shown(value) if isinstance(value, str) else value for name, value in result.figures.items()
            },
            "distributions": {name: asdict(found) for name, found in result.distributions.items()},
            "caveats": [self.shown(caveat) for caveat in result.caveats],
        }

    def _finding(self, finding: Finding) -> dict[str, Any]:
        return {
            "check": finding.check,
            "verdict": finding.verdict,
            "looked_at": finding.looked_at,
            "problems": len(finding.problems),
            "first_problems": self.first_problems(finding),
        }

    def first_problems(self, finding: Finding) -> Sequence[str]:
        return [self.shown(problem) for problem in finding.problems[:MOST_PROBLEMS]]


OUTCOMES: Final = ("ok", "refused", "unknown")


def total(result: RowResult) -> int:
    """Attempts of calls."""
    return sum(result.operations.attempts.values())


def unknown(result: RowResult) -> int:
    """Attempts of unknown outcome."""
    return sum(count for (_, outcome), count in result.operations.attempts.items() if outcome == "unknown")


def _stretches(numbers: Sequence[int]) -> str:
    """`1 to 3, 5, 6` for numbers in order."""
    said: list[str] = []
    for _, stretch in groupby(enumerate(numbers), lambda one: one[1] - one[0]):
        run = [number for _, number in stretch]
        said += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)
    return ", ".join(said)


def _rounded(value: Any) -> Any:
    """Figures to six digits; what is no number, as JSON knows none, is null."""
    match value:
        case bool() | int() | str() | None:
            return value
        case float():
            return float(f"{value:.6g}") if math.isfinite(value) else None
        case dict():
            return {str(key): _rounded(one) for key, one in value.items()}
        case _:
            return [_rounded(one) for one in value]
