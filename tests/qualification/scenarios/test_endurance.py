"""What rows say of faults that strike nothing, or cannot be injected; over a cluster that is made up."""

import random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.qualification.report.results import RowResult
from tests.qualification.scenarios.endurance import FaultUnavailableError, inject_all
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
    async def acknowledged(self, more: int) -> None:
        return None

    async def check_so_far(self, found: Any) -> None:
        found("kept", 1, [])


async def _whole(timeout: float) -> None:
    return None


def stage() -> Stage:
    return Stage(
        cluster=cast(Any, SimpleNamespace(wait_healthy=_whole)),
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
    assert row.result.figures == {"times_struck: a": 2}


async def test_a_fault_that_cannot_be_injected_in_a_healthy_cluster_is_an_error():
    with pytest.raises(FaultUnavailableError, match="b cannot be injected"):
        await _inject(stage(), [_Fault("a", 1, 1), _Fault("b", 1, available=False)])


async def test_two_faults_at_once_have_struck_when_both_have():
    cluster, rng = cast(Any, None), random.Random(1)
    assert await AtOnce(_Fault("a", 3), _Fault("b", 2)).inject(cluster, rng) == 2
    assert await AtOnce(_Fault("a", 3), _Fault("b", 0)).inject(cluster, rng) == 0
