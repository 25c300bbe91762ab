"""The checks find what they are for, in histories that are bad by hand."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from durable_memory_client import (
    ChangeSet,
    ChangeToken,
    Citation,
    Namespace,
    Node,
    NodeChange,
    NodeKind,
    NodeStatus,
    WatchedChange,
)
from tests.qualification.checks.kernel import chained, conflicts, mixed_up, problems, repetitions, torn
from tests.qualification.checks.kernel import refused as refused_commands
from tests.qualification.recorder.history import Call, Effect, Fate, Outcome, Reading, Write, fate
from tests.qualification.recorder.recorder import unknown_and_applied
from tests.qualification.traffic.wording import digest_of

NAMESPACE = Namespace("acme", "user-1", "default")
NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


def history(*request_ids: str) -> list[ChangeSet]:
    """What the service lists after these commands, in order."""
    changes: list[ChangeSet] = []
    previous = "0" * 64
    for revision, request_id in enumerate(request_ids, start=1):
        digest = f"{revision:064x}"
        previous = chained(previous, revision, digest)
        changes.append(
            ChangeSet(
                namespace=NAMESPACE,
                namespace_revision=revision,
                method="Remember",
                idempotency_key=request_id,
                occurred_at=NOON,
                committed_at=NOON,
                caller="development",
                changes=(),
                note="",
                digest=digest,
                chain_digest=previous,
            )
        )
    return changes


def call(request_id: str, at: float, outcome: Outcome, *, reason: str = "", lasting: float = 1.0) -> Call:
    return Call(method="Remember", request_id=request_id, began=at, ended=at + lasting, outcome=outcome, reason=reason)


def ok(request_id: str, revision: int | None, at: float, *, token: int | None = None, lasting: float = 1.0) -> Call:
    return replace(
        call(request_id, at, Outcome.OK, lasting=lasting),
        effect=Effect(revision=revision, answer=f"{request_id} made {revision}"),
        history_id="h",
        token_revision=revision if token is None else token,
    )


def unknown(request_id: str, at: float) -> Call:
    return call(request_id, at, Outcome.UNKNOWN)


def refused(request_id: str, at: float, reason: str = "REVISION_CONFLICT") -> Call:
    return call(request_id, at, Outcome.REFUSED, reason=reason)


def reading(revision: int, at: float, history_id: str = "h") -> Reading:
    return Reading(began=at, ended=at + 1, history_id=history_id, revision=revision)


def test_a_good_history_has_no_problems():
    calls = [
        ok("a", 1, 0),
        refused("b", 2),
        unknown("c", 4),
        ok("c", 2, 6),
        ok("c", 2, 8),
        unknown("lost", 10),
        unknown("applied", 12),
        ok("nothing", None, 14, token=3),
        refused("d", 16, "NOT_SERVING"),
    ]
    readings = [reading(0, -2), reading(1, 0), reading(3, 16)]
    assert problems(calls, history("a", "c", "applied"), readings) == []


def test_an_acknowledged_change_that_is_not_there_is_found():
    assert problems([ok("a", 1, 0), ok("b", 2, 2)], history("a")) == [
        "Remember b was acknowledged at namespace revision 2, and is not there"
    ]


def test_an_acknowledged_change_that_is_elsewhere_is_found():
    found = problems([unknown("b", 0), unknown("c", 0), ok("a", 1, 0)], history("b", "c", "a"))
    assert found == ["Remember a was acknowledged at namespace revision 1, and is at 3"]


def test_a_change_of_what_was_acknowledged_as_unchanged_is_found():
    assert problems([ok("a", None, 0, token=1)], history("a")) == [
        "Remember a was acknowledged at namespace revision None, and is at 1"
    ]


def test_a_change_that_was_applied_twice_is_found():
    found = problems([unknown("a", 0), ok("a", 1, 2)], history("a", "a"))
    assert "Remember a was applied 2 times" in found


def test_a_gap_is_found():
    changes = history("a", "lost", "b")
    del changes[1]
    found = problems([ok("a", 1, 0), ok("b", 3, 2)], changes)
    assert found == [
        "change set 2 has namespace revision 3",
        "the chain breaks at namespace revision 3",
    ]


def test_a_change_set_that_is_not_the_one_that_was_chained_is_found():
    changes = history("a", "b")
    changes[0] = replace(changes[0], digest="f" * 64)
    assert problems([ok("a", 1, 0), ok("b", 2, 2)], changes) == ["the chain breaks at namespace revision 1"]


@pytest.mark.parametrize(
    "attempts",
    [
        [refused("a", 0)],
        [refused("a", 0, "OVERLOADED"), refused("a", 2, "OVERLOADED")],
        [unknown("a", 0), refused("a", 2)],
    ],
    ids=["refused", "never let in", "unknown and then refused"],
)
def test_a_refused_change_that_is_there_all_the_same_is_found(attempts):
    reason = attempts[-1].reason
    assert problems(attempts, history("a")) == [
        f"Remember a was refused ({reason}), and is there at namespace revision 1"
    ]


def test_a_change_that_nobody_sent_is_found():
    assert problems([], history("a")) == ["Remember a was never sent"]


def test_another_answer_to_a_repetition_is_found():
    found = problems([ok("a", 1, 0), unknown("b", 0), ok("a", 2, 2)], history("a", "b"))
    assert "Remember a was answered differently: ['a made 1', 'a made 2']" in found


def test_a_refusal_of_what_was_acknowledged_is_found():
    assert problems([ok("a", 1, 0), refused("a", 2)], history("a")) == [
        "Remember a was acknowledged, and then refused (REVISION_CONFLICT)"
    ]


def test_a_server_that_is_down_does_not_take_an_acknowledgement_back():
    assert problems([ok("a", 1, 0), refused("a", 2, "NOT_SERVING")], history("a")) == []


def test_a_later_command_with_the_lower_revision_is_found():
    assert problems([ok("b", 2, 0), ok("a", 1, 2)], history("a", "b")) == [
        "Remember a got 1 after Remember b had got 2",
        "change token 1 was read after 2 was known",
    ]


def test_what_goes_on_during_the_listing_is_no_problem():
    before = [refused("a", 0, "NOT_SERVING")]
    later = [*before, unknown("a", 2), unknown("b", 2)]
    assert problems(before, history("b", "a"), later=later) == []


def test_commands_at_the_same_time_may_come_in_either_order():
    assert problems([ok("b", 2, 0, lasting=3), ok("a", 1, 2)], history("a", "b")) == []


def test_a_token_that_goes_back_is_found():
    calls = [ok("a", 1, 0), ok("b", 2, 2)]
    assert problems(calls, history("a", "b"), [reading(1, 4)]) == ["change token 1 was read after 2 was known"]
    assert problems([unknown("a", 0)], history("a"), [reading(1, 4), reading(0, 6)]) == [
        "change token 0 was read after 1 was known"
    ]


def test_an_answer_tells_where_the_namespace_stands_as_a_reading_does():
    nothing = ok("nothing", None, 4, token=2)
    before = [unknown("a", 0), unknown("b", 0), nothing]
    assert problems(before, history("a", "b"), [reading(1, 6)]) == ["change token 1 was read after 2 was known"]
    assert problems([*before, ok("none", None, 6, token=1)], history("a", "b")) == [
        "change token 1 was read after 2 was known"
    ]
    assert problems([unknown("a", 0), nothing], history("a")) == [
        "change token 2 was read, and there are 1 change sets"
    ]


def test_a_repetition_says_where_the_namespace_stood_when_its_command_was_done():
    calls = [ok("a", 1, 0), unknown("none", 2), ok("b", 2, 4), ok("none", None, 6, token=1), ok("a", 1, 8)]
    assert problems(calls, history("a", "b"), [reading(2, 10)]) == []


def test_what_a_check_looks_at_is_counted():
    calls = [
        ok("a", 1, 0),
        refused("b", 2),
        replace(refused("c", 4), writes=(Write(node_id="n", expected=1),)),
        unknown("d", 6),
        ok("a", 1, 8),
        refused("a", 10),
        refused("a", 12, "NOT_SERVING"),
    ]
    assert len(refused_commands(calls)) == 2
    assert [call.began for call in repetitions(calls)] == [8, 10]
    assert [(one.request_id, node_id, revision) for one, node_id, revision in conflicts(calls)] == [("c", "n", 1)]


def test_a_token_of_what_is_not_there_any_more_is_found():
    assert problems([ok("a", 1, 0)], history("a"), [reading(2, 4)]) == [
        "change token 2 was read, and there are 1 change sets"
    ]


def test_an_answer_whose_token_is_behind_itself_is_found():
    assert problems([ok("a", 1, 0, token=0)], history("a")) == ["Remember a made 1, and its change token is 0"]


def test_another_history_is_found():
    assert problems([ok("a", 1, 0)], history("a"), [reading(1, 2, "other")]) == [
        "there are several histories: ['h', 'other']"
    ]


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        ([ok("a", 1, 0)], Fate.APPLIED),
        ([unknown("a", 0), ok("a", 1, 2)], Fate.APPLIED),
        ([unknown("a", 0)], Fate.UNKNOWN),
        ([unknown("a", 0), refused("a", 2, "NOT_SERVING")], Fate.UNKNOWN),
        ([refused("a", 0, "NOT_SERVING"), unknown("a", 2)], Fate.UNKNOWN),
        ([refused("a", 0, "NOT_SERVING")], Fate.REFUSED),
        ([unknown("a", 0), refused("a", 2)], Fate.REFUSED),
        ([unknown("a", 0), refused("a", 2, "INVALID_FIELD")], Fate.UNKNOWN),
        ([unknown("a", 0), refused("a", 2, "PERMISSION_DENIED")], Fate.UNKNOWN),
        ([unknown("a", 0), refused("a", 2, "SEMANTIC_UNAVAILABLE")], Fate.UNKNOWN),
        ([unknown("a", 0), refused("a", 2, "A_REASON_OF_TOMORROW")], Fate.UNKNOWN),
        ([refused("a", 0, "INVALID_FIELD")], Fate.REFUSED),
    ],
)
def test_the_fate_of_a_command_follows_from_all_its_attempts(attempts, expected):
    assert fate(attempts) is expected


def test_what_was_acknowledged_may_not_be_refused_for_any_reason_of_its_own():
    for reason in ("REVISION_CONFLICT", "INVALID_FIELD", "PERMISSION_DENIED"):
        assert problems([ok("a", 1, 0), refused("a", 3, reason)], history("a")) == [
            f"Remember a was acknowledged, and then refused ({reason})"
        ]
    assert problems([ok("a", 1, 0), refused("a", 3, "OVERLOADED")], history("a")) == []


def watched(*steps: tuple[str, dict[str, int], dict[str, int]]) -> list[WatchedChange]:
    """What a watch tells: per change set its request id, the node revisions that it names, and those it carries."""
    changes = []
    for change, (_, named, carried) in zip(history(*(step[0] for step in steps)), steps, strict=True):
        revision = change.namespace_revision
        changes.append(
            WatchedChange(
                change_token=ChangeToken("h", revision),
                change_set=replace(change, changes=tuple(_named(revision, *one) for one in named.items())),
                nodes=tuple(_node(revision, *one) for one in carried.items()),
            )
        )
    return changes


def _named(namespace_revision: int, node_id: str, revision: int) -> NodeChange:
    return NodeChange(
        citation=Citation(namespace_revision, node_id, revision, "0" * 64),
        revision_digest="0" * 64,
        operations=(),
        status_before=None,
        status_after=NodeStatus.ACTIVE,
        content_changed=True,
    )


def _node(namespace_revision: int, node_id: str, revision: int) -> Node:
    return Node(
        id=node_id,
        revision=revision,
        kind=NodeKind.SEMANTIC,
        status=NodeStatus.ACTIVE,
        content=f"content of {node_id}",
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
        citation=Citation(namespace_revision, node_id, revision, "0" * 64),
        valid_from=namespace_revision,
        superseded_at=None,
    )


def test_whole_change_sets_have_no_problems():
    good = watched(("a", {"n": 1, "m": 1}, {"n": 1, "m": 1}), ("b", {"n": 2}, {"n": 2}))
    assert torn(good) == []
    assert mixed_up(good, {("Remember", "a"): "content of", ("Remember", "b"): "content of n"}) == []


def test_half_a_change_set_is_found():
    assert torn(watched(("a", {"n": 1, "m": 1}, {"n": 1}))) == [
        "namespace revision 1 names [('m', 1), ('n', 1)], and carries [('n', 1)]"
    ]


def test_a_node_revision_that_is_missing_or_there_twice_is_found():
    assert torn(watched(("a", {"n": 1}, {"n": 1}), ("b", {"n": 3}, {"n": 3}))) == ["node n went from revision 1 to 3"]
    assert torn(watched(("a", {"n": 1}, {"n": 1}), ("b", {"n": 1}, {"n": 1}))) == ["node n went from revision 1 to 1"]


def test_the_text_of_another_command_is_found():
    assert mixed_up(watched(("a", {"n": 1}, {"n": 1})), {("Remember", "a"): "what a says"}) == [
        f"Remember a brought node n another text ({digest_of('content of n')})"
    ]


@pytest.mark.parametrize(
    ("reasons", "committed_at", "expected"),
    [
        (("UNAVAILABLE",), 1.0, (1, 1)),
        (("UNAVAILABLE",), None, (1, 0)),
        # The second attempt did it, whatever became of that one.
        (("UNAVAILABLE", "DEADLINE_EXCEEDED"), 11.0, (1, 0)),
        # The first did it, and that one is not asked about.
        (("DEADLINE_EXCEEDED", "UNAVAILABLE"), 1.0, (0, 0)),
    ],
)
def test_a_change_counts_for_the_attempt_that_made_it(
    reasons: tuple[str, ...], committed_at: float | None, expected: tuple[int, int]
):
    calls = [
        replace(call("r", 10.0 * number, Outcome.UNKNOWN, reason=reason), wall=10.0 * number)
        for number, reason in enumerate(reasons)
    ]
    committed = {} if committed_at is None else {("Remember", "r"): committed_at}
    in_doubt, applied = unknown_and_applied(calls, committed, but_for={"DEADLINE_EXCEEDED"})
    assert (in_doubt, len(applied)) == expected
