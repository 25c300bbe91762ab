"""Everything together: a right namespace passes every check, and what is wrong with one is under its own name."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from durable_memory_client import ChangeToken, Node, NodeKind, WatchedChange
from tests.qualification.checks.by_hand import NOON, Story, again, hit
from tests.qualification.checks.sessions import Restart
from tests.qualification.recorder.history import Begun, BegunAgain, Call, History, Outcome, Reading, Resumed
from tests.qualification.report.results import Finding, Verdict
from tests.qualification.traffic.judgement import Kept, judge, together
from tests.qualification.traffic.wording import digest_of


def told(text: str) -> str:
    return digest_of(f"text of {text}")


def world() -> tuple[Story, History, Kept]:
    """What callers and a service say of two nodes, one of which was revised, by one of two, and asked about."""
    story = Story()
    story.remember("n", told("one"))
    story.revise("n", 2, told("two"))
    story.remember("m", told("three"))
    story.revise("n", 2, told("late"), request_id="late", outcome=Outcome.REFUSED, reason="REVISION_CONFLICT")
    story.calls.append(again(story.calls[1], at=story.now))
    story.now += 2.0
    history = story.history
    history.recalls = [story.recalled("n", told("two"), hit("n", 2, 2, told("two")))]
    history.readings = [Reading(began=story.now, ended=story.now + 1, history_id="h", revision=3)]
    nodes = [_node(story, at, text) for at, text in enumerate(("one", "two", "three"))]
    watched = [
        WatchedChange(change_token=ChangeToken("h", change.namespace_revision), change_set=change, nodes=(node,))
        for change, node in zip(story.changes, nodes, strict=True)
    ]
    return story, history, Kept(changes=story.changes, watched=watched, nodes=nodes[1:], usage=[])


def _node(story: Story, place: int, text: str) -> Node:
    (change,) = story.changes[place].changes
    cited = change.citation
    return Node(
        id=cited.node_id,
        revision=cited.node_revision,
        kind=NodeKind.SEMANTIC,
        status=change.status_after,
        content=f"text of {text}",
        surroundings=(),
        content_digest=cited.content_digest,
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
        citation=cited,
        valid_from=cited.namespace_revision,
        superseded_at=None,
    )


RESTART = (1_000.0, 1_002.0)


def sessions() -> tuple[list[Resumed], list[BegunAgain]]:
    """What is right across `RESTART`: a session, its own binding and one that drifted, and its run ids."""
    opened = Resumed(began=900.0, ended=901.0, session_id="s", asked="", drifted=False, got="d")
    own = replace(opened, began=1_010.0, ended=1_011.0, asked="d")
    other = replace(own, asked="x", drifted=True, got="", reason="BINDING_DRIFT")
    another = BegunAgain(
        began=1_012.0,
        ended=1_013.0,
        session_id="s",
        run_id="turn-1",
        before="i",
        known=910.0,
        is_open=False,
        got="j",
        outcome="BEGUN",
    )
    same = replace(another, run_id="turn-2", is_open=True, got="", reason="RUN_IDENTITY_CONFLICT")
    return [opened, own, other], [another, same]


def failed(history: History, kept: Kept, restarts: Sequence[Restart] = ()) -> set[str]:
    return {finding.check for finding in judge(history, kept, restarts=restarts) if finding.verdict is Verdict.FAIL}


def test_a_right_namespace_passes_every_check():
    _, history, kept = world()
    assert [finding for finding in judge(history, kept) if finding.verdict is not Verdict.PASS] == []


REFUSED, REPEATED = "refused writes are not there", "repetitions get the first answer"
CAUSES, COMPARED = "conflicts have a cause", "what is named is what is compared"
RACED = "one compare-and-set winner"


@pytest.mark.parametrize(
    ("tried", "untried"),
    [
        (lambda call: call.outcome is not Outcome.REFUSED, {REFUSED, CAUSES, RACED}),
        (lambda call: call.began < 18.0, {REPEATED}),
        (lambda call: call.method == "Remember", {REFUSED, REPEATED, CAUSES, COMPARED, RACED, "nobody else wrote"}),
    ],
    ids=["no refusal", "no repetition", "no comparison"],
)
def test_what_nobody_tried_is_not_passed(tried: Callable[[Call], bool], untried: set[str]):
    _, history, kept = world()
    history.recalls, history.readings = [], []
    history.calls = [call for call in history.calls if tried(call)]
    assert failed(history, kept) == untried


def lose(story: Story, history: History, kept: Kept) -> tuple[History, Kept]:
    """The last acknowledged write is gone after a crash, everywhere."""
    return history, replace(kept, changes=kept.changes[:-1], watched=kept.watched[:-1], nodes=kept.nodes[:-1])


def refuse_the_repetition(story: Story, history: History, kept: Kept) -> tuple[History, Kept]:
    """A repetition is refused, because revisions were compared before the request id was looked up."""
    history.calls.append(again(story.calls[1], at=90.0, outcome=Outcome.REFUSED, reason="REVISION_CONFLICT"))
    return history, kept


def return_the_old(story: Story, history: History, kept: Kept) -> tuple[History, Kept]:
    """A recall returns what a vector was made from, which is not the text any more."""
    history.recalls = [replace(history.recalls[0], hits=(hit("n", 1, 1, told("one")),))]
    return history, kept


def forget_the_vector(story: Story, history: History, kept: Kept) -> tuple[History, Kept]:
    """A publication lost a vector that the index says it has; the words of the question find the node all the same."""
    asked = replace(history.recalls[0], mode_asked="HYBRID", mode_used="HYBRID", unindexed=0)
    found = replace(asked, asked_node="m", asked_text=told("three"), hits=(hit("m", 1, 3, told("three")),))
    history.recalls = [found]
    return history, kept


def search_the_old(story: Story, history: History, kept: Kept) -> tuple[History, Kept]:
    """What the index finds is returned as the text that it was made from; the words find the right one."""
    old, new = hit("n", 1, 1, told("one"), by_meaning=True), hit("n", 2, 2, told("two"))
    history.recalls = [replace(history.recalls[0], mode_asked="AUTO", mode_used="HYBRID", hits=(new, old), unindexed=1)]
    return history, kept


def tear(story: Story, history: History, kept: Kept) -> tuple[History, Kept]:
    """A watch is told a change set without its node."""
    return history, replace(kept, watched=[replace(kept.watched[0], nodes=()), *kept.watched[1:]])


def read_behind(story: Story, history: History, kept: Kept) -> tuple[History, Kept]:
    """A server answers from what it knew before another wrote."""
    history.readings = [replace(history.readings[0], revision=2)]
    history.recalls = [replace(history.recalls[0], revision=2)]
    return history, kept


@pytest.mark.parametrize(
    ("spoil", "checks"),
    [
        (lose, {"acknowledged writes are kept", "recalls are not from the future", "change tokens are not stale"}),
        (refuse_the_repetition, {"repetitions get the first answer"}),
        (
            return_the_old,
            {
                "no recall returns a wrong item",
                "no recall returns the impossible",
                "no recall misses what it names",
            },
        ),
        (forget_the_vector, {"no recall by meaning misses what it names"}),
        (
            search_the_old,
            {
                "no recall returns a wrong item",
                "no recall by meaning returns a wrong item",
                "no recall returns the impossible",
            },
        ),
        (tear, {"watches tell whole change sets"}),
        (read_behind, {"change tokens are not stale", "recalls are not stale"}),
    ],
)
def test_what_is_wrong_is_found_under_its_name(spoil: Callable[..., tuple[History, Kept]], checks: set[str]):
    assert failed(*spoil(*world())) == checks


OWN = "own bindings resume exactly"
DRIFTED = "a binding that drifted is refused as that"
AGAIN = "run ids begun again after a restart are runs of their own"


def test_sessions_and_their_runs_are_judged_across_restarts():
    _, history, kept = world()
    history.resumed, history.begun_again = sessions()
    looked_at = {finding.check: finding.looked_at for finding in judge(history, kept, restarts=[RESTART])}
    assert (looked_at[OWN], looked_at[DRIFTED], looked_at[AGAIN]) == (1, 1, 2)
    assert failed(history, kept, [RESTART]) == set()
    assert AGAIN not in {finding.check for finding in judge(history, kept)}


def test_what_was_not_tried_across_restarts_is_not_passed():
    _, history, kept = world()
    history.resumed, history.begun_again = sessions()
    assert failed(history, kept, [(2_000.0, 2_001.0)]) == {AGAIN}
    # Everything but the opening got no answer of the service.
    history.resumed[1:] = [replace(one, got="", reason="UNAVAILABLE") for one in history.resumed[1:]]
    assert failed(history, kept) == {OWN, DRIFTED}


def test_a_restart_after_which_nothing_is_known_is_found_under_its_names():
    _, history, kept = world()
    (opened, own, other), (another, same) = sessions()
    history.resumed = [opened, replace(own, got="", reason="SESSION_NOT_FOUND"), replace(other, reason="INTERNAL")]
    history.begun_again = [replace(another, got="i"), replace(same, got="k", reason="")]
    history.begun = [
        Begun(
            at=910.0, request_id="r", session_id="s", run_id="turn-1", incarnation="i", context_id="c", outcome="BEGUN"
        )
    ]
    assert failed(history, kept, [RESTART]) == {OWN, DRIFTED, AGAIN, "runs are never taken for others"}


def test_findings_of_several_namespaces_become_one_for_each_check():
    first = [Finding(check="a", looked_at=1, problems=["x"]), Finding(check="b", looked_at=2)]
    assert together([first, [Finding(check="a", looked_at=3, problems=["y"])]]) == [
        Finding(check="a", looked_at=4, problems=["x", "y"]),
        Finding(check="b", looked_at=2, problems=[]),
    ]
