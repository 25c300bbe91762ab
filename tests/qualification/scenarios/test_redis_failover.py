"""What the row about failovers says of the loss of an index, over a place that is made up."""

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from durable_memory_client import IndexState
from tests.processes.polling import WaitTimeoutError
from tests.qualification.checks.probes import Probe
from tests.qualification.report.results import RowResult
from tests.qualification.scenarios import redis_failover
from tests.qualification.scenarios.redis_failover import judge_detection, lose_everything
from tests.qualification.scenarios.stage import Stage

LOST = Probe(began=1.0, ended=1.1, mode="AUTO", used="LEXICAL", degradation="INDEX_REGRESSED", found=("node-0",))
AWAY = Probe(began=1.0, ended=1.1, mode="AUTO", used="LEXICAL", degradation="INDEX_UNAVAILABLE", found=("node-0",))
EMPTY = Probe(began=1.0, ended=1.1, mode="AUTO", used="HYBRID")


async def _problems(
    monkeypatch: pytest.MonkeyPatch, told: list[Probe], called: IndexState = IndexState.REGRESSED
) -> list[str]:
    """`told`: what recalls are told, one after the other, while nobody builds the index again."""
    did: list[str] = []
    probing = SimpleNamespace(probes=[])

    @asynccontextmanager
    async def probe(place: Any, modes: Any) -> AsyncIterator[Any]:
        did.append("asked")
        yield probing

    async def wait(condition: Callable[[], bool], timeout: float, *, what: str) -> None:
        for one in told:
            probing.probes.append(one)
            if condition():
                return
        raise WaitTimeoutError(what)

    async def status(place: Any) -> Any:
        did.append("status")
        return SimpleNamespace(state=called)

    async def refreshed(place: Any) -> None:
        did.append("built again")

    monkeypatch.setattr(redis_failover, "RecallProbe", probe)
    monkeypatch.setattr(redis_failover, "wait_until_async", wait)
    monkeypatch.setattr(redis_failover, "status_of", status)
    monkeypatch.setattr(redis_failover, "refreshed", refreshed)
    stage = Stage(
        cluster=cast(Any, None),
        rng=random.Random(1),
        seconds=0.0,
        prefix="q",
        result=RowResult(row=4, name="", promise=""),
    )
    await judge_detection(stage, cast(Any, SimpleNamespace(remembered=["request-0"])))
    assert did == ["asked", "status", "built again"]
    assert all(one.looked_at for one in stage.result.findings)
    return [problem for one in stage.result.findings for problem in one.problems]


async def test_an_index_that_is_lost_is_called_so_by_recalls_and_by_its_status(monkeypatch: pytest.MonkeyPatch):
    assert await _problems(monkeypatch, [AWAY, AWAY, LOST]) == []


async def test_an_index_whose_loss_recalls_do_not_tell_is_found(monkeypatch: pytest.MonkeyPatch):
    assert await _problems(monkeypatch, [AWAY, AWAY]) == [
        "no recall said INDEX_REGRESSED; they said {'INDEX_UNAVAILABLE': 2}"
    ]


async def test_an_index_whose_loss_the_status_does_not_tell_is_found(monkeypatch: pytest.MonkeyPatch):
    assert await _problems(monkeypatch, [LOST], IndexState.NOT_BUILT) == [
        "the index was called NOT_BUILT when all was lost"
    ]


async def test_a_recall_that_searches_what_is_left_of_a_lost_index_is_found(monkeypatch: pytest.MonkeyPatch):
    assert await _problems(monkeypatch, [EMPTY, LOST]) == ["a AUTO recall at 1.000, answered by HYBRID, misses node-0"]


@pytest.mark.parametrize(
    ("found", "problems"),
    [
        (("node-0",), []),
        (("node-0", "foreign"), ["a HYBRID recall at 1.000, answered by HYBRID, returned foreign"]),
        ((), ["a HYBRID recall at 1.000, answered by HYBRID, misses node-0"]),
    ],
)
async def test_what_recalls_find_while_all_is_lost_is_held_against_what_there_is(
    monkeypatch: pytest.MonkeyPatch, found: tuple[str, ...], problems: list[str]
):
    answers = [LOST, Probe(began=1.0, ended=1.1, mode="HYBRID", used="HYBRID", found=found)]

    @asynccontextmanager
    async def probe(place: Any) -> AsyncIterator[Any]:
        yield SimpleNamespace(probes=answers)

    async def nothing(*_: object) -> None: ...

    monkeypatch.setattr(redis_failover, "RecallProbe", probe)
    monkeypatch.setattr(redis_failover, "_found_again", nothing)
    stage = Stage(
        cluster=cast(Any, SimpleNamespace(redis=SimpleNamespace(restart_empty_everywhere=nothing))),
        rng=random.Random(1),
        seconds=0.0,
        prefix="q",
        result=RowResult(row=4, name="", promise=""),
    )
    await lose_everything(stage, [cast(Any, SimpleNamespace(remembered=["request-0"]))])
    (finding,) = stage.result.findings
    assert (finding.looked_at, finding.problems) == (2, problems)
    assert stage.result.figures["recalls_without_vectors_when_all_was_lost: INDEX_REGRESSED"] == 1
