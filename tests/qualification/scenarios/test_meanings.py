"""A question that took too long to be understood is asked again, and nothing else is, over answers that are made up."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

from durable_memory_client import DegradationReason, RecallMode
from durable_memory_client.errors import SemanticUnavailableError
from tests.qualification.recorder.operations import Tally
from tests.qualification.report.results import Operations
from tests.qualification.report.timeline import Timeline
from tests.qualification.scenarios import meanings as scenario
from tests.qualification.scenarios.meanings import Meanings

BY_WORDS, BY_MEANING = SimpleNamespace(node_id="words", semantic=None), SimpleNamespace(node_id="meant", semantic=True)


class _Answer(list[Any]):
    """A recall with so many hits, by meaning unless it says why not."""

    def __init__(self, reason: DegradationReason | None = None) -> None:
        super().__init__([BY_MEANING] if reason is None else [BY_WORDS])
        self.degradation = None if reason is None else SimpleNamespace(reason=reason)


class _Session:
    """What is asked gets one answer after the other; the last of them for ever."""

    def __init__(self, answers: Sequence[_Answer | DegradationReason]) -> None:
        self.asked = 0
        self._answers = answers

    async def recall(self, question: str, *, mode: RecallMode | None, timeout: float) -> _Answer:
        answer = self._answers[min(self.asked, len(self._answers) - 1)]
        self.asked += 1
        if isinstance(answer, DegradationReason):
            raise SemanticUnavailableError(
                "mode is not possible", code=grpc.StatusCode.UNAVAILABLE, metadata={"cause": answer.name}
            )
        return answer


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario, "_PAUSE_SECONDS", 0.0)


async def _ask(session: _Session, mode: RecallMode) -> tuple[dict[str, list[str]], Meanings]:
    meanings = Meanings(cast(Any, None), Tally(Operations(), Timeline()), [7])
    return await meanings.ask(cast(Any, session), mode), meanings


@pytest.mark.parametrize("reason", [DegradationReason.DEADLINE, DegradationReason.PROVIDER_FAILED])
async def test_what_was_answered_by_words_because_it_took_too_long_is_asked_again(reason: DegradationReason):
    session = _Session([_Answer(reason), _Answer(reason), _Answer()])
    answers, meanings = await _ask(session, RecallMode.AUTO)
    assert answers == {"q7": ["meant"]}
    assert meanings.asked_again == {reason.name: 2}


@pytest.mark.parametrize("reason", [DegradationReason.DEADLINE, DegradationReason.PROVIDER_FAILED])
async def test_what_was_refused_because_it_took_too_long_is_asked_again(reason: DegradationReason):
    answers, meanings = await _ask(_Session([reason, _Answer()]), RecallMode.HYBRID)
    assert answers == {"q7": ["meant"]}
    assert meanings.asked_again == {reason.name: 1}


async def test_what_is_never_understood_finds_nothing_or_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scenario, "_PATIENT_SECONDS", 0.01)
    assert (await _ask(_Session([_Answer(DegradationReason.DEADLINE)]), RecallMode.AUTO))[0] == {"q7": []}
    with pytest.raises(SemanticUnavailableError):
        await _ask(_Session([DegradationReason.PROVIDER_FAILED]), RecallMode.SEMANTIC)


async def test_an_index_that_is_not_there_is_the_answer():
    session = _Session([_Answer(DegradationReason.INDEX_REGRESSED), _Answer()])
    assert (await _ask(session, RecallMode.AUTO))[0] == {"q7": []}
    session = _Session([DegradationReason.INDEX_NOT_BUILT, _Answer()])
    with pytest.raises(SemanticUnavailableError):
        await _ask(session, RecallMode.HYBRID)
    assert session.asked == 1
