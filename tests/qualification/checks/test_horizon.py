"""The checks of a long life find what they are for, in lives that are bad by hand."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from durable_memory_client import (
    ChangeSet,
    ChangeToken,
    Citation,
    Evidence,
    EvidenceKind,
    IndexConsistency,
    MaintenanceRun,
    MaintenanceRunOutcome,
    Namespace,
    Node,
    NodeChange,
    NodeKind,
    NodeStatus,
    RefreshReceipt,
    RefreshWork,
    Relation,
    RelationKind,
    WatchedChange,
)
from tests.qualification.checks import horizon

NAMESPACE = Namespace("acme", "user-1", "default")
NOON = datetime(2028, 2, 29, 12, tzinfo=UTC)
ACTIVE, ARCHIVED, SUPERSEDED = NodeStatus.ACTIVE, NodeStatus.ARCHIVED, NodeStatus.SUPERSEDED


def node(node_id: str, revision: int = 1, status: NodeStatus = ACTIVE, *, at: int = 1, **fields) -> Node:
    """One revision, made by namespace revision `at`."""
    plain = Node(
        id=node_id,
        revision=revision,
        kind=NodeKind.SEMANTIC,
        status=status,
        content=f"{node_id} says {revision}",
        surroundings=(),
        content_digest="0" * 64,
        author="",
        occurred_at=NOON,
        confidence=0.5,
        importance=0.5,
        evidence=(),
        relations=(),
        labels={},
        created_at=NOON,
        updated_at=NOON + timedelta(days=at),
        committed_at=NOON + timedelta(days=at),
        decided_by="",
        citation=Citation(at, node_id, revision, "0" * 64),
        valid_from=at,
        superseded_at=None,
    )
    return replace(plain, **fields)


def step(at: int, key: str, before: NodeStatus | None, after: Node, method: str = "ApplyChangeSet") -> WatchedChange:
    """A change set that made one node revision."""
    changed = NodeChange(
        citation=after.citation,
        revision_digest="0" * 64,
        operations=(),
        status_before=before,
        status_after=after.status,
        content_changed=True,
    )
    change_set = ChangeSet(
        namespace=NAMESPACE,
        namespace_revision=at,
        method=method,
        idempotency_key=key,
        occurred_at=NOON,
        committed_at=NOON,
        caller="development",
        changes=(changed,),
        note="",
        digest="0" * 64,
        chain_digest="0" * 64,
    )
    return WatchedChange(change_token=ChangeToken("h", at), change_set=change_set, nodes=(after,))


def life(last: Node) -> list[WatchedChange]:
    """Node a is remembered, and then becomes `last` by command b."""
    return [step(1, "a", None, node("a")), step(2, "b", ACTIVE, last)]


def retired() -> Node:
    return node("a", 2, ARCHIVED, at=2)


ASKED = {("ApplyChangeSet", "b"): {"a": ARCHIVED}}


def test_a_node_that_a_command_ended_is_not_lost():
    assert horizon.lost_silently(life(retired()), {"a": retired()}, ASKED) == []


@pytest.mark.parametrize(
    ("endings", "wanted"),
    [
        ({}, "nothing of it"),
        ({("ApplyChangeSet", "other"): {"a": ARCHIVED}}, "nothing of it"),
        ({("ApplyChangeSet", "b"): {"c": ARCHIVED}}, "nothing of it"),
        ({("ApplyChangeSet", "b"): {"a": SUPERSEDED}}, "it to be SUPERSEDED"),
    ],
    ids=["by nobody", "by another command", "of another node", "as something else"],
)
def test_an_end_that_nobody_asked_for_is_found(endings, wanted):
    assert horizon.lost_silently(life(retired()), {"a": retired()}, endings) == [
        f"node a became ARCHIVED by ApplyChangeSet b, which wanted {wanted}"
    ]


def test_a_node_that_is_gone_is_found():
    assert horizon.lost_silently(life(retired()), {}, ASKED) == ["node a was ACTIVE, and is not there"]


def test_a_node_that_ended_without_a_change_set_is_found():
    assert horizon.lost_silently([step(1, "a", None, node("a"))], {"a": retired()}, ASKED) == [
        "node a is ARCHIVED, and the last change set that names it left it ACTIVE"
    ]


def test_a_status_that_nothing_leads_to_is_found():
    history = [
        step(1, "a", None, node("a", status=ARCHIVED)),
        step(2, "b", ARCHIVED, node("a", 2, SUPERSEDED, at=2)),
        step(3, "c", ARCHIVED, node("a", 3, ACTIVE, at=3)),
    ]
    assert horizon.forbidden_moves(life(retired())) == []
    assert horizon.forbidden_moves(history) == [
        "node a went from absent to ARCHIVED at revision 1",
        "node a went from ARCHIVED to SUPERSEDED at revision 2",
        "node a was SUPERSEDED, and revision 3 saw ARCHIVED",
    ]


def replaced(node_id: str, by: str) -> Node:
    return node(node_id, 2, SUPERSEDED, relations=(Relation(RelationKind.SUPERSEDED_BY, by),))


def replacing(node_id: str, *others: str) -> Node:
    return node(node_id, relations=tuple(Relation(RelationKind.SUPERSEDES, other) for other in others))


def test_nodes_that_lead_to_a_living_one_have_a_successor():
    nodes = [replaced("a", "c"), replaced("b", "c"), replacing("c", "a", "b")]
    assert horizon.without_successor({one.id: one for one in nodes}) == []


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        ([replaced("a", "c")], "node a is SUPERSEDED by ['c'], which leads nowhere"),
        ([node("a", 2, SUPERSEDED)], "node a is SUPERSEDED by [], which leads nowhere"),
        ([replaced("a", "c"), node("c")], "node a is SUPERSEDED by c, which does not say so"),
    ],
    ids=["by what is not there", "by nothing", "one-sided"],
)
def test_a_superseded_node_that_leads_nowhere_is_found(nodes, problem):
    assert horizon.without_successor({one.id: one for one in nodes}) == [problem]


def test_nodes_that_supersede_each_other_in_a_ring_are_found():
    ends = (Relation(RelationKind.SUPERSEDED_BY, "b"), Relation(RelationKind.SUPERSEDES, "b"))
    back = (Relation(RelationKind.SUPERSEDED_BY, "a"), Relation(RelationKind.SUPERSEDES, "a"))
    ring = {"a": node("a", 2, SUPERSEDED, relations=ends), "b": node("b", 2, SUPERSEDED, relations=back)}
    assert len(horizon.without_successor(ring)) == 2


def test_views_that_differ_are_found():
    same = [node("a"), node("b")]
    assert horizon.different_views({"snapshot": same, "export": list(reversed(same))}) == []
    for other in ([node("a")], [node("a"), node("b"), node("c")], [node("a"), node("b", importance=0.4)]):
        (problem,) = horizon.different_views({"snapshot": same, "replay": same, "export": other})
        assert problem.endswith("is not the same by snapshot and by export")


def test_the_moment_at_which_a_revision_was_replaced_is_no_difference():
    views = {"history": [node("a", superseded_at=7)], "snapshot": [node("a")]}
    assert horizon.different_views(views) == []


def test_an_active_node_that_its_own_word_does_not_find_is_found():
    assert horizon.not_recalled(["a"], {"a": ["b", "a"]}) == []
    nothing: list[dict[str, list[str]]] = [{"a": ["b"]}, {"a": []}, {}]
    for hits in nothing:
        assert horizon.not_recalled(["a"], hits) == ["node a is ACTIVE, and its own word does not find it"]


def test_an_ended_node_that_is_recalled_is_found():
    assert horizon.recalled_all_the_same(["a"], {"b": ["a"]}) == []
    assert horizon.recalled_all_the_same(["a"], {"b": ["a", "b"]}) == [
        "the recall for node b returned b, which is not ACTIVE"
    ]


def test_a_citation_that_names_nothing_or_something_else_is_found():
    first, second = life(retired())[0].nodes[0], retired()
    assert horizon.uncitable(life(second), {first.citation: first, second.citation: second}) == []
    assert horizon.uncitable(life(second), {first.citation: None}) == [f"{first.citation} names nothing any more"]
    (problem,) = horizon.uncitable(life(second), {first.citation: replace(first, content="other")})
    assert problem == f"{first.citation} names something else than when it was made"
    unknown = node("x")
    assert horizon.uncitable(life(second), {unknown.citation: unknown}) == [
        f"{unknown.citation} was read, and no change set made it"
    ]


REPEATED = datetime(2027, 11, 7, 1, 30, tzinfo=ZoneInfo("America/New_York"))


@pytest.mark.parametrize(
    "stated",
    [
        datetime(2028, 2, 29, 23, 59, 59, 999_999, tzinfo=ZoneInfo("Pacific/Chatham")),
        REPEATED,
        REPEATED.replace(fold=1),
        datetime(2028, 3, 12, 2, 30, tzinfo=ZoneInfo("America/New_York")),
        datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=timezone(timedelta(hours=14))),
    ],
    ids=["leap day", "first of a repeated hour", "second of it", "an hour that is skipped", "before the epoch"],
)
def test_a_date_that_comes_back_as_another_instant_is_found(stated):
    evidence = Evidence(uri="u", kind=EvidenceKind.MANUAL, occurred_at=stated.astimezone(UTC))
    good = node("a", occurred_at=stated.astimezone(UTC), evidence=(evidence,))
    told = ({("a", 1): stated}, {("a", "u"): stated})
    assert horizon.shifted_dates([good, replace(good, revision=2)], *told) == []
    for shift in (timedelta(hours=1), timedelta(microseconds=-1)):
        late = replace(good, occurred_at=stated.astimezone(UTC) + shift)
        assert len(horizon.shifted_dates([good, replace(late, revision=2)], *told)) == 1
        moved = replace(evidence, occurred_at=stated.astimezone(UTC) + shift)
        assert len(horizon.shifted_dates([replace(good, evidence=(moved,))], *told)) == 1


def test_a_date_that_a_revision_restates_holds_from_then_on():
    later = NOON + timedelta(days=1)
    revisions = [node("a"), node("a", 2, occurred_at=later), node("a", 3, occurred_at=later)]
    assert horizon.shifted_dates(revisions, {("a", 1): NOON, ("a", 2): later}, {}) == []
    assert len(horizon.shifted_dates(revisions, {("a", 1): NOON}, {})) == 2


def test_times_of_a_node_that_go_back_are_found():
    assert horizon.gone_back(life(retired())) == []
    assert len(horizon.gone_back(life(replace(retired(), updated_at=NOON)))) == 1
    moved = replace(retired(), created_at=NOON - timedelta(days=1))
    assert horizon.gone_back(life(moved)) == [f"node a@2 was created {moved.created_at}, not {NOON}"]


def test_a_past_that_has_changed_is_found():
    assert horizon.changed_past({3: "d", 9: "e"}, {3: "d", 9: "e"}) == []
    for now in ({3: "d", 9: "x"}, {3: "d"}):
        assert horizon.changed_past({3: "d", 9: "e"}, now) == [
            "the snapshot at namespace revision 9 has another digest than it had"
        ]


def test_a_recall_that_drifts_is_found():
    assert horizon.drifted({"q": [("a", 0.5)]}, {"q": [("a", 0.5)]}) == []
    others: list[dict[str, list[tuple[str, float]]]] = [{"q": [("a", 0.4)]}, {"q": []}, {}]
    for after in others:
        assert len(horizon.drifted({"q": [("a", 0.5)]}, after)) == 1


def run(began: datetime) -> MaintenanceRun:
    return MaintenanceRun(
        started_at=began,
        ended_at=began,
        outcome=MaintenanceRunOutcome.UNCHANGED,
        error="",
        index_revision=1,
        fence=1,
    )


def test_ticks_that_were_missed_and_are_replayed_are_found():
    hour = timedelta(hours=1)
    assert horizon.replayed_ticks([run(NOON + 30 * hour), run(NOON), run(NOON + hour)], hour) == []
    (problem,) = horizon.replayed_ticks([run(NOON), run(NOON + 30 * hour), run(NOON + 30.5 * hour)], hour)
    assert problem.endswith("0:30:00 after the one before it")


def receipt(fence: int, index_revision: int, namespace_revision: int) -> RefreshReceipt:
    work = RefreshWork(
        **dict.fromkeys(("added", "replaced", "removed", "cache_hits", "provider_calls", "provider_inputs"), 0),
        provider_bytes=0,
        staged_bytes=0,
        duration=timedelta(0),
        refused=0,
    )
    return RefreshReceipt(
        authority_digest="0" * 64,
        fence=fence,
        index_revision=index_revision,
        index_history_digest="0" * 64,
        source=ChangeToken("h", namespace_revision),
        active_count=1,
        indexed_count=1,
        consistency=IndexConsistency.INDEX_REVISION_CAS,
        work=work,
        completed_by_successor=False,
        written_at=NOON,
    )


def test_receipts_that_go_back_are_found():
    good = [receipt(1, 1, 5), receipt(4, 1, 5), receipt(5, 2, 9)]
    assert horizon.refreshed_backwards(good) == []
    for bad in (receipt(5, 2, 9), receipt(6, 1, 9), receipt(6, 2, 8)):
        assert len(horizon.refreshed_backwards([*good, bad])) == 1


def test_what_hosts_never_did_is_found():
    assert horizon.never_happened({"memory decayed": 2, "memory was retired": 1}) == []
    assert horizon.never_happened({"memory decayed": 0, "memory was retired": 1}) == ["no memory decayed"]
