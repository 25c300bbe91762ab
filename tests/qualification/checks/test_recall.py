"""The checks of recalls and admissions find what they are for, in histories that are bad by hand."""

from dataclasses import replace

import pytest

from durable_memory_client import NodeRevision, UsageSummary
from tests.qualification.checks import recall as checks
from tests.qualification.checks.by_hand import Story, hit
from tests.qualification.model.nodes import NodesModel
from tests.qualification.model.replay import Replay
from tests.qualification.recorder.history import Call, Outcome, Recalled, Recorded


@pytest.fixture
def story() -> Story:
    """A node that was revised, one that was retired, and one that stayed; at namespace revision 5."""
    story = Story()
    story.remember("revised", "old")
    story.revise("revised", 2, "new")
    story.remember("retired", "gone")
    story.retire("retired", 2)
    story.remember("kept", "kept")
    return story


def wrong(story: Story, *recalls: Recalled) -> list[str]:
    return checks.wrong_items(recalls, Replay(story.changes, story.calls))


def impossible(story: Story, *recalls: Recalled) -> list[str]:
    return checks.impossible_items(recalls, NodesModel(story.calls))


def missing(story: Story, *recalls: Recalled) -> list[str]:
    return checks.missing_items(recalls, NodesModel(story.calls), Replay(story.changes, story.calls))


def test_right_recalls_have_no_problems(story: Story):
    recalls = [
        story.recalled("revised", "new", hit("revised", 2, 2, "new"), hit("kept", 1, 5, "kept")),
        story.recalled("retired", "gone", hit("kept", 1, 5, "kept")),
        story.recalled("revised", "old", hit("revised", 2, 2, "new")),
    ]
    history = story.history
    history.recalls = recalls
    assert wrong(story, *recalls) == impossible(story, *recalls) == missing(story, *recalls) == []
    assert checks.other_modes(recalls) == checks.stale_recalls(history) == []
    assert checks.recalls_from_the_future(recalls, story.calls, story.changes) == []


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (hit("retired", 1, 3, "gone"), "returned revision 1 of retired, and it was ARCHIVED (revision 2)"),
        (hit("retired", 2, 4, "gone"), "returned revision 2 of retired, and it was ARCHIVED (revision 2)"),
        (hit("revised", 1, 1, "old"), "returned revision 1 of revised (of 1), and it was at 2 (of 2)"),
        (
            hit("revised", 2, 2, "old"),
            "returned revision 2 of revised with another text (old) than that revision's (new)",
        ),
        (hit("foreign", 1, 3, "theirs"), "returned revision 1 of foreign, and there was no such node"),
    ],
    ids=["retired", "retired as it is now", "old revision", "old text", "of nobody here"],
)
def test_a_wrong_item_is_found_by_the_history_and_without_it(story: Story, bad, problem: str):
    recall = story.recalled("kept", "kept", hit("kept", 1, 5, "kept"), bad)
    assert wrong(story, recall) == [f"PreviewRecall LEXICAL of reader at 5 {problem}"]
    (found,) = impossible(story, recall)
    assert f"returned {bad.node_id} at revision {bad.revision} with text {bad.text}" in found


def test_an_item_that_was_right_at_another_revision_than_the_answers_is_found(story: Story):
    """The recall says that it is for revision 5, and its hit is what there was at 1."""
    recall = story.recalled("revised", "old", hit("revised", 1, 1, "old"))
    assert len(wrong(story, recall)) == 1
    assert wrong(story, replace(recall, revision=1)) == []


def test_what_a_command_in_doubt_may_have_done_is_possible(story: Story):
    story.unknown("ReviseMemory", "kept", 2, text="perhaps")
    for revision, text in ((1, "kept"), (2, "perhaps")):
        assert impossible(story, story.recalled("kept", "kept", hit("kept", revision, 6, text))) == []
    assert len(impossible(story, story.recalled("kept", "kept", hit("kept", 3, 7, "perhaps")))) == 1


@pytest.mark.parametrize("mode", ["LEXICAL", "HYBRID"])
def test_an_acknowledged_memory_that_is_missed_is_found(story: Story, mode: str):
    recall = replace(story.recalled("kept", "kept", hit("revised", 2, 2, "new")), mode_used=mode)
    assert missing(story, recall) == [
        "PreviewRecall LEXICAL of reader at 5 misses kept, which was ACTIVE at revision 1"
    ]


def test_an_old_revision_of_what_was_asked_for_is_no_answer(story: Story):
    recall = story.recalled("revised", "new", hit("revised", 1, 1, "old"))
    assert missing(story, recall) == [
        "PreviewRecall LEXICAL of reader at 5 misses revised, which was ACTIVE at revision 2"
    ]


def test_what_was_there_at_the_recalls_own_revision_is_missed_also_while_it_changes(story: Story):
    retiring = story.retire("kept", 2, began=story.now, ended=story.now + 60)
    recall = replace(story.recalled("kept", "kept"), began=retiring.began + 1, ended=retiring.began + 2)
    assert missing(story, recall) == []
    assert missing(story, replace(recall, revision=5)) == [
        "PreviewRecall LEXICAL of reader at 5 misses kept, which was ACTIVE at revision 1 by the history"
    ]


def without_vectors(story: Story, *recalls: Recalled) -> list[str]:
    return checks.missing_meanings(recalls, NodesModel(story.calls), Replay(story.changes, story.calls))


@pytest.mark.parametrize(
    ("mode", "unindexed", "degradation", "problems"),
    [
        ("SEMANTIC", 0, "", 1),
        ("HYBRID", 0, "", 1),
        ("HYBRID", 1, "", 0),
        ("SEMANTIC", 1, "", 0),
        ("SEMANTIC", None, "", 0),
        ("HYBRID", 0, "DEADLINE", 0),
        ("LEXICAL", 0, "", 0),
    ],
)
def test_a_recall_by_meaning_must_find_what_has_vectors(
    story: Story, mode: str, unindexed: int | None, degradation: str, problems: int
):
    """That its words found it is not enough."""
    by_words = story.recalled("kept", "kept", hit("kept", 1, 5, "kept"))
    recall = replace(by_words, mode_asked=mode, mode_used=mode, unindexed=unindexed, degradation=degradation)
    assert missing(story, recall) == []
    assert checks.is_by_meaning(recall) == bool(problems)
    assert without_vectors(story, recall) == [
        f"PreviewRecall {mode} of reader at 5 misses kept by meaning, which was ACTIVE at revision 1"
    ] * bool(problems)
    assert without_vectors(story, replace(recall, hits=(hit("kept", 1, 5, "kept", by_meaning=True),))) == []


def test_a_recall_by_meaning_alone_is_not_asked_for_words(story: Story):
    recall = replace(story.recalled("kept", "kept"), mode_asked="SEMANTIC", mode_used="SEMANTIC", unindexed=0)
    assert not checks.is_by_words(recall)
    assert missing(story, recall) == []
    assert len(without_vectors(story, recall)) == 1


def test_what_a_vector_was_made_from_is_no_hit_by_meaning(story: Story):
    """An old revision that the search by meaning found, beside one that its words found."""
    old, new = hit("revised", 1, 1, "old", by_meaning=True), hit("revised", 2, 2, "new")
    recall = replace(story.recalled("revised", "new", new, old), mode_used="HYBRID", mode_asked="HYBRID", unindexed=0)
    assert missing(story, recall) == []
    assert without_vectors(story, recall) == [
        "PreviewRecall HYBRID of reader at 5 misses revised by meaning, which was ACTIVE at revision 2"
    ]
    (of_meaning,) = checks.hits_by_meaning([recall, story.recalled("kept", "kept", hit("kept", 1, 5, "kept"))])
    assert of_meaning.hits == (old,)
    assert wrong(story, of_meaning) == wrong(story, recall) != []


def test_a_recall_that_failed_misses_nothing(story: Story):
    assert missing(story, replace(story.recalled("kept", "kept"), reason="UNAVAILABLE")) == []


@pytest.mark.parametrize(
    ("asked", "used", "degradation", "problems"),
    [
        ("SEMANTIC", "LEXICAL", "PROVIDER_FAILED", 1),
        ("HYBRID", "LEXICAL", "", 1),
        ("AUTO", "LEXICAL", "", 1),
        ("AUTO", "HYBRID", "PROVIDER_FAILED", 1),
        ("AUTO", "LEXICAL", "PROVIDER_FAILED", 0),
        ("AUTO", "HYBRID", "", 0),
        ("SEMANTIC", "SEMANTIC", "", 0),
    ],
)
def test_a_mode_that_turned_into_another_is_found(story: Story, asked: str, used: str, degradation: str, problems: int):
    recall = replace(story.recalled("kept", "kept"), mode_asked=asked, mode_used=used, degradation=degradation)
    assert len(checks.other_modes([recall])) == problems


def test_a_recall_behind_an_acknowledgement_or_another_recall_is_found(story: Story):
    history = story.history
    history.recalls = [story.recalled("kept", "kept", revision=4)]
    assert checks.stale_recalls(history) == ["change token 4 was read after 5 was known (tokens and recalls)"]
    history.calls = []
    history.recalls = [story.recalled("kept", "kept", revision=5), story.recalled("kept", "kept", revision=4)]
    assert checks.stale_recalls(history) == ["change token 4 was read after 5 was known (tokens and recalls)"]


def test_a_recall_of_what_had_not_been_sent_is_found(story: Story):
    early = story.recalled("kept", "kept")
    story.remember("later", "later")
    bad = [replace(early, revision=6), replace(early, revision=7)]
    assert len(checks.recalls_from_the_future(bad, story.calls, story.changes)) == 2
    assert checks.recalls_from_the_future([early], story.calls, story.changes) == []


def event(
    event_id: str = "e", *, session_id: str = "s", incarnation: str = "i", context_id: str = "c", used: bool = False
) -> Recorded:
    return Recorded(
        method="ActiveRecall",
        request_id="r",
        session_id=session_id,
        run_id="turn-1",
        incarnation=incarnation,
        context_id=context_id,
        node_id="kept",
        revision=1,
        event_id=event_id,
        used=used,
    )


def counted(admissions: int, uses: int = 0) -> list[UsageSummary]:
    return [
        UsageSummary(
            node_revision=NodeRevision("kept", 1),
            admission_count=admissions,
            use_count=uses,
            last_admitted_at=None,
            last_used_at=None,
        )
    ]


def admission(outcome: Outcome) -> Call:
    return Call(method="ActiveRecall", request_id="r", began=1.0, ended=2.0, outcome=outcome)


@pytest.mark.parametrize(
    ("events", "kept", "calls", "problem"),
    [
        ([event("e"), event("f")], 2, [], None),
        ([event("e"), event("e")], 1, [], None),
        ([event("e")], 0, [], "revision 1 of kept has 0 admissions, and 1 were acknowledged"),
        ([event("e"), event("f")], 1, [], "revision 1 of kept has 1 admissions, and 2 were acknowledged"),
        ([event("e")], 2, [], "revision 1 of kept has 2 admissions, and 1 were acknowledged"),
        ([event("e")], 2, [admission(Outcome.UNKNOWN)], None),
        ([], 1, [admission(Outcome.OK)], "revision 1 of kept has 1 admissions, and 0 were acknowledged"),
    ],
    ids=["each once", "told twice", "lost", "collapsed", "twice", "in doubt", "of nobody"],
)
def test_admissions_that_are_lost_or_counted_twice_are_found(
    events: list[Recorded], kept: int, calls: list[Call], problem: str | None
):
    assert checks.miscounted(events, calls, counted(kept)) == ([] if problem is None else [problem])


def test_uses_are_counted_by_themselves():
    used = event("u", used=True)
    assert checks.miscounted([event("e"), used], [], counted(1, 1)) == []
    assert checks.miscounted([event("e"), used], [], counted(1, 0)) == [
        "revision 1 of kept has 0 uses, and 1 were acknowledged"
    ]


def test_an_event_or_context_of_two_runs_is_found():
    """A run id that is used again after a restart is another run: its admissions are events of their own."""
    assert checks.shared_events([event("e"), event("f", incarnation="j", context_id="d")]) == []
    (found,) = checks.shared_events([event("e"), event("e", incarnation="j", context_id="d")])
    assert found.startswith("event e is of several")
    (found,) = checks.shared_events([event("e"), event("f", session_id="t")])
    assert found.startswith("context c is of several runs")
