"""A journal gives back what was written, also after its writer was killed in the middle of something."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tests.qualification.checks.by_hand import Story, hit
from tests.qualification.recorder.history import (
    Begun,
    BegunAgain,
    Call,
    Outcome,
    Process,
    Reading,
    Record,
    Recorded,
    Resumed,
    merged,
)
from tests.qualification.recorder.journal import Journal, read_history


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "w.jsonl"


def write(path: Path, *records: Record) -> None:
    with Journal(path) as journal:
        for record in records:
            journal.write(record)


def under_way(call: Call) -> Call:
    return replace(call, ended=math.inf, outcome=Outcome.UNKNOWN, reason="", effect=None)


def test_everything_is_read_as_it_was_written(path: Path):
    story = Story()
    call = story.remember("n", "one")
    recall = story.recalled("n", "one", hit("n", 1, 1, "one"))
    others: list[Record] = [
        Process(process="w", seed="1", began=1.0, wall=2.0, pid=3),
        Reading(began=1.0, ended=2.0, history_id="h", revision=1),
        Begun(at=1.0, request_id="r", session_id="s", run_id="t", incarnation="i", context_id="c", outcome="BEGUN"),
        BegunAgain(
            began=1.0,
            ended=2.0,
            session_id="s",
            run_id="t",
            before="i",
            known=0.5,
            is_open=True,
            reason="RUN_IDENTITY_CONFLICT",
        ),
        Recorded(
            method="ActiveRecall",
            request_id="r",
            session_id="s",
            run_id="t",
            incarnation="i",
            context_id="c",
            node_id="n",
            revision=1,
            event_id="e",
        ),
        Resumed(began=1.0, ended=2.0, session_id="s", asked="d", drifted=True, reason="BINDING_DRIFT"),
    ]
    write(path, under_way(call), call, recall, *others)
    history = read_history(path)
    assert history.calls == [call]
    assert history.recalls == [recall]
    runs = [*history.begun, *history.begun_again]
    assert [*history.processes, *history.readings, *runs, *history.recorded, *history.resumed] == others


def test_an_attempt_that_never_ended_is_in_doubt(path: Path):
    story = Story()
    first, second = story.remember("n", "one"), story.remember("m", "two")
    write(path, under_way(first), under_way(second), first)
    history = read_history(path)
    assert history.calls == [first, under_way(second)]
    assert history.calls[1].writes == second.writes, "what it may have done is known"


def test_two_attempts_of_a_command_are_two(path: Path):
    call = Story().remember("n", "one")
    later = replace(call, began=call.began + 5, ended=call.ended + 5)
    write(path, under_way(call), call, under_way(later), later)
    assert read_history(path).calls == [call, later]


def test_a_line_that_a_kill_cut_off_says_nothing(path: Path):
    call = Story().remember("n", "one")
    write(path, under_way(call), call)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert read_history(path).calls == [under_way(call)]


def test_a_broken_line_in_the_middle_is_an_error(path: Path):
    path.write_bytes(b'{"is": "Call"\n{"is": "Reading"}\n')
    with pytest.raises(ValueError):
        read_history(path)


def test_a_journal_is_for_its_owner_alone_and_has_a_line_for_each_record(path: Path):
    write(path, Reading(began=1.0, ended=2.0, history_id="h", revision=1))
    assert path.stat().st_mode & 0o077 == 0
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["is"] == "Reading"


def test_histories_of_processes_become_one_in_the_order_of_time():
    one, other = Story(), Story()
    late, early = one.remember("n", "one", began=30.0), other.remember("m", "two", began=20.0)
    together = merged([one.history, other.history])
    assert together.calls == [early, late]
    assert len(together.processes) == 2
