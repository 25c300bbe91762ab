"""What rows say of faults that strike nothing, cannot be injected or break down; over a cluster that is made up."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.processes.polling import WaitTimeoutError
from tests.qualification.recorder.history import History
from tests.qualification.report.results import Operations, RowResult
from tests.qualification.report.timeline import Timeline
from tests.qualification.scenarios.endurance import FaultUnavailableError, inject_all, judge, judged_all_the_same
from tests.qualification.scenarios.exploratory import AtOnce
from tests.qualification.scenarios.stage import Stage


class _Fault:
    def __init__(self, name: str, *strikes: int, available: bool = True) -> None:
        self.name = name
        self._strikes = list(strikes)
        self._available = available

    def available(self, cluster: Any) -> bool:
        return self._available

    async def inject(self, cluster: Any, rng: random.Random) -> int:
        return self._strikes.pop(0)


class _Traffic:
    """`lost` is what its checks find, while it goes on and at the end; `settles`: whether nothing stays in doubt.
    `unexpected` is what a caller has ended with."""

    histories: Sequence[History] = ()
    history = History()
    operations = Operations()
    began, ended = 0.0, 1.0

    def __init__(self, *lost: str, settles: bool = True, unexpected: Exception | None = None) -> None:
        self._lost = lost
        self._settles = settles
        self._unexpected = unexpected
        self.rests = False

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        self.rests = True
        yield
        self.rests = False

    async def acknowledged(self, more: int) -> None:
        return None

    async def check_so_far(self, found: Any) -> None:
        found("kept so far", 1, self._lost)

    async def stop(self) -> None:
        if self._unexpected is not None:
            raise self._unexpected

    async def settle(self, timeout: float) -> None:
        if not self._settles:
            raise WaitTimeoutError("in doubt")

    async def check(self, found: Any) -> None:
        found("kept", 1, self._lost)


async def _whole(timeout: float) -> None:
    return None


def stage() -> Stage:
    return Stage(
        cluster=cast(Any, SimpleNamespace(wait_healthy=_whole, timeline=Timeline())),
        rng=random.Random(1),
        seconds=0.0,
        prefix="q",
        result=RowResult(row=1, name="", promise=""),
    )


async def _inject(stage: Stage, faults: list[_Fault], least: int = 0) -> list[str]:
    await inject_all(stage, cast(Any, _Traffic()), faults, least)
    (finding,) = [one for one in stage.result.findings if one.check == "each fault strikes something"]
    assert finding.looked_at == sum(stage.result.faults.values())
    return list(finding.problems)


async def test_a_fault_that_strikes_nothing_in_the_whole_row_is_found():
    assert await _inject(stage(), [_Fault("a", 3), _Fault("b", 0)]) == ["b struck nothing"]


async def test_a_fault_that_strikes_once_has_struck():
    row = stage()
    assert await _inject(row, [_Fault("a", 0, 2, 0)], least=3) == []
    assert row.result.figures == {"processes_connections_or_chunks_struck: a": 2}


async def test_a_fault_that_cannot_be_injected_in_a_healthy_cluster_is_an_error():
    with pytest.raises(FaultUnavailableError, match="b cannot be injected"):
        await _inject(stage(), [_Fault("a", 1, 1), _Fault("b", 1, available=False)])


class _BrokenFault(_Fault):
    async def inject(self, cluster: Any, rng: random.Random) -> int:
        if self._strikes:
            return await super().inject(cluster, rng)
        raise WaitTimeoutError("the drain does not end")


def _problems(row: Stage) -> dict[str, list[str]]:
    return {one.check: list(one.problems) for one in row.result.findings if one.problems}


async def test_what_was_lost_is_found_although_a_later_fault_breaks_down():
    row, traffic = stage(), cast(Any, _Traffic("r is not there"))
    with pytest.raises(WaitTimeoutError, match="drain"):
        async with judged_all_the_same(row, traffic):
            await inject_all(row, traffic, [_BrokenFault("a", 1)], least=2)
    assert _problems(row) == {
        "what is acknowledged is there right after each fault": ["r is not there"],
        "kept": ["r is not there"],
    }


async def test_what_is_not_settled_is_judged_all_the_same():
    row = stage()
    with pytest.raises(WaitTimeoutError, match="in doubt"):
        await judge(row, cast(Any, _Traffic("r is not there", settles=False)))
    assert _problems(row) == {"kept": ["r is not there"]}


async def test_what_a_caller_did_not_expect_is_raised_when_everything_has_been_judged():
    row = stage()
    with pytest.raises(ConnectionError, match="nobody answers"):
        await judge(
            row, cast(Any, _Traffic("r is not there", settles=False, unexpected=ConnectionError("nobody answers")))
        )
    assert _problems(row) == {"kept": ["r is not there"]}


async def test_the_error_of_a_row_is_the_first_one_and_what_was_lost_is_found_all_the_same():
    row, traffic = stage(), cast(Any, _Traffic("r is not there", unexpected=ConnectionError("nobody answers")))
    with pytest.raises(WaitTimeoutError, match="drain") as raised:
        async with judged_all_the_same(row, traffic):
            await _BrokenFault("a").inject(None, random.Random(1))
    assert raised.value.__notes__ == ["When it was judged after that: ConnectionError: nobody answers"]
    assert _problems(row) == {"kept": ["r is not there"]}


async def test_a_caller_that_ended_the_row_with_an_error_is_not_told_twice():
    row, unexpected = stage(), ConnectionError("corrupted")
    with pytest.raises(ConnectionError, match="corrupted") as raised:
        async with judged_all_the_same(row, cast(Any, _Traffic("r is not there", unexpected=unexpected))):
            raise unexpected
    assert not hasattr(raised.value, "__notes__")
    assert _problems(row) == {"kept": ["r is not there"]}


@pytest.mark.parametrize("heals", [True, False])
async def test_callers_rest_where_the_cluster_is_not_healthy_while_they_go_on_and_that_is_told(heals: bool):
    row, traffic = stage(), _Traffic()

    async def wait_healthy(timeout: float) -> None:
        if not (heals and traffic.rests):
            raise WaitTimeoutError(f"not healthy within {timeout:g} s: the index is behind")

    row.cluster.wait_healthy = wait_healthy  # type: ignore[assignment, method-assign]
    injecting = inject_all(row, cast(Any, traffic), [_Fault("a", 1, 1)], least=2)
    if not heals:
        with pytest.raises(WaitTimeoutError, match="within 180 s: the index is behind"):
            await injecting
        return
    await injecting
    assert row.result.caveats == [
        "Callers had to rest before the cluster was healthy again: not healthy within 60 s: the index is behind."
    ]


async def test_two_faults_at_once_have_struck_when_both_have():
    cluster, rng = cast(Any, None), random.Random(1)
    assert await AtOnce(_Fault("a", 3), _Fault("b", 2)).inject(cluster, rng) == 2
    assert await AtOnce(_Fault("a", 3), _Fault("b", 0)).inject(cluster, rng) == 0
