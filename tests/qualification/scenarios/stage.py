"""What a scenario is, and what it is given."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from tests.qualification.checks.hygiene import Traces
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.report.results import Finding, RowResult
from tests.qualification.report.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One scenario's turn: a healthy cluster, a seeded source of chance, so many seconds, and where its result goes.

    The cluster is shared with the scenarios before and after: whatever a scenario breaks it mends, and it works in
    tenants of its own, whose names begin with `prefix`.
    """

    cluster: Cluster
    rng: random.Random
    seconds: float
    """For the part of the scenario that can be longer or shorter. What it has to do at least, it does anyway."""
    prefix: str
    result: RowResult
    traces: Callable[[], Traces] = Traces
    """Gives what the run has left by now where others can read it, this cluster and those before it."""

    @property
    def timeline(self) -> Timeline:
        return self.cluster.timeline

    def found(self, check: str, looked_at: int, problems: Iterable[str]) -> None:
        """Keep what a check found."""
        self.result.findings.append(Finding(check=check, looked_at=looked_at, problems=list(problems)))


class Scenario(Protocol):
    """One row of the table, or a past fault that must not come back. It has no state between runs."""

    row: int
    name: str
    promise: str

    async def run(self, stage: Stage) -> None:
        """Do it, and put findings, figures and caveats into `stage.result`.

        Raises nothing for what a check finds; an error means that the scenario could not be carried out, and fails
        its row.
        """
