"""How the row about many writers lets them write, over processes and a clock that are made up."""

import random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.qualification.checks import assumptions
from tests.qualification.recorder.history import Call, Effect, History, Outcome, merged
from tests.qualification.report.results import RowResult
from tests.qualification.report.timeline import Timeline
from tests.qualification.scenarios import concurrent_writers
from tests.qualification.scenarios.concurrent_writers import _Course, _write
from tests.qualification.scenarios.stage import Stage


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class _Worker:
    """A process that writes whenever it is looked at, until it is killed or told to end."""

    def __init__(self, clock: _Clock, name: str, *, ends_by_itself: bool = False) -> None:
        self.name = name
        self.ends: list[tuple[str, float]] = []
        self._clock = clock
        self._ends_by_itself = ends_by_itself
        self._wrote = History()

    def history(self) -> History:
        if not self.ends:
            now = self._clock.now + 0.1
            number = len(self._wrote.calls)
            effect = Effect(revision=number, answer="")
            self._wrote.calls.append(
                Call(
                    method="Remember",
                    request_id=f"{self.name}-{number}",
                    began=now,
                    ended=now,
                    outcome=Outcome.OK,
                    effect=effect,
                    caller="1",
                )
            )
        return self._wrote

    def check_running(self) -> None:
        if self._ends_by_itself:
            raise RuntimeError(f"worker {self.name} ended with 1")

    def kill9(self) -> None:
        self.ends.append(("killed", self._clock.now))

    def stop(self) -> None:
        self.ends.append(("told to end", self._clock.now))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    clock = _Clock()
    monkeypatch.setattr(concurrent_writers, "time", clock)
    monkeypatch.setattr(concurrent_writers, "_BETWEEN_REFRESHES_SECONDS", 0.0)
    monkeypatch.setattr(concurrent_writers, "_MOMENT_SECONDS", 0.0)
    return clock


async def _written(monkeypatch: pytest.MonkeyPatch, clock: _Clock, workers: list[_Worker], refresh: float) -> _Course:
    """After 20 s in which each refresh takes so many."""

    async def ask_all(self: _Course) -> None:
        clock.now += refresh

    monkeypatch.setattr(_Course, "ask_all", ask_all)
    stage = Stage(
        cluster=cast(Any, SimpleNamespace(timeline=Timeline())),
        rng=random.Random(1),
        seconds=35.0,
        prefix="q",
        result=RowResult(row=2, name="", promise=""),
    )
    course = _Course(stage, cast(Any, None), cast(Any, workers))
    await _write(course)
    return course


@pytest.mark.parametrize("refresh", [1.0, 90.0], ids=["fast", "slow"])
async def test_one_process_is_killed_and_the_others_write_until_they_are_told_to_end_however_slow_everything_is(
    monkeypatch: pytest.MonkeyPatch, clock: _Clock, refresh: float
):
    workers = [_Worker(clock, f"writer-{number}") for number in range(4)]
    course = await _written(monkeypatch, clock, workers, refresh)
    ends = {worker.name: worker.ends for worker in workers}
    killed = ends.pop(course.killed)
    assert killed == [("killed", course.killed_at)]
    assert list(ends.values()) == [[("told to end", course.ended)]] * 3
    assert course.ended >= course.began + 20.0
    history = merged([worker.history() for worker in workers])
    assert assumptions.nothing_after(history, course.killed_at) == []


async def test_a_process_that_ends_by_itself_breaks_the_row(monkeypatch: pytest.MonkeyPatch, clock: _Clock):
    workers = [_Worker(clock, f"writer-{number}", ends_by_itself=number == 2) for number in range(4)]
    with pytest.raises(RuntimeError, match="writer-2 ended with 1"):
        await _written(monkeypatch, clock, workers, 1.0)
