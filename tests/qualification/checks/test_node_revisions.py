"""The checks of single nodes find what they are for: lost and skipped revisions, two winners of one, and none."""

from dataclasses import replace

import pytest

from durable_memory_client import ChangeToken, Node, NodeKind, NodeStatus, WatchedChange
from tests.qualification.checks import kernel
from tests.qualification.checks.by_hand import NOON, Story, again
from tests.qualification.recorder.history import Made, Outcome
from tests.qualification.traffic.wording import digest_of


@pytest.fixture
def story() -> Story:
    story = Story()
    story.remember("n", "one")
    return story


def lost_to_another(story: Story, request_id: str) -> None:
    story.revise("n", 2, "mine", request_id=request_id, outcome=Outcome.REFUSED, reason="REVISION_CONFLICT")


def test_a_race_with_one_winner_has_no_problems(story: Story):
    story.revise("n", 2, "winner", request_id="winner")
    lost_to_another(story, "loser")
    assert kernel.problems(story.calls, story.changes) == []


def test_two_winners_of_one_revision_are_found(story: Story):
    story.revise("n", 2, "left", request_id="left")
    story.revise("n", 2, "right", request_id="right")
    found = kernel.problems(story.calls, story.changes)
    assert "ReviseMemory left and ReviseMemory right were both told that they made revision 2 of n" in found
    assert "n went from revision 2 to 2 at 3" in found


def test_a_race_that_nobody_won_is_found(story: Story):
    """As when the answer of what was applied is a refusal, because revisions were compared before the request id."""
    lost_to_another(story, "loser")
    assert kernel.nobody_won(story.calls) == [
        "ReviseMemory loser was refused because n had left revision 1, which nobody did"
    ]
    story.unknown("ReviseMemory", "n", 2, text="perhaps", request_id="perhaps")
    assert kernel.nobody_won(story.calls) == []


def test_a_refusal_of_a_repetition_of_what_was_applied_is_found(story: Story):
    """The first answer was lost, and the repetition is refused for a conflict with itself."""
    story.unknown("ReviseMemory", "n", 2, text="two", listed=True, request_id="two")
    refused = again(story.calls[-1], at=40.0, outcome=Outcome.REFUSED, reason="REVISION_CONFLICT")
    assert kernel.problems([*story.calls, refused], story.changes) == [
        "ReviseMemory two was refused because n had left revision 1, which nobody did",
        "ReviseMemory two was refused (REVISION_CONFLICT), and is there at namespace revision 2",
    ]


def test_an_acknowledged_node_revision_that_another_has_is_found(story: Story):
    call = story.revise("n", 2, "two")
    assert call.effect is not None
    told = replace(call, effect=replace(call.effect, made=(Made("n", 3),)))
    assert kernel.lost_revisions([told], story.changes) == [
        "ReviseMemory n-2 was told that it made [('n', 3)], and its change set has [('n', 2)]"
    ]


def test_a_skipped_node_revision_is_found(story: Story):
    story.revise("n", 3, "three")
    assert kernel.skipped_revisions(story.changes) == ["n went from revision 1 to 3 at 2"]


@pytest.mark.parametrize("reason", ["INTERNAL", "DATA_CORRUPTED", "IDEMPOTENCY_KEY_REUSED"])
def test_an_error_that_nobody_may_get_is_found(story: Story, reason: str):
    story.revise("n", 2, "two", outcome=Outcome.UNKNOWN, reason=reason)
    assert kernel.defects(story.calls) == [f"ReviseMemory n-2 got {reason}"]


def test_a_text_that_is_not_all_of_what_was_sent_is_found():
    story = Story()
    story.remember("n", digest_of("all of it"))

    def told(content: str) -> list[WatchedChange]:
        node = Node(
            id="n",
            revision=1,
            kind=NodeKind.SEMANTIC,
            status=NodeStatus.ACTIVE,
            content=content,
            surroundings=(),
            content_digest="0" * 64,
            author="",
            occurred_at=None,
            confidence=0.5,
            importance=0.5,
            evidence=(),
            relations=(),
            labels={},
            created_at=NOON,
            updated_at=NOON,
            committed_at=NOON,
            decided_by="",
            citation=story.changes[0].changes[0].citation,
            valid_from=1,
            superseded_at=None,
        )
        return [WatchedChange(change_token=ChangeToken("h", 1), change_set=story.changes[0], nodes=(node,))]

    assert kernel.other_texts(told("all of it"), story.calls) == []
    assert kernel.other_texts(told("all of"), story.calls) == [
        f"Remember n-1 brought node n text {digest_of('all of')}, not {digest_of('all of it')}"
    ]
