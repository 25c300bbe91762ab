"""The checks of races find what they are for, in histories that are bad by hand."""

from datetime import UTC, datetime

from durable_memory_client import ChangeSet, Citation, Namespace, NodeChange, NodeStatus
from tests.qualification.checks.contention import (
    Place,
    absent,
    compared,
    compared_with_another,
    contests,
    winners,
    winners_that_are_not_one,
)
from tests.qualification.recorder.history import Call, Outcome, Write

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


def revise(
    request_id: str,
    process: str,
    *,
    began: float = 0.0,
    named: int | None = 1,
    outcome: Outcome = Outcome.OK,
    reason: str = "REVISION_CONFLICT",
) -> Call:
    return Call(
        method="ReviseMemory",
        request_id=request_id,
        began=began,
        ended=began + 1,
        outcome=outcome,
        reason=reason if outcome is Outcome.REFUSED else "",
        writes=(Write(node_id="node", expected=named),),
        process=process,
    )


def refused(request_id: str, process: str, **changes) -> Call:
    return revise(request_id, process, outcome=Outcome.REFUSED, **changes)


def listed(*made: tuple[str, int]) -> list[ChangeSet]:
    """What the service lists: by request, which revision of the node it made."""
    return [
        ChangeSet(
            namespace=Namespace("acme", "user-1", "default"),
            namespace_revision=place,
            method="ReviseMemory",
            idempotency_key=request_id,
            occurred_at=NOON,
            committed_at=NOON,
            caller="development",
            changes=(
                NodeChange(
                    citation=Citation(place, "node", revision, "0" * 64),
                    revision_digest="0" * 64,
                    operations=(),
                    status_before=NodeStatus.ACTIVE,
                    status_after=NodeStatus.ACTIVE,
                    content_changed=True,
                ),
            ),
            note="",
            digest="0" * 64,
            chain_digest="0" * 64,
        )
        for place, (request_id, revision) in enumerate(made, start=1)
    ]


RACE = (revise("a", "one"), refused("b", "two", began=0.5))


def test_a_race_with_one_winner_has_no_problems():
    (contest,) = contests(RACE)
    assert contest.place == Place("node", 1)
    assert contest.is_race
    assert winners_that_are_not_one([contest], listed(("a", 2))) == []
    assert compared_with_another(RACE, listed(("a", 2))) == []


def test_commands_of_one_process_or_at_different_times_are_no_race():
    same = contests([revise("a", "one"), refused("b", "one", began=0.5)])
    later = contests([revise("a", "one"), refused("b", "two", began=1.5)])
    assert [contest.is_race for contest in (*same, *later)] == [False, False]


def test_a_command_alone_and_one_that_compares_with_nothing_are_no_contest():
    calls = [revise("a", "one"), revise("b", "two", named=2), revise("c", "one", named=None)]
    assert contests(calls) == []
    repeated = [refused("a", "one", reason="NOT_SERVING"), revise("a", "one", began=2)]
    assert contests(repeated) == []


def test_two_winners_are_found_although_one_of_them_was_told_nothing():
    calls = [revise("a", "one"), revise("b", "two", outcome=Outcome.UNKNOWN)]
    assert winners_that_are_not_one(contests(calls), listed(("a", 2), ("b", 2))) == [
        "revision 1 of node was left by 2 commands: ReviseMemory a, ReviseMemory b"
    ]


def test_conflicts_without_a_winner_are_found():
    calls = [refused("a", "one"), refused("b", "two")]
    assert winners_that_are_not_one(contests(calls), listed()) == [
        "revision 1 of node was left by none of 2 commands, and all had conflicts"
    ]


def test_a_race_that_somebody_else_won_or_that_was_never_decided_has_no_problems():
    lost = contests([refused("a", "one"), refused("b", "two")])
    assert winners_that_are_not_one(lost, listed(("put", 2))) == []
    undecided = contests([refused("a", "one"), revise("b", "two", outcome=Outcome.UNKNOWN)])
    assert winners_that_are_not_one(undecided, listed()) == []
    away = contests([refused("a", "one"), refused("b", "two", reason="NOT_SERVING")])
    assert winners_that_are_not_one(away, listed()) == []


def test_a_command_that_was_applied_to_another_revision_than_it_named_is_found():
    calls = [revise("a", "one"), revise("b", "two")]
    changes = listed(("a", 2), ("b", 3))
    assert compared(calls, changes) == 2
    assert compared_with_another(calls, changes) == ["ReviseMemory b named revision 1 of node, and made 3"]


def test_a_process_that_takes_part_in_no_race_is_found():
    races = contests([*RACE, revise("c", "two", named=2), refused("d", "one", named=2, began=0.5)])
    changes = listed(("a", 2), ("c", 3))
    assert winners(races, changes) == {"one": 1, "two": 1}
    assert absent(races, changes, ["one", "two"]) == []
    assert absent(races, changes, ["one", "three", "two"]) == ["three took part in no race"]


def test_races_that_one_process_always_wins_are_found():
    races = contests(RACE)
    assert absent(races, listed(("a", 2)), ["one", "two"]) == ["of 1 races all that were won were won by one"]
    assert absent(races, [], ["one"]) == ["of 1 races all that were won were won by nobody"]
