"""How the row about many writers lets them write, over processes and a clock that are made up."""

import asyncio
import random
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.processes.polling import wait_until_async
from tests.qualification.checks import assumptions
from tests.qualification.recorder.history import Call, Effect, History, Outcome, merged
from tests.qualification.report.results import RowResult
from tests.qualification.report.timeline import Timeline
from tests.qualification.scenarios import concurrent_writers
from tests.qualification.scenarios.concurrent_writers import _Course, _goes_on, _seconds_to_something_new, _stop, _write
from tests.qualification.scenarios.stage import Stage
from tests.qualification.traffic import worker_process
from tests.qualification.traffic.worker_process import WorkerProcess


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


async def test_a_process_that_ends_by_itself_is_told_while_something_new_is_awaited(clock: _Clock):
    workers = [_Worker(clock, "writer-0"), _Worker(clock, "writer-1", ends_by_itself=True)]
    course = _Course(cast(Any, None), cast(Any, None), cast(Any, workers), killed_at=1_000.0)
    with pytest.raises(RuntimeError, match="writer-1 ended with 1"):
        await _goes_on(course)


class _Stopping:
    """It fails at once when it is told to end, or ends when it may."""

    def __init__(self, may_end: threading.Event | None = None) -> None:
        self.told, self.ended = threading.Event(), threading.Event()
        self._may_end = may_end

    def stop(self) -> None:
        self.told.set()
        if self._may_end is None:
            raise RuntimeError("worker writer-1 ended with 1")
        self._may_end.wait(100)
        self.ended.set()


def _fail(_: asyncio.Task[None]) -> type[BaseException]:
    return RuntimeError


def _cancel(stopping: asyncio.Task[None]) -> type[BaseException]:
    stopping.cancel()
    return asyncio.CancelledError


@pytest.mark.parametrize("breaking", [_fail, _cancel])
async def test_no_process_is_left_behind_by_one_that_fails_or_by_a_cancellation(
    breaking: Callable[[asyncio.Task[None]], type[BaseException]],
):
    may_end = threading.Event()
    slow = [_Stopping(may_end), _Stopping(may_end)]
    workers = [*slow, _Stopping()]
    stopping = asyncio.create_task(_stop(cast(Any, workers)))
    try:
        await wait_until_async(lambda: all(worker.told.is_set() for worker in workers))
        error = breaking(stopping)
        await asyncio.wait([stopping], timeout=0.05)
        assert not stopping.done()
    finally:
        may_end.set()
    with pytest.raises(error):
        await stopping
    assert all(worker.ended.is_set() for worker in slow)


def test_a_process_that_could_not_be_ended_is_still_there_to_be_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    did: list[str] = []

    def end(timeout: float) -> int:
        did.append("told to end")
        raise KeyboardInterrupt

    child = SimpleNamespace(end=end, kill9=lambda: did.append("killed"))
    monkeypatch.setattr(worker_process, "Child", lambda *_, **__: child)
    worker = WorkerProcess(
        tmp_path, logs=tmp_path, address="", token="", canary="", tenant="q", name="writer-0", seed=1
    )
    with pytest.raises(KeyboardInterrupt), worker:
        worker.stop()
    assert did == ["told to end", "killed"]


def test_how_long_nothing_new_succeeded_after_a_process_was_killed_is_told():
    def call(request_id: str, began: float, ended: float) -> Call:
        effect = Effect(revision=1, answer="")
        return Call(
            method="Remember",
            request_id=request_id,
            began=began,
            ended=ended,
            outcome=Outcome.OK,
            effect=effect,
            caller="1",
        )

    history = History()
    history.calls = [call("under way", 99.0, 101.0)]
    assert _seconds_to_something_new(history, 100.0) == float("inf")
    history.calls += [call("new", 101.0, 190.0), call("newer", 185.0, 195.0)]
    assert _seconds_to_something_new(history, 100.0) == 90.0
