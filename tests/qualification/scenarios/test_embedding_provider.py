"""Whom row 7 asks while the provider is away, and what it takes the time of, over servers that are made up."""

import random
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from durable_memory_client import DegradationReason, RecallMode
from tests.qualification.recorder.operations import Tally
from tests.qualification.report.results import Operations, RowResult, Verdict
from tests.qualification.report.timeline import Timeline
from tests.qualification.scenarios import meanings as scenario
from tests.qualification.scenarios.embedding_provider import _timed, ask_while_away
from tests.qualification.scenarios.meanings import Meanings, node_id
from tests.qualification.scenarios.paraphrases import PAIRS
from tests.qualification.scenarios.stage import Stage


class _Provider:
    """It is there, or not."""

    is_there = True

    def __init__(self) -> None:
        self.kills = 0

    async def kill9(self) -> None:
        self.is_there = False
        self.kills += 1

    async def start(self) -> None:
        self.is_there = True


class _Server:
    """It remembers the vectors of all questions, or of none, and understands those whose vector it has or gets."""

    def __init__(self, name: str, provider: _Provider, *, remembers: bool) -> None:
        self.name = name
        self._provider = provider
        self._remembers = remembers
        self._vectors: set[str] = set()

    def recall(self, question: str) -> Any:
        if question not in self._vectors and not self._provider.is_there:
            return _Recall([], DegradationReason.PROVIDER_FAILED)
        if self._remembers:
            self._vectors.add(question)
        number = next(number for number, pair in enumerate(PAIRS) if pair[1] == question)
        return _Recall([SimpleNamespace(node_id=node_id(number), semantic=True)], None)


class _Recall(list[Any]):
    def __init__(self, hits: list[Any], reason: DegradationReason | None) -> None:
        super().__init__(hits)
        self.degradation = None if reason is None else SimpleNamespace(reason=reason)


class _Session:
    """By way of whichever server is next."""

    session_id = "assistant"
    info = SimpleNamespace(binding=None)

    def __init__(self, server: Callable[[], _Server]) -> None:
        self.server = server

    async def recall(self, question: str, *, mode: RecallMode, timeout: float) -> Any:
        return self.server().recall(question)


class _Cluster:
    def __init__(self, *, remembers: bool = True) -> None:
        self.embedding = _Provider()
        self.servers = [_Server(f"server-{number}", self.embedding, remembers=remembers) for number in range(2)]
        self.wires = [SimpleNamespace(port=number) for number in range(2)]
        self._turn = 0

    def client(self, tenant: str, *, address: str) -> Any:
        server = self.servers[int(address.rpartition(":")[2])]

        async def resume(session_id: str, binding: None) -> _Session:
            return _Session(lambda: server)

        return SimpleNamespace(resume_session=resume)

    def next(self) -> _Server:
        self._turn += 1
        return self.servers[self._turn % 2]


async def _asked(cluster: _Cluster, *, calls_between: int = 0) -> RowResult:
    result = RowResult(row=7, name="", promise="")
    stage = SimpleNamespace(cluster=cluster, prefix="", rng=random.Random(0), timeline=Timeline(), result=result)
    stage.found = lambda *found: Stage.found(cast(Any, stage), *found)
    meanings = Meanings(cast(Any, None), Tally(Operations(), Timeline()))
    session = cast(Any, _Session(cluster.next))
    before = await meanings.ask(session, RecallMode.SEMANTIC)
    for _ in range(calls_between):
        cluster.next()
    await ask_while_away(cast(Any, stage), meanings, session, before)
    assert cluster.embedding.is_there
    assert result.faults == Counter({"kill -9 of the embedding provider": 1})
    return result


@pytest.mark.parametrize("calls_between", [0, 1])
async def test_whom_the_front_door_chooses_does_not_matter(calls_between: int):
    (finding,) = (await _asked(_Cluster(), calls_between=calls_between)).findings
    assert (finding.looked_at, finding.problems) == (2 * len(PAIRS), [])


async def test_servers_that_do_not_remember_vectors_of_questions_are_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scenario, "_PATIENT_SECONDS", 0.0)
    (finding,) = (await _asked(_Cluster(remembers=False))).findings
    assert (finding.verdict, len(finding.problems)) == (Verdict.FAIL, 2 * len(PAIRS))


async def test_the_provider_is_back_also_if_asking_fails():
    cluster = _Cluster()

    def recall(question: str) -> Any:
        if not cluster.embedding.is_there:
            raise ConnectionError("gone")
        return _Recall([], None)

    for server in cluster.servers:
        server.recall = recall  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        await _asked(cluster)
    assert (cluster.embedding.kills, cluster.embedding.is_there) == (1, True)


async def test_the_time_of_a_question_is_that_of_its_answer_and_not_of_what_was_not_understood_before(
    monkeypatch: pytest.MonkeyPatch,
):
    now = 100.0
    recalls: list[tuple[float, Any]] = [(60.0, _Recall([], DegradationReason.DEADLINE)), (0.5, _Recall([], None))]

    async def recall(question: str, **_: object) -> Any:
        nonlocal now
        took, answer = recalls.pop(0)
        now += took
        return answer

    monkeypatch.setattr(scenario, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(scenario, "_PAUSE_SECONDS", 0.0)
    meanings = Meanings(cast(Any, None), Tally(Operations(), Timeline()), [7])
    stage = SimpleNamespace(timeline=Timeline())
    answers, seconds = await _timed(cast(Any, stage), meanings, cast(Any, SimpleNamespace(recall=recall)))
    assert (answers, seconds) == ({"q7": []}, [0.5])
    assert meanings.asked_again == {"DEADLINE": 1}
