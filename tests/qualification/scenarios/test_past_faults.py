"""What a repetition without the standby is held against, over a database that is made up."""

import asyncio
import random
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.qualification.report.results import RowResult
from tests.qualification.scenarios import past_faults
from tests.qualification.scenarios.past_faults import REPETITIONS_WITHOUT_STANDBY
from tests.qualification.scenarios.stage import Stage

VOUCHES = "no repetition vouches for what the standby lacks"
NAMES = ("a", "b")


class _Pair:
    """A database whose commits wait for the standby, as far as the machine is fast enough: `waiting` in each window."""

    def __init__(self, *waiting: int) -> None:
        self.primary = SimpleNamespace(is_running=True)
        self.has_standby = asyncio.Event()
        self.has_standby.set()
        self.crashes = 0
        self._waiting = list(waiting)

    async def kill9_standby(self) -> None:
        self.has_standby.clear()

    async def restart_standby(self) -> None:
        self.has_standby.set()

    async def kill9_primary(self) -> None:
        self.primary.is_running = False
        self.crashes += 1

    async def recover_primary(self) -> None:
        self.primary.is_running = True

    def direct_dsn(self) -> str:
        return ""

    async def waiting_commits(self) -> int:
        return self._waiting[0]

    def next_window(self) -> None:
        del self._waiting[0]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run it over a pair; `hasty` is what is acknowledged without the standby, when it is repeated."""

    async def played(pair: _Pair, hasty: Sequence[str] = ()) -> list[str]:
        async def commands(stage: Stage, number: int) -> list[past_faults._Command]:
            return [_command(pair, name, name in hasty) for name in NAMES]

        async def all_wait(*args: Any) -> bool:
            try:
                return await waits(*args)
            finally:
                pair.next_window()

        class Record:
            def __init__(self, dsn: str) -> None: ...

            async def requests(self, namespace: bytes) -> set[tuple[str, str]]:
                return {(name, "first") for name in NAMES}

        waits = past_faults._all_wait
        monkeypatch.setattr(past_faults, "_commands", commands)
        monkeypatch.setattr(past_faults, "_all_wait", all_wait)
        monkeypatch.setattr(past_faults, "Repository", Record)
        monkeypatch.setattr(past_faults, "_STALL_SECONDS", 0.01)
        result = RowResult(row=5, name="", promise="")
        cluster = cast(Any, SimpleNamespace(postgres=pair))
        await REPETITIONS_WITHOUT_STANDBY.run(
            Stage(cluster=cluster, rng=random.Random(1), seconds=0.0, prefix="q", result=result)
        )
        assert pair.has_standby.is_set()
        assert [one.check for one in result.findings if one.problems] in ([], [VOUCHES])
        return [problem for one in result.findings for problem in one.problems]

    return played


def _command(pair: _Pair, name: str, hasty: bool) -> past_faults._Command:
    async def first() -> None:
        await pair.has_standby.wait()

    async def again() -> None:
        if not hasty:
            await pair.has_standby.wait()

    return past_faults._Command(name=name, namespace=b"", method=name, request_id="first", first=first, again=again)


async def test_what_waits_for_the_standby_when_it_is_sent_and_when_it_is_repeated_is_right(play):
    pair = _Pair(2, 2)
    assert await play(pair) == []
    assert pair.crashes == 1


async def test_a_machine_that_is_too_slow_for_all_to_wait_at_one_moment_tries_again(play):
    pair = _Pair(1, 2, 0, 2, 2)
    assert await play(pair) == []
    assert pair.crashes == 2


async def test_what_is_never_seen_waiting_has_shown_nothing(play):
    (problem,) = await play(_Pair(2, 1, 1, 0))
    assert problem.startswith("in 3 tries it was never seen; in the last, 0 commits waited for the standby, of 2")


async def test_an_acknowledgement_without_the_standby_is_wrong_in_the_first_try(play):
    pair = _Pair(2, 1)
    assert await play(pair, hasty=["b"]) == ["b was acknowledged without the standby"]
    assert pair.crashes == 1
