"""What a node may be follows from the calls alone: acknowledged, in doubt, refused, and at the same time."""

from dataclasses import replace

import pytest

from tests.qualification.checks.by_hand import Story, again
from tests.qualification.model.nodes import ABSENT, NodesModel, State
from tests.qualification.recorder.history import Made, Outcome, Write


@pytest.fixture
def story() -> Story:
    return Story()


def active(revision: int, text: str) -> State:
    return State(revision, "ACTIVE", text)


def test_what_was_acknowledged_before_is_all_that_can_be_read(story: Story):
    story.remember("n", "one")
    story.revise("n", 2, "two")
    model = NodesModel(story.calls)
    assert model.possible("n", story.now, story.now + 1) == {active(2, "two")}
    assert model.certain("n", story.now, story.now + 1) == active(2, "two")
    assert model.possible("n", 0.0, 1.0) == {ABSENT}


def test_what_is_under_way_may_be_read_or_not(story: Story):
    story.remember("n", "one", began=10.0, ended=11.0)
    story.revise("n", 2, "two", began=20.0, ended=30.0)
    model = NodesModel(story.calls)
    assert model.possible("n", 15.0, 19.0) == {active(1, "one")}
    assert model.possible("n", 15.0, 21.0) == {active(1, "one"), active(2, "two")}
    assert model.certain("n", 15.0, 21.0) is None
    assert model.possible("n", 31.0, 32.0) == {active(2, "two")}


def test_a_command_in_doubt_opens_two_worlds_for_ever(story: Story):
    story.remember("n", "one")
    story.unknown("RetireMemory", "n", 2, status="ARCHIVED")
    model = NodesModel(story.calls)
    assert model.possible("n", 1e6, 1e6) == {active(1, "one"), State(2, "ARCHIVED", "one")}


def test_an_answer_to_a_repetition_closes_one_of_them(story: Story):
    story.remember("n", "one")
    lost = story.unknown("ReviseMemory", "n", 2, text="two")
    known = story.revise("n", 2, "two", request_id=lost.request_id, began=50.0)
    model = NodesModel([*story.calls[:2], known])
    assert model.possible("n", 1e6, 1e6) == {active(2, "two")}
    # It may have been done by the first attempt, which began long before the answer.
    assert model.possible("n", 20.0, 21.0) == {active(1, "one"), active(2, "two")}


def test_a_refused_command_leaves_nothing(story: Story):
    story.remember("n", "one")
    story.revise("n", 2, "two", outcome=Outcome.REFUSED, reason="REVISION_CONFLICT")
    assert NodesModel(story.calls).possible("n", 1e6, 1e6) == {active(1, "one")}


def test_another_winner_closes_the_world_in_which_a_command_in_doubt_had_won(story: Story):
    story.remember("n", "one")
    story.unknown("ReviseMemory", "n", 2, text="mine", request_id="mine")
    story.revise("n", 2, "theirs", request_id="theirs")
    assert NodesModel(story.calls).possible("n", 1e6, 1e6) == {active(2, "theirs")}


def test_what_follows_from_a_command_in_doubt_needs_it(story: Story):
    story.remember("n", "one")
    story.unknown("ReviseMemory", "n", 2, text="two")
    story.change("RetireMemory", "n", 3, status="ARCHIVED")
    model = NodesModel(story.calls)
    assert model.possible("n", 1e6, 1e6) == {State(3, "ARCHIVED", "two")}


def test_a_text_that_stays_may_be_that_of_either_world(story: Story):
    story.remember("n", "one")
    story.unknown("ReviseMemory", "n", 2, text="left", request_id="left")
    story.unknown("ReviseMemory", "n", 2, text="right", request_id="right")
    story.retire("n", 3)
    texts = {state.text for state in NodesModel(story.calls).possible("n", 1e6, 1e6)}
    assert texts == {"left", "right"}


def test_a_command_that_compares_nothing_may_have_made_any_revision(story: Story):
    story.remember("n", "one")
    put = story.unknown("PutMemory", "n", 2, text="put")
    story.calls[-1] = replace(put, writes=(Write(node_id="n", text="put"),))
    assert NodesModel(story.calls).possible("n", 1e6, 1e6) == {active(1, "one"), active(2, "put")}


def test_a_node_whose_name_nobody_learned_is_known_by_its_text(story: Story):
    lost = story.unknown("Remember", "n", 1, text="lost", began=10.0)
    story.calls[-1] = replace(lost, writes=(Write(expected=0, text="lost"),))
    model = NodesModel(story.calls)
    assert model.may_have("whatever", active(1, "lost"), 11.0, 12.0)
    assert not model.may_have("whatever", active(1, "lost"), 8.0, 9.0), "it had not been sent"
    assert not model.may_have("whatever", active(1, "other"), 11.0, 12.0)
    assert not model.may_have("whatever", active(2, "lost"), 11.0, 12.0)


def test_the_history_may_resolve_what_its_callers_cannot(story: Story):
    story.remember("n", "one")
    lost = story.unknown("ReviseMemory", "n", 2, text="two")
    applied = NodesModel(story.calls, {lost.key: (Made("n", 2),)})
    # When it was done is still not known.
    assert applied.possible("n", 1e6, 1e6) == {active(1, "one"), active(2, "two")}
    assert applied.possible("n", 1.0, 2.0) == {ABSENT}
    assert NodesModel(story.calls, {}).possible("n", 1e6, 1e6) == {active(1, "one")}


def test_two_who_were_told_the_same_contradict_each_other(story: Story):
    story.remember("n", "one")
    story.revise("n", 2, "left", request_id="left")
    story.revise("n", 2, "right", request_id="right")
    assert NodesModel(story.calls).contradictions == [
        "ReviseMemory left and ReviseMemory right were both told that they made revision 2 of n"
    ]


def test_a_repeated_answer_is_no_second_winner(story: Story):
    first = story.remember("n", "one")
    assert NodesModel([first, again(first, at=50.0)]).contradictions == []
