"""What a run says at a terminal while it goes on: one line a row, and what failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.qualification.report.report import Report, total, unknown
from tests.qualification.report.results import RowResult, Verdict

_MOST_PROBLEMS: Final = 5
_MOST_CAVEATS: Final = 2


def line(result: RowResult) -> str:
    """Verdict, row, seconds, faults and operations."""
    doubts = unknown(result)
    done = f"{total(result)} operations" + (f", {doubts} of unknown outcome" if doubts else "")
    number = f"{result.row:>2}" if result.row else "  "
    return (
        f"{result.verdict.upper():<7} {number} {result.name:<26} {result.seconds:>6.1f} s  "
        f"{sum(result.faults.values()):>3} faults  {done}"
    )


def problems(report: Report, result: RowResult) -> Iterator[str]:
    """Why a row failed, or was skipped; bounded."""
    if result.error:
        yield report.shown(result.error)
    if result.verdict is Verdict.SKIPPED:
        yield from map(report.shown, result.caveats[:_MOST_CAVEATS])
    if not result.findings and not result.error and result.verdict is Verdict.FAIL:
        yield "no check looked at anything"
    for finding in result.findings:
        if finding.verdict is Verdict.FAIL:
            if not finding.looked_at:
                yield f"{finding.check}: it looked at nothing"
            yield from (f"{finding.check}: {report.shown(problem)}" for problem in finding.problems[:_MOST_PROBLEMS])
            more = len(finding.problems) - _MOST_PROBLEMS
            if more > 0:
                yield f"{finding.check}: and {more} more"
