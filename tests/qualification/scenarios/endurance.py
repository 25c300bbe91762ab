"""What several rows have in common: traffic that goes on while one fault follows another, and is judged at the end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

from tests.qualification.checks import availability
from tests.qualification.faults.fault import Fault
from tests.qualification.scenarios.stage import Stage
from tests.qualification.traffic.traffic import Traffic

HEALTHY_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 0.5
"""How long callers rest: the model shares two processors with everything else, and must keep up with them."""
_BETWEEN: Final = (1, 12)
"""So many commands are acknowledged in each namespace between two faults, so that none comes at a quiet moment."""
_MOST_SECONDS_WITHOUT: Final = 30.0
"""No promise of the service, but the end of patience: what takes longer than that hangs."""
_AFTER_SECONDS: Final = 10.0
"""How long after it a fault's gap is looked for."""


async def endure(stage: Stage, traffic: Traffic, faults: Sequence[Fault], *, least: int = 0) -> None:
    """Inject each fault once, then go round again for the time there is, and at least `least` faults. Then judge.

    The order is by chance, every round another. Whatever was acknowledged at a moment is looked for right after the
    fault, while callers go on; everything else at the end.
    """
    ends_at = time.monotonic() + stage.seconds
    injected = 0
    so_far = _SoFar()
    async with traffic:
        while injected < max(len(faults), least) or time.monotonic() < ends_at:
            for fault in stage.rng.sample(faults, len(faults)):
                if injected >= max(len(faults), least) and time.monotonic() >= ends_at:
                    break
                await traffic.acknowledged(stage.rng.randint(*_BETWEEN))
                if fault.available(stage.cluster):
                    await fault.inject(stage.cluster, stage.rng)
                    stage.result.faults[fault.name] += 1
                await stage.cluster.wait_healthy(HEALTHY_SECONDS)
                injected += 1
                await traffic.check_so_far(so_far)
        await traffic.acknowledged(_BETWEEN[1])
        stage.found("what is acknowledged is there right after each fault", so_far.looked_at, so_far.problems)
        await judge(stage, traffic)


class _SoFar:
    """One finding out of many looks at a history that grows."""

    def __init__(self) -> None:
        self.looked_at = 0
        self._problems: dict[str, None] = {}

    def __call__(self, check: str, looked_at: int, problems: Iterable[str]) -> None:
        self.looked_at = max(self.looked_at, looked_at)
        self._problems.update(dict.fromkeys(problems))

    @property
    def problems(self) -> Sequence[str]:
        return list(self._problems)


def traffic_on(stage: Stage, place: str = "") -> Traffic:
    """Of every kind in one tenant, and by meaning in another; they are named after `place`."""
    everything, by_meaning = (f"{stage.prefix}-{place}{name}" for name in ("everything", "meaning"))
    return Traffic(
        stage.cluster,
        [everything, by_meaning],
        seed=stage.rng.random().hex(),
        pause=PAUSE_SECONDS,
        by_meaning=[by_meaning],
    )


async def judge(stage: Stage, traffic: Traffic) -> None:
    """Stop the traffic, find out what was in doubt, and hold everything against everything."""
    await traffic.stop()
    await traffic.settle()
    await traffic.check(stage.found)
    measure(stage, traffic)


def measure(stage: Stage, traffic: Traffic) -> None:
    """Counts, latencies, and how long nothing worked at the worst."""
    result, history = stage.result, traffic.history
    result.operations.add(traffic.operations)
    for method, measured in availability.latencies(history).items():
        result.distributions[method] = measured
    assert traffic.ended is not None
    events = [event for event in stage.timeline.events if event.began >= traffic.began]
    for what, successes in (("writes", availability.writes(history)), ("recalls", availability.recalls(history))):
        gaps = availability.by_fault(successes, events, after=_AFTER_SECONDS, until=traffic.ended)
        for label, of in gaps.items():
            result.figures[f"worst_seconds_without_{what}: {label}"] = round(max(of), 2)
        late = availability.longer_than(_MOST_SECONDS_WITHOUT, what, gaps)
        stage.found(f"{what} go on after each fault", sum(map(len, gaps.values())), late)
