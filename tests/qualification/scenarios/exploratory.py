"""Beyond the table: one fault after another, and two at a time, as a seed has it, for as long as there is time."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tests.qualification.checks.availability import distributed, seconds_taken
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.faults.fault import Fault
from tests.qualification.faults.registry import ALL, POSTGRES, PROCESSES, REDIS
from tests.qualification.report.results import RowResult
from tests.qualification.scenarios.endurance import endure, traffic_on
from tests.qualification.scenarios.stage import Stage
from tests.qualification.traffic.judgement import together

_FAULTS: Final = 8
"""Of an episode, which is judged as a whole: then the next one begins in namespaces of its own."""
_PAIRS: Final = 3
"""How many of them are two faults at once."""
_EPISODE_SECONDS: Final = 60.0
_JUDGING_SECONDS: Final = 30.0


class AtOnce:
    """Two faults of different kinds of parts, at the same time: neither mends what the other breaks."""

    def __init__(self, first: Fault, second: Fault) -> None:
        self.faults = (first, second)
        self.name = f"{first.name} with {second.name}"

    def available(self, cluster: Cluster) -> bool:
        return all(fault.available(cluster) for fault in self.faults)

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        chances = [random.Random(rng.random()) for _ in self.faults]
        injected = await asyncio.gather(
            *(fault.inject(cluster, chance) for fault, chance in zip(self.faults, chances, strict=True)),
            return_exceptions=True,
        )
        struck = []
        for outcome in injected:
            if isinstance(outcome, BaseException):
                raise outcome
            struck.append(outcome)
        return min(struck)


class Exploratory:
    """Episodes of traffic under faults by chance, each with every check at its end."""

    row = 0
    name = "exploratory"
    promise = "whatever is broken, in any order and two at a time, while everything is in use: all of the above holds"

    async def run(self, stage: Stage) -> None:
        ends_at = time.monotonic() + stage.seconds
        results: list[RowResult] = []
        seconds: dict[str, list[float]] = defaultdict(list)
        try:
            for number in itertools.count(1):
                one = RowResult(row=self.row, name=self.name, promise=self.promise)
                results.append(one)
                traffic = traffic_on(stage, f"{number}-")
                try:
                    await endure(replace(stage, seconds=0.0, result=one), traffic, chosen(stage.rng))
                finally:
                    for method, taken in seconds_taken(traffic.history).items():
                        seconds[method] += taken
                if time.monotonic() + _EPISODE_SECONDS + _JUDGING_SECONDS > ends_at:
                    break
        finally:
            _sum_up(stage.result, results)
            stage.result.distributions |= distributed(seconds)


def chosen(rng: random.Random) -> Sequence[Fault]:
    """The faults of one episode."""
    pairs = []
    for _ in range(_PAIRS):
        first, second = rng.sample((PROCESSES, POSTGRES, REDIS), 2)
        pairs.append(AtOnce(rng.choice(first), rng.choice(second)))
    return [*pairs, *rng.sample(ALL, _FAULTS - _PAIRS)]


def _sum_up(result: RowResult, episodes: Sequence[RowResult]) -> None:
    for number, one in enumerate(episodes, start=1):
        result.faults += one.faults
        result.operations.add(one.operations)
        result.caveats += [caveat for caveat in one.caveats if caveat not in result.caveats]
        for finding in one.findings:
            problems = [f"episode {number}: {problem}" for problem in finding.problems]
            one.findings[one.findings.index(finding)] = replace(finding, problems=problems)
        for name, figure in one.figures.items():
            before = result.figures.get(name)
            if isinstance(figure, int | float) and isinstance(before, int | float):
                result.figures[name] = max(before, figure) if name.startswith("worst") else before + figure
            else:
                result.figures[name] = figure
    result.findings += together([one.findings for one in episodes])
    result.figures["episodes"] = len(episodes)


SCENARIO: Final = Exploratory()
