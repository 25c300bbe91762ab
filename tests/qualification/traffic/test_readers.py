"""The last question by meaning is asked when everything has a vector, however long that takes."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

from durable_memory_client import DegradationReason, MemoryServiceError, RecallMode
from tests.qualification.recorder.recorder import Question, Recorder
from tests.qualification.traffic import readers
from tests.qualification.traffic.readers import LastingRecaller

AWAY = MemoryServiceError("no", code=grpc.StatusCode.FAILED_PRECONDITION, definite=True, attempts=1)


class _Memory:
    """A service whose index lacks so many nodes, one look after the other; None: it does not say. A recall finds it to
    lack `recalled`."""

    def __init__(self, *lacking: int | None, recalled: tuple[int, ...] = (0,)) -> None:
        self._lacking = list(lacking)
        self._recalled = list(recalled)
        self.asked: list[tuple[str, RecallMode]] = []

    async def get_index_status(self, timeout: float) -> Any:
        lacking = self._lacking.pop(0) if len(self._lacking) > 1 else self._lacking[0]
        if lacking is None:
            raise AWAY
        return SimpleNamespace(unindexed_active_count=lacking)

    async def preview(self, text: str, *, mode: RecallMode, max_results: int) -> Any:
        self.asked.append((text, mode))
        return _Recall(self._recalled.pop(0))


class _Recall(list[Any]):
    change_token = None
    degradation: DegradationReason | None = None
    mode_used = "HYBRID"
    hits = ()

    def __init__(self, lacking: int) -> None:
        super().__init__()
        self.semantic = SimpleNamespace(unindexed_active_count=lacking)


def recaller(memory: _Memory, *questions: str) -> LastingRecaller:
    recorder = Recorder()
    recorder.questions += [Question(node_id=text, digest="", text=text) for text in questions]
    return LastingRecaller("r", [cast(Any, memory)], recorder, cast(Any, None), seed="1", timeout=None)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_LOOK_SECONDS", 0.0)


async def test_what_was_written_last_is_asked_for_by_meaning_when_everything_has_a_vector():
    memory = _Memory(2, None, 1, 0)
    await recaller(memory, "first", "last").finish()
    assert memory.asked == [("last", RecallMode.HYBRID)]


async def test_it_is_asked_again_until_the_answer_is_by_all_vectors():
    memory = _Memory(0, recalled=(1, 0))
    await recaller(memory, "last").finish()
    assert len(memory.asked) == 2


@pytest.mark.parametrize("lacking", [1, None])
async def test_an_index_that_never_has_everything_is_for_the_checks_to_find(
    lacking: int | None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(readers, "_CAUGHT_UP_SECONDS", 0.01)
    memory = _Memory(lacking)
    await asyncio.wait_for(recaller(memory, "last").finish(), 60.0)
    assert memory.asked == []


async def test_where_nothing_was_written_nothing_is_asked():
    memory = _Memory(None)
    await recaller(memory).finish()
    assert memory.asked == []
