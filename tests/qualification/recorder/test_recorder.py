"""A recorder notes what its caller learns: no more, no less, and no text."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from pathlib import Path

import grpc
import pytest

from durable_memory_client import ChangeToken, Citation, MemoryServiceError, Namespace, Recall, Remembered, Revised
from durable_memory_client.errors import NotServingError, OutcomeUnknownError, RevisionConflictError
from durable_memory_client.values.enums import RecallMode, RememberOutcome
from tests.qualification.recorder.history import AFTERWARDS, Fate, Made, Outcome, Write
from tests.qualification.recorder.journal import Journal, read_history
from tests.qualification.recorder.recorder import Command, Question, Recorder
from tests.qualification.report.timeline import Series, Timeline
from tests.qualification.traffic.wording import digest_of

_LATENCY = Series.LATENCY_SECONDS
TEXT = "the pilot sold a goose"
TOKEN = ChangeToken("h", 3)


def remembered(outcome: RememberOutcome = RememberOutcome.CREATED) -> Remembered:
    return Remembered(outcome=outcome, citation=Citation(3, "n", 1, "0" * 64), change_token=TOKEN)


def error(kind: type[MemoryServiceError], *, definite: bool, attempts: int = 1) -> MemoryServiceError:
    return kind("no", code=grpc.StatusCode.ABORTED, definite=definite, attempts=attempts)


def command(*answers: Remembered | MemoryServiceError) -> Command:
    left = list(answers)

    async def send(timeout: float | None) -> Remembered:
        answer = left.pop(0)
        if isinstance(answer, MemoryServiceError):
            raise answer
        return answer

    write = Write(expected=0, text=digest_of(TEXT))
    return Command(method="Remember", request_id="r", send=send, text=TEXT, caller="c", writes=(write,))


async def test_an_answer_is_noted_with_what_it_made_and_what_can_be_asked_and_repeated():
    timeline = Timeline()
    recorder = Recorder(process="p", timeline=timeline, namespace="acme/default")
    asked = command(remembered(), remembered())
    call, answer = await recorder.attempt(asked)
    assert answer == remembered()
    assert (call.outcome, call.process, call.caller, call.command) == (Outcome.OK, "p", "c", 1)
    assert call.effect is not None
    assert (call.effect.revision, call.effect.made) == (3, (Made("n", 1),))
    assert recorder.questions == [Question(node_id="n", digest=digest_of(TEXT), text=TEXT)]
    again, _ = await recorder.attempt(asked, by="repeater")
    assert (again.command, again.caller) == (1, "repeater")
    assert recorder.acknowledged == [asked]
    assert len(timeline.samples[Series.LATENCY_SECONDS, "Remember ok"]) == 2
    assert timeline.samples[Series.NAMESPACE_REVISION, "acme/default"][0].value == 3


async def test_a_change_comes_through_once_and_for_those_who_are_at_work():
    recorder = Recorder()
    new, settled = command(remembered(), remembered()), replace(command(remembered()), request_id="s")
    first, _ = await recorder.attempt(new)
    await recorder.attempt(new, by="repeater")
    await recorder.attempt(settled, by=AFTERWARDS)
    await recorder.attempt(replace(command(remembered(RememberOutcome.UNCHANGED)), request_id="u"))
    assert recorder.came_through == [first]


async def test_an_answer_that_made_nothing_makes_nothing():
    recorder = Recorder()
    call, _ = await recorder.attempt(command(remembered(RememberOutcome.UNCHANGED)))
    assert call.effect is not None
    assert (call.effect.revision, call.effect.made, recorder.questions) == (None, (), [])


@pytest.mark.parametrize(
    ("failure", "outcome", "known"),
    [
        (error(RevisionConflictError, definite=True), Outcome.REFUSED, Fate.REFUSED),
        (error(OutcomeUnknownError, definite=False), Outcome.UNKNOWN, Fate.UNKNOWN),
        # An answer speaks of its own attempt alone: the client, or a proxy that says so, made another before it.
        (error(RevisionConflictError, definite=False, attempts=2), Outcome.UNKNOWN, Fate.UNKNOWN),
        (error(NotServingError, definite=True), Outcome.REFUSED, Fate.REFUSED),
    ],
)
async def test_what_is_not_definite_is_in_doubt(failure: MemoryServiceError, outcome: Outcome, known: Fate):
    recorder = Recorder()
    asked = command(failure)
    call, answer = await recorder.attempt(asked)
    assert (call.outcome, answer) == (outcome, None)
    assert call.reason == failure.reason
    assert recorder.with_fate(known) == [asked]


async def test_another_command_under_the_same_name_has_another_number():
    recorder = Recorder()
    await recorder.attempt(command(remembered()))
    call, _ = await recorder.attempt(command(remembered()))
    assert [one.command for one in recorder.calls] == [1, 2]
    assert call.key == recorder.calls[0].key


async def test_a_call_that_is_under_way_or_cancelled_is_in_doubt(tmp_path: Path):
    started = asyncio.Event()

    async def send(timeout: float | None) -> Revised:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    with Journal(tmp_path / "w.jsonl") as journal:
        recorder = Recorder(journal=journal)
        task = asyncio.create_task(recorder.attempt(Command(method="ReviseMemory", request_id="r", send=send)))
        await started.wait()
        (under_way,) = recorder.calls_so_far()
        assert (under_way.outcome, under_way.ended) == (Outcome.UNKNOWN, math.inf)
        assert read_history(tmp_path / "w.jsonl").calls == [under_way]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert [call.reason for call in read_history(tmp_path / "w.jsonl").calls] == ["CANCELLED"]


def recalling(answer: Recall | MemoryServiceError) -> Callable[[], Awaitable[Recall]]:
    async def recall() -> Recall:
        if isinstance(answer, MemoryServiceError):
            raise answer
        return answer

    return recall


async def test_a_recall_is_noted_with_the_revision_it_is_for_or_why_there_is_none():
    timeline = Timeline()
    recorder = Recorder(process="p", timeline=timeline)
    await recorder.attempt(command(remembered()))
    question = Question(node_id="n", digest=digest_of(TEXT), text=TEXT)
    answer = Recall(namespace=Namespace("acme", "u", "s"), change_token=TOKEN, mode_used=RecallMode.LEXICAL)
    for one in (answer, error(NotServingError, definite=False)):
        await recorder.recall(
            recalling(one), question=question, method="PreviewRecall", mode=RecallMode.AUTO, max_results=5, caller="c"
        )
    recorder.keep_admitted(answer, recorder.calls[0], session_id="s", max_results=3)
    good, failed, admitted = recorder.history.recalls
    assert (good.revision, good.mode_asked, good.mode_used, good.reason) == (3, "AUTO", "LEXICAL", "")
    assert (good.asked_node, good.asked_text) == ("n", digest_of(TEXT))
    assert (failed.reason, failed.outcome) == ("NOT_SERVING", Outcome.UNKNOWN)
    assert recorder.history.answered == [good, admitted]
    assert admitted.caller == recorder.calls[0].caller
    # What admits is a call, and is in the history as that.
    assert recorder.history.recalls_alone == [good, failed]
    timed = {key: len(samples) for (series, key), samples in timeline.samples.items() if series is _LATENCY}
    assert timed == {"Remember ok": 1, "PreviewRecall ok": 1, "PreviewRecall unknown": 1}


async def test_no_text_is_noted():
    recorder = Recorder()
    await recorder.attempt(command(remembered()))
    assert TEXT not in str(asdict(recorder.history))
