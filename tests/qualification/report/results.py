"""What a run found out, row by row: verdicts of checks, what was injected and done, figures and caveats.

Nothing here holds a memory's text, a question or a credential: ids, digests, counts and durations alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """What a row or a check came to."""

    PASS = "pass"
    FAIL = "fail"
    SKIPPED = "skipped"
    """It could not be tried here, and the caveats say why. A skipped row is no pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found. It looked at `looked_at` things; a check that looked at nothing has proved nothing."""

    check: str
    looked_at: int
    problems: Sequence[str] = ()

    @property
    def verdict(self) -> Verdict:
        return Verdict.FAIL if self.problems or not self.looked_at else Verdict.PASS


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Of durations in seconds, or of counts, as `unit` says."""

    unit: str
    count: int
    p50: float
    p90: float
    p99: float
    maximum: float


@dataclass(slots=True, kw_only=True)
class Operations:
    """Attempts by method and outcome, and what became of the commands that were in doubt."""

    attempts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(method, "ok" | "refused" | "unknown")."""
    refusals: Counter[str] = field(default_factory=Counter)
    """Refusals and unknown outcomes by reason."""
    unknown_applied: int = 0
    """Commands of which an attempt of unknown outcome turned out to have changed nodes, once."""
    unknown_not_applied: int = 0
    """Those of which no such attempt had, though one after it may have."""
    unknown_untold: int = 0
    """Commands that were in doubt and of which no history tells which attempt did it: those of runs, for one."""

    def add(self, other: Operations) -> None:
        self.attempts += other.attempts
        self.refusals += other.refusals
        self.unknown_applied += other.unknown_applied
        self.unknown_not_applied += other.unknown_not_applied
        self.unknown_untold += other.unknown_untold


@dataclass(slots=True, kw_only=True)
class RowResult:
    """One row of the table: what it promises, what was done to break it, and what came out."""

    row: int
    name: str
    promise: str
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    operations: Operations = field(default_factory=Operations)
    findings: list[Finding] = field(default_factory=list)
    figures: dict[str, float | int | str] = field(default_factory=dict)
    """Named with their unit, as `worst_unavailability_seconds`."""
    distributions: dict[str, Distribution] = field(default_factory=dict)
    caveats: list[str] = field(default_factory=list)
    """What this row does not show, in plain words."""
    error: str = ""
    """How the scenario itself broke down, if it did."""
    skipped: bool = False

    @property
    def verdict(self) -> Verdict:
        if self.error:
            return Verdict.FAIL
        if self.skipped:
            return Verdict.SKIPPED
        failed = not self.findings or any(finding.verdict is Verdict.FAIL for finding in self.findings)
        return Verdict.FAIL if failed else Verdict.PASS


def distribution(values: Iterable[float], unit: str) -> Distribution | None:
    """None of nothing. Percentiles are values that occurred: the least that so many of them do not exceed."""
    ordered = sorted(values)
    if not ordered:
        return None

    def at(percent: int) -> float:
        return ordered[math.ceil(percent * len(ordered) / 100) - 1]

    return Distribution(unit=unit, count=len(ordered), p50=at(50), p90=at(90), p99=at(99), maximum=ordered[-1])
