"""What several rows have in common: traffic that goes on while one fault follows another, and is judged at the end."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from tests.processes.polling import WaitTimeoutError
from tests.qualification.checks import availability
from tests.qualification.checks.doubts import Span
from tests.qualification.faults.fault import Fault
from tests.qualification.report.timeline import Lane
from tests.qualification.scenarios.stage import Stage
from tests.qualification.scenarios.traffic_index import judge_index, leave_alone, observer_of
from tests.qualification.traffic.traffic import Traffic, stop_and_check

HEALTHY_SECONDS: Final = 180.0
_HEALTHY_UNDER_LOAD_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 0.5
"""How long callers rest: the model shares two processors with everything else, and must keep up with them."""
_BETWEEN: Final = (1, 12)
"""So many commands are acknowledged in each namespace between two faults, so that none comes at a quiet moment."""
_MOST_SECONDS_WITHOUT: Final = 30.0
"""After a fault was mended. No promise of the service, but the end of patience: what takes longer than that hangs."""
_AFTER_SECONDS: Final = 10.0
"""How long after it a fault's gap is looked for."""
_RESTED: Final = "Callers had to rest before the cluster was healthy again"
_STRUCK: Final = "processes_connections_or_chunks_struck"
"""Which of them depends on the fault: a process that ends is one, and so is a chunk that is late."""
_JUDGED_SECONDS: Final = 600.0
"""For judging what a fault left that broke down: perhaps nobody answers any more. Longer than it takes to give up what
stays in doubt."""


async def endure(stage: Stage, traffic: Traffic, faults: Sequence[Fault], *, least: int = 0) -> None:
    """`inject_all` under traffic, then `judge` and `judge_index`. Raises: FaultUnavailableError.

    Nothing of the traffic's is indexed by itself any more after it.
    """
    async with observer_of(stage) as observer, traffic:
        places = [tenancy.memory for tenancy in traffic.tenancies]
        try:
            async with judged_all_the_same(stage, traffic):
                await inject_all(stage, traffic, faults, least)
            await judge(stage, traffic)
            await judge_index(stage, observer, places)
        finally:
            await leave_alone(places)


@asynccontextmanager
async def judged_all_the_same(stage: Stage, traffic: Traffic) -> AsyncIterator[None]:
    """If the block breaks down, judge the traffic before that is raised: what is lost may be why, and counts for more.

    What goes wrong with that is added to the error as a note.
    """
    try:
        yield
    except Exception as broken:
        try:
            async with asyncio.timeout(_JUDGED_SECONDS):
                await judge(stage, traffic)
        except Exception as unjudged:  # noqa: BLE001 - the first error is what the row has to say
            if unjudged is not broken:
                broken.add_note(f"When it was judged after that: {type(unjudged).__name__}: {unjudged}")
        raise


async def inject_all(stage: Stage, traffic: Traffic, faults: Sequence[Fault], least: int = 0) -> None:
    """Inject each fault once, then go round again for the time there is, and at least `least` faults.

    The order is by chance, every round another. Whatever was acknowledged at a moment is looked for right after the
    fault, while callers go on.

    Raises: FaultUnavailableError.
    """
    ends_at = time.monotonic() + stage.seconds
    injected = 0
    so_far = _SoFar()
    struck: Counter[str] = Counter()
    try:
        while injected < max(len(faults), least) or time.monotonic() < ends_at:
            for fault in stage.rng.sample(faults, len(faults)):
                if injected >= max(len(faults), least) and time.monotonic() >= ends_at:
                    break
                await traffic.acknowledged(stage.rng.randint(*_BETWEEN))
                if not fault.available(stage.cluster):
                    raise FaultUnavailableError(f"{fault.name} cannot be injected in a healthy cluster")
                struck[fault.name] += await fault.inject(stage.cluster, stage.rng)
                stage.result.faults[fault.name] += 1
                injected += 1
                await healthy(stage, traffic)
                await traffic.check_so_far(so_far)
        await traffic.acknowledged(_BETWEEN[1])
    finally:
        # Also when a fault breaks down: what was found by then is found.
        stage.found("what is acknowledged is there right after each fault", so_far.looked_at, so_far.problems)
        stage.found("each fault strikes something", injected, struck_nothing(struck))
        for name, times in struck.items():
            stage.result.figures[f"{_STRUCK}: {name}"] = times


async def healthy(stage: Stage, traffic: Traffic) -> None:
    """Wait for it while callers go on; where they write faster than the model embeds, in the end while they rest.

    Raises: WaitTimeoutError.
    """
    try:
        await stage.cluster.wait_healthy(_HEALTHY_UNDER_LOAD_SECONDS)
    except WaitTimeoutError as error:
        with traffic.at_rest():
            await stage.cluster.wait_healthy(HEALTHY_SECONDS)
        if not any(caveat.startswith(_RESTED) for caveat in stage.result.caveats):  # once is enough
            stage.result.caveats.append(f"{_RESTED}: {error}.")


def struck_nothing(struck: Mapping[str, int]) -> list[str]:
    """The faults that struck nothing in all their times: the row has not shown what they are there for."""
    return [f"{name} struck nothing" for name, times in struck.items() if not times]


class FaultUnavailableError(Exception):
    """A fault of a row cannot be injected although the cluster is whole: the row would go without it unseen."""


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


def spans_of(stage: Stage, traffic: Traffic, names: Collection[str]) -> list[Span]:
    """When faults of these names were there, in the time of this traffic."""
    return [
        (event.began, event.began if event.ended is None else event.ended)
        for event in stage.timeline.events
        if event.lane is Lane.FAULT and event.label in names and event.began >= traffic.began
    ]


async def judge(stage: Stage, traffic: Traffic) -> None:
    """Stop the traffic, find out what was in doubt, and hold everything against everything.

    Raises in the end what a caller did not expect, or WaitTimeoutError if something stays in doubt.
    """
    try:
        await stop_and_check(traffic, stage.found)
    finally:
        measure(stage, traffic)


def measure(stage: Stage, traffic: Traffic) -> None:
    """Counts, latencies, and how long nothing worked at the worst."""
    result, history = stage.result, traffic.history
    result.operations.add(traffic.operations)
    for method, measured in availability.latencies(history).items():
        result.distributions[method] = measured
    assert traffic.ended is not None
    events = [event for event in stage.timeline.events if event.began >= traffic.began]
    writes, recalls = availability.writes(traffic.histories), availability.recalls(history)
    for what, successes in (("writes", writes), ("recalls", recalls)):
        gaps = availability.by_fault(successes, events, after=_AFTER_SECONDS, until=traffic.ended)
        for label, of in gaps.items():
            result.figures[f"worst_seconds_without_{what}: {label}"] = round(max(of), 2)
        mended = availability.once_mended(successes, events, after=_AFTER_SECONDS, until=traffic.ended)
        late = availability.longer_than(_MOST_SECONDS_WITHOUT, what, mended)
        stage.found(f"{what} go on after each fault", sum(map(len, mended.values())), late)
